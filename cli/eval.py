"""`tercet eval`: quality on a judged data set, each side, their sums, and BM25."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.measuring.flags import MeasuringFlags, parse_rows
from tercet.cli.measuring.tables import print_details, print_evaluation, print_runs, print_suite
from tercet.cli.output import print_json
from tercet.index.dense.kinds import DenseKind
from tercet.index.token_codecs import TokenCodec

if TYPE_CHECKING:
    from tercet.evaluation.results import SetReport


@with_flag_groups
def evaluate(
    folder: Annotated[
        Path, typer.Argument(help="BEIR folder: corpus, queries and qrels/SPLIT.tsv; or that of a --suite.")
    ],
    *,
    measuring: MeasuringFlags,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Score every document instead of searching the index.")
    ] = False,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PRESET|D,S,C[,B]",
            help="Weights of the sum, as for `tercet search`; repeated, each gives another ranking. "
            "[default: as a search, or the suite's]",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Documents that each retriever proposes. [default: 200, or the depth if that is more]",
            show_default=False,
        ),
    ] = None,
    dense_kind: Annotated[
        DenseKind | None,
        typer.Option(help="Dense index. [default auto: by size]", show_default=False),
    ] = None,
    token_codec: Annotated[
        TokenCodec | None,
        typer.Option(
            help="How token vectors are stored. [default int8: what the checkpoint can do]",
            show_default=False,
        ),
    ] = None,
    token_pooling: options.TokenPooling = None,
    lexical: options.Lexical = None,
    bm25: options.Bm25 = False,
    bm25_language: options.Bm25Language = None,
    window_tokens: options.WindowTokens = None,
    window_overlap: options.WindowOverlap = None,
    no_windows: options.NoWindows = False,
    encoding: options.EncoderFlags,
    adapter: options.Adapter = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write each ranking to FOLDER as a run file of TREC, such as sum.run.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure ranking quality on a judged data set.

    nDCG@10, recall@100 and reciprocal rank@10, or other measures, of each side, of their sums, and of BM25
    over word pieces; with --bm25 also of that side, and of the sum with it. With --run the same of run files.
    """
    from tercet.evaluation.errors import MissingExtraError

    try:
        wanted = measuring.measuring()
        from tercet.evaluation.results import mean_results, score_runs
        from tercet.evaluation.run import SuiteReport
        from tercet.evaluation.run import evaluate as run
    except ImportError as error:
        raise MissingExtraError(
            f"tercet eval needs more packages ({error}): pip install -c constraints.txt -e '.[cpu,eval]'"
        ) from error
    if measuring.by_query_file is not None and not measuring.by_query_file.absolute().parent.is_dir():
        raise typer.BadParameter(
            f"{measuring.by_query_file}: there is no such folder; make it first", param_hint="--by-query-file"
        )
    if files := measuring.runs():
        ranked = {
            "--exhaustive": exhaustive,
            "--weights": weights,
            "--candidates": candidates,
            "--runs": runs,
        }
        for flag, value in ranked.items():
            if value:
                raise typer.BadParameter(
                    "says how to rank, but --run gives rankings; leave out one of both", param_hint=flag
                )
        dataset, *others = measuring.datasets(folder)
        if others:
            raise typer.BadParameter(
                f"scores one set; choose it with --only, such as --only {dataset.name}", param_hint="--run"
            )
        scored = score_runs(dataset, files, wanted)
        _report(measuring, scored, lambda: print_runs(scored, dataset.judgments), as_json=as_json)
        return
    from tercet.cli.encoders import adapted_encoder
    from tercet.cli.progress import build_progress
    from tercet.index.bm25.languages import DEFAULT_LANGUAGE

    language = options.bm25_language(bm25_language, bm25=bm25) or (DEFAULT_LANGUAGE if bm25 else None)
    window = options.window_from(window_tokens, window_overlap, none=no_windows)
    suite = measuring.preset()
    total, rows = parse_rows(weights or (suite and suite.weights) or [])
    for row in (total, *rows.values()):
        if row is not None and row.bm25 and not bm25:
            raise typer.BadParameter(f"--weights gives bm25 {row.bm25}; give --bm25 too, or three numbers")
    datasets = measuring.datasets(folder)
    encoder = adapted_encoder(encoding.settings(), adapter)
    with build_progress("auto") as progress, options.window_flags():
        reports = run(
            datasets,
            encoder,
            exhaustive=exhaustive,
            measuring=wanted,
            weights=total,
            rows=rows,
            candidates=candidates,
            dense_kind=dense_kind,
            lexical=lexical,
            bm25_language=language,
            window=window,
            token_codec=token_codec,
            token_pooling=token_pooling,
            runs=runs,
            progress=progress,
        )
        sets = list(reports)
    if measuring.suite is None:
        [report] = sets
        _report(measuring, report, lambda: print_evaluation(report), as_json=as_json)
        return
    _write_by_query(measuring, sets)
    whole = SuiteReport(suite=measuring.suite, sets=sets, mean=mean_results(sets))
    if as_json:
        print_json(whole)
    else:
        print_suite(whole)


def _write_by_query(flags: MeasuringFlags, reports: Sequence[SetReport]) -> None:
    """The figures of each query into the file for them, rankings of several sets as `set/ranking`."""
    from tercet.evaluation.results import write_by_query

    if flags.by_query_file is None:
        return
    by_query = {
        name if len(reports) == 1 else f"{report['dataset']}/{name}": figures
        for report in reports
        for name, figures in report["by_query"].items()
    }
    write_by_query(flags.by_query_file, by_query)
    if not flags.by_query:
        for report in reports:
            del report["by_query"]


def _report(flags: MeasuringFlags, report: SetReport, show: Callable[[], None], *, as_json: bool) -> None:
    """Writes and prints a report. show: prints the head and the means for people."""
    _write_by_query(flags, [report])
    if as_json:
        print_json(report)
    else:
        show()
        print_details(report)
