"""Tables of figures that `tercet eval` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table

from tercet.cli.output import console, counted

if TYPE_CHECKING:
    from tercet.evaluation.results import Comparison, Results, RunsReport
    from tercet.evaluation.run import EvaluationReport, SuiteReport

WIDEST = 10_000  # columns of text, more than any table here takes
SMALLEST_P = 0.0001  # that is shown


def print_evaluation(report: EvaluationReport) -> None:
    """How rankings were made, and their figures."""
    console().print(
        f"{report['dataset']}: {counted(report['documents'], 'document')}, "
        f"{counted(report['queries'], 'query', 'queries')}, {_way_words(report)}",
        soft_wrap=True,
    )
    _print_results(report)


def print_suite(report: SuiteReport) -> None:
    """The figures of each set of a suite, and their mean."""
    sets, mean = report["sets"], report["mean"]
    console().print(f"{report['suite']}: {counted(len(sets), 'set')}, {_way_words(sets[0])}", soft_wrap=True)
    table = _table("set", "documents", "queries", "ranking", *next(iter(mean.values())))
    for each in sets:
        sizes = (f"{each['documents']:,}", f"{each['queries']:,}")
        _add_rows(table, (each["dataset"], *sizes), each["results"])
    if len(sets) > 1:
        _add_rows(table, ("mean", "", ""), mean)
    _print_whole(table)
    for each in sets:
        if "by_query" in each or "comparison" in each:
            console().print(f"{each['dataset']}:")
            print_details(each)


def _add_rows(table: Table, name: tuple[str, str, str], results: Mapping[str, Mapping[str, float]]) -> None:
    """A group of rows, one for each ranking, the first of which says what they are of."""
    for number, (ranking, means) in enumerate(results.items()):
        table.add_row(*(("", "", "") if number else name), ranking, *_cells(means))
    table.add_section()


def _way_words(report: EvaluationReport) -> str:
    """How rankings were made."""
    way = "every document scored" if report["exhaustive"] else "through the index"
    return (
        f"{report['checkpoint']}{_adapter_words(report['adapter'])}, lexical {report['lexical']}, "
        f"{_window_words(report['window'])}weights {_weights_words(report['weights'])}, {way}"
    )


def print_runs(report: RunsReport, judgments: str) -> None:
    """Whose judgments run files are scored with, and their figures. judgments: what holds them."""
    out = console()
    queries = counted(report["queries"], "query", "queries")
    out.print(f"{report['dataset']}: {queries} of {judgments}", soft_wrap=True)
    _print_results(report)
    for name, missing in report["missing_queries"].items():
        if missing:
            out.print(
                f"{name} lacks {counted(missing, 'judged query', 'judged queries')}; each counts 0",
                soft_wrap=True,
            )


def print_details(report: Results) -> None:
    """The figures of each query and the test of two rankings, where they were asked for."""
    if "by_query" in report:
        _print_by_query(report["by_query"])
    if "comparison" in report:
        _print_comparison(report["comparison"])


def _print_by_query(by_query: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    first = next(iter(by_query.values()))
    table = _table("query", "ranking", *next(iter(first.values())))
    for query in first:
        for ranking, queries in by_query.items():
            table.add_row(query, ranking, *_cells(queries[query]))
    _print_whole(table)


def _print_comparison(comparison: Comparison) -> None:
    signs = (
        "all assignments of signs"
        if comparison["exact"]
        else f"{comparison['trials']:,} random assignments of signs, seed {comparison['seed']}"
    )
    first, second = comparison["first"], comparison["second"]
    queries = counted(comparison["queries"], "query", "queries")
    console().print(f"{second} less {first}, {queries}, randomization test over {signs}:", soft_wrap=True)
    table = _table("measure", first, second, "difference", "p")
    for measure, values in comparison["measures"].items():
        p_value = f"{values['p_value']:.4f}" if values["p_value"] >= SMALLEST_P else f"<{SMALLEST_P}"
        means = _cells({"first": values["first"], "second": values["second"]})
        table.add_row(measure, *means, f"{values['difference']:+.4f}", p_value)
    _print_whole(table)


def _table(name: str, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column(name)
    for column in columns:
        table.add_column(column, justify="left" if column == "ranking" else "right")
    return table


def _print_whole(table: Table) -> None:
    """Prints a table as wide as it is, since a figure that is cut to fit says something else."""
    out = console()
    table.width = Measurement.get(out, out.options.update(max_width=WIDEST), table).maximum
    out.print(table, soft_wrap=True)


def _print_results(report: Results) -> None:
    results = report["results"]
    table = _table("ranking", *next(iter(results.values())))
    for ranking, means in results.items():
        table.add_row(ranking, *_cells(means))
    _print_whole(table)


def _cells(figures: Mapping[str, float]) -> list[str]:
    return [f"{value:.4f}" for value in figures.values()]


def _adapter_words(adapter: str | None) -> str:
    return "" if adapter is None else f" with adapter {adapter}"


def _window_words(window: dict[str, int] | None) -> str:
    return "" if window is None else f"windows of {window['tokens']}, overlap {window['overlap']}, "


def _weights_words(weights: dict[str, float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights.values())
