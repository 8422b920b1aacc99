"""`tercet tune`: a collection's default weights, candidates and confidence, from judged queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import SIDES, console, print_json

if TYPE_CHECKING:
    from tercet.evaluation.tune import FoldReport, Setting, TuningReport


@with_flag_groups
def tune(
    name: options.Name,
    folder: Annotated[
        Path | None,
        typer.Argument(help="BEIR folder: queries and qrels; the collection has the documents."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which judgments: qrels/SPLIT.tsv.")] = "test",
    folds: Annotated[int, typer.Option(min=2, help="Parts that are held out in turn.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Deals the queries to folds.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only, store nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Store what was found even where it gains nothing.")
    ] = False,
    reset: Annotated[
        bool, typer.Option("--reset", help="Remove the stored defaults; takes no folder.")
    ] = False,
    *,
    encoding: options.EncoderFlags,
    as_json: options.AsJson = False,
) -> None:
    """Find the weights that suit a collection, and store them as its default.

    Weights and number of candidates that maximize nDCG@10 on judged queries, by cross-validation. They are
    stored where they beat the usual weights on queries that were held out. How sure searches are of their
    hits is fitted, too.
    """
    if dry_run and (force or reset):
        raise typer.BadParameter("stores nothing: leave --force and --reset out", param_hint="--dry-run")
    if reset != (folder is None):
        message = "takes no folder" if reset else "name a BEIR folder, or give --reset"
        raise typer.BadParameter(message, param_hint="--reset" if reset else "FOLDER")
    settings = encoding.settings()
    root = options.collections_root(settings)
    if folder is None:
        _reset(root, name, as_json=as_json)
        return
    from tercet.cli.encoders import encoder_of
    from tercet.cli.progress import count_progress
    from tercet.evaluation.tune import tune as run
    from tercet.index.collection import Collection

    encoder = encoder_of(settings, Collection.open(root, name).settings)
    with count_progress("Scoring", "queries") as progress:
        report = run(
            root,
            name,
            folder,
            encoder,
            split=split,
            folds=folds,
            seed=seed,
            store=not dry_run,
            force=force,
            progress=progress,
        )
    if as_json:
        print_json(report)
    else:
        _print_report(report, dry_run=dry_run)


def _reset(root: Path, name: str, *, as_json: bool) -> None:
    from tercet.index.collection import Collection

    removed = Collection.open(root, name).remove_defaults()
    if as_json:
        print_json({"collection": name, "removed": removed})
    else:
        state = "has no stored defaults any more" if removed else "had no stored defaults"
        console().print(f"Collection {name!r} {state}: searches use the usual weights.")


def _print_report(report: TuningReport, *, dry_run: bool) -> None:
    out = console()
    out.print(
        f"{report['collection']}, snapshot {report['snapshot']}: {report['queries']:,} judged queries, "
        f"{len(report['folds'])} folds, {report['seconds']:.0f} s; nDCG@10:"
    )
    if report["missing_documents"]:
        out.print(f"{report['missing_documents']:,} documents judged relevant are not in the collection.")
    table = Table(box=None, padding=(0, 1))
    table.add_column("")
    for column in ("queries", *SIDES, "candidates", "usual", "tuned"):
        table.add_column(column, justify="right")
    for number, fold in enumerate(report["folds"], start=1):
        table.add_row(f"fold {number}", *_row(fold))
    held_out, fitted = report["held_out"], report["fitted"]
    gain, error = held_out["gain"], held_out["gain_standard_error"]
    table.add_row(
        "held out",
        f"{report['queries']:,}",
        *[""] * 4,
        f"{held_out['plain']:.4f}",
        f"{held_out['tuned']:.4f}",
    )
    table.add_row("all, fitted", *_row(fitted))
    out.print(table)
    doubt = "; less than twice that may be chance" if abs(gain) < 2 * error else ""
    out.print(f"Gain on held-out queries: {gain:+.4f}, standard error {error:.4f}{doubt}.")
    out.print(_outcome(report, dry_run=dry_run))
    confidence = report["confidence"]
    if confidence is not None:
        before = "" if confidence["before"] is None else f"{confidence['before']:.4f} before, "
        done = "stored" if confidence["stored"] else "not stored"
        out.print(
            f"Confidence: calibration error of held-out hits {before}{confidence['fitted']:.4f} fitted anew; "
            f"threshold {confidence['threshold']:.2f}; {done}."
        )


def _row(fold: FoldReport) -> tuple[str, ...]:
    weights = (f"{fold['weights'][side]:.3f}" for side in SIDES)
    figures = (f"{fold['plain']:.4f}", f"{fold['tuned']:.4f}")
    return (f"{fold['queries']:,}", *weights, str(fold["candidates"]["dense"]), *figures)


def _outcome(report: TuningReport, *, dry_run: bool) -> str:
    setting = _setting(report["fitted"])
    if report["stored"]:
        return f"Stored as the defaults of {report['collection']!r}: {setting}."
    if report["held_out"]["gain"] > 0:
        return f"Not stored, as asked: {setting}."
    advice = "" if dry_run else "; --force stores them all the same"
    usual = _weights(report["usual"])
    return f"Not stored: {setting} do not beat the usual {usual} on held-out queries{advice}."


def _setting(setting: Setting) -> str:
    return f"weights {_weights(setting['weights'])} and {setting['candidates']['dense']} candidates"


def _weights(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{weights[side]:g}" for side in SIDES)
