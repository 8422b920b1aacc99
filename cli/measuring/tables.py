"""Tables of figures that `tercet eval` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Table

from tercet.cli.output import console, counted

if TYPE_CHECKING:
    from tercet.evaluation.results import Results, RunsReport
    from tercet.evaluation.run import EvaluationReport


def print_evaluation(report: EvaluationReport) -> None:
    """How rankings were made, and their figures."""
    way = "every document scored" if report["exhaustive"] else "through the index"
    console().print(
        f"{report['dataset']}: {counted(report['documents'], 'document')}, "
        f"{counted(report['queries'], 'query', 'queries')}, "
        f"{report['checkpoint']}{_adapter_words(report['adapter'])}, lexical {report['lexical']}, "
        f"{_window_words(report['window'])}weights {_weights_words(report['weights'])}, {way}",
        soft_wrap=True,
    )
    _print_results(report)


def print_runs(report: RunsReport) -> None:
    """Whose judgments run files are scored with, and their figures."""
    out = console()
    queries = counted(report["queries"], "query", "queries")
    out.print(f"{report['dataset']}: {queries} of qrels/{report['split']}.tsv", soft_wrap=True)
    _print_results(report)
    for name, missing in report["missing_queries"].items():
        if missing:
            out.print(
                f"{name} lacks {counted(missing, 'judged query', 'judged queries')}; each counts 0",
                soft_wrap=True,
            )


def _print_results(report: Results) -> None:
    results = report["results"]
    table = Table(box=None, padding=(0, 2))
    table.add_column("ranking")
    for measure in next(iter(results.values())):
        table.add_column(measure, justify="right")
    for ranking, means in results.items():
        table.add_row(ranking, *_cells(means))
    console().print(table)


def _cells(figures: Mapping[str, float]) -> list[str]:
    return [f"{value:.4f}" for value in figures.values()]


def _adapter_words(adapter: str | None) -> str:
    return "" if adapter is None else f" with adapter {adapter}"


def _window_words(window: dict[str, int] | None) -> str:
    return "" if window is None else f"windows of {window['tokens']}, overlap {window['overlap']}, "


def _weights_words(weights: dict[str, float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights.values())
