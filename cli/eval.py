"""`tercet eval`: quality on a judged data set, each side, their sums, and BM25."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, print_json
from tercet.cli.search import parse_weights
from tercet.index.dense.kinds import DenseKind
from tercet.index.token_codecs import TokenCodec

if TYPE_CHECKING:
    from tercet.evaluation.run import EvaluationReport


@with_flag_groups
def evaluate(
    folder: Annotated[Path, typer.Argument(help="BEIR folder: corpus, queries and qrels/test.tsv.")],
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Score every document instead of searching the index.")
    ] = False,
    weights: Annotated[
        str, typer.Option(metavar="PRESET|D,S,C[,B]", help="Weights of the sum, as for `tercet search`.")
    ] = "sum",
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
    *,
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

    nDCG@10, recall@100 and reciprocal rank@10 of each side, of their sums, and of BM25 over word pieces; with
    --bm25 also of that side, and of the sum with it.
    """
    from tercet.cli.progress import build_progress
    from tercet.evaluation.errors import MissingExtraError
    from tercet.index.bm25.languages import DEFAULT_LANGUAGE
    from tercet.models.encoder import with_adapter
    from tercet.service.encoding.service import local_encoder

    try:
        from tercet.evaluation.run import evaluate as run
    except ImportError as error:
        raise MissingExtraError(
            f"tercet eval needs more packages ({error}): pip install -c constraints.txt -e '.[cpu,eval]'"
        ) from error
    language = options.bm25_language(bm25_language, bm25=bm25) or (DEFAULT_LANGUAGE if bm25 else None)
    window = options.window_from(window_tokens, window_overlap, none=no_windows)
    wanted = parse_weights(weights)
    if wanted.bm25 and not bm25:
        raise typer.BadParameter(f"--weights gives bm25 {wanted.bm25}; give --bm25 too, or three numbers")
    settings = encoding.settings()
    encoder = with_adapter(local_encoder(settings), adapter)
    with build_progress("auto") as progress, options.window_flags():
        report = run(
            folder,
            encoder,
            exhaustive=exhaustive,
            weights=wanted,
            dense_kind=dense_kind,
            lexical=lexical,
            bm25_language=language,
            window=window,
            token_codec=token_codec,
            token_pooling=token_pooling,
            runs=runs,
            progress=progress,
        )
    if as_json:
        print_json(report)
    else:
        _print_table(report)


def _adapter_words(adapter: str | None) -> str:
    return "" if adapter is None else f" with adapter {adapter}"


def _window_words(window: dict[str, int] | None) -> str:
    return "" if window is None else f"windows of {window['tokens']}, overlap {window['overlap']}, "


def _weights_words(weights: dict[str, float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights.values())


def _print_table(report: EvaluationReport) -> None:
    way = "every document scored" if report["exhaustive"] else "through the index"
    out = console()
    out.print(
        f"{report['dataset']}: {counted(report['documents'], 'document')}, "
        f"{counted(report['queries'], 'query', 'queries')}, "
        f"{report['checkpoint']}{_adapter_words(report['adapter'])}, lexical {report['lexical']}, "
        f"{_window_words(report['window'])}weights {_weights_words(report['weights'])}, {way}",
        soft_wrap=True,
    )
    table = Table(box=None, padding=(0, 2))
    table.add_column("ranking")
    results = report["results"]
    measures = list(next(iter(results.values())))
    for measure in measures:
        table.add_column(measure, justify="right")
    for ranking, means in results.items():
        table.add_row(ranking, *(f"{means[measure]:.4f}" for measure in measures))
    out.print(table)
