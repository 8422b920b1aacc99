"""Measures of rankings by their names in ir-measures, as means and for each query."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import ir_measures
from ir_measures import RR, R, nDCG
from ir_measures.measures import Measure

from tercet.evaluation.errors import MeasureError

MEASURES: tuple[Measure, ...] = (nDCG @ 10, R @ 100, RR @ 10)
EXAMPLES = "nDCG@10, RR@10, R@20, Success@5, P@5 or AP@1000"
SEPARATORS = re.compile(r"[\s,]+(?![^(]*\))")  # those within parentheses belong to a measure's parameters


@dataclass(frozen=True, slots=True)
class Figures:
    """What a ranking of several queries is worth: by measure, and by query id and measure."""

    means: dict[str, float]
    by_query: dict[str, dict[str, float]]


def parse_measures(words: Iterable[str]) -> tuple[Measure, ...]:
    """Measures by their names, parted by commas or blanks; those of a plain evaluation where there are none.

    Raises MeasureError that names the one that cannot be computed.
    """
    names = [name for text in words for name in SEPARATORS.split(text.strip()) if name]
    return tuple(dict.fromkeys(map(_parse_measure, names))) or MEASURES


def _parse_measure(name: str) -> Measure:
    try:
        measure = ir_measures.parse_measure(name)
        computed: bool = ir_measures.DefaultPipeline.supports(measure)  # type: ignore[no-untyped-call]  # untyped library
    except (NameError, ValueError, AssertionError, SyntaxError):
        computed = False
    if not computed or measure.params.get("cutoff", 1) < 1:  # trec_eval ends the process at a cutoff of 0
        family, at, cutoff = name.partition("@")
        known = {alias.lower(): known.NAME for alias, known in ir_measures.measures.registry.items()}
        near = [known[match] for match in difflib.get_close_matches(family.lower(), known, 1)]
        meant = f"{near[0]}{at or '@'}{cutoff or 10}" if near and near[0] != family else ""
        raise MeasureError(
            f"{name[:80]!r} is no measure that can be computed of a ranking and grades"
            + (f"; did you mean {meant}?" if meant else f"; use names of ir-measures, such as {EXAMPLES}")
        )
    return measure


def deepest(measures: Iterable[Measure]) -> int:
    """The lowest rank that any of the measures with a cutoff looks at, 0 where none has one."""
    return max((measure.params.get("cutoff", 0) for measure in measures), default=0)


def ranks_seen(measures: Collection[Measure]) -> int | None:
    """How many ranks the measures look at, None where one has no cutoff."""
    return deepest(measures) if all("cutoff" in measure.params for measure in measures) else None


def figures(
    qrels: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Iterable[str]],
    measures: Sequence[Measure] = MEASURES,
) -> Figures:
    """Each measure of each judged query, and over all of them; gains of nDCG are linear.

    qrels: grade by document id, by query id. rankings: document ids by query id, best first. A judged query
    without a ranking or a judged document counts 0, and a ranking without judgments nothing.
    Ranks are handed over as scores, so that ties stay broken as given.
    """
    judgments = [
        ir_measures.Qrel(query, document, grade)
        for query, grades in qrels.items()
        for document, grade in grades.items()
    ]
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query, documents in rankings.items()
        if query in qrels
        for rank, document in enumerate(documents)
    ]
    totals = {measure: measure.aggregator() for measure in measures}
    by_query = {query: {str(measure): 0.0 for measure in measures} for query in qrels}
    for metric in ir_measures.iter_calc(measures, judgments, run):
        totals[metric.measure].add(metric.value)
        by_query[metric.query_id][str(metric.measure)] = float(metric.value)
    for total in totals.values():
        for grades in qrels.values():
            if not grades:  # ir-measures does not see such a query
                total.add(0.0)
    means = {str(measure): float(total.result()) for measure, total in totals.items()}
    return Figures(means, by_query)


def measure(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Iterable[str]]
) -> dict[str, float]:
    """Means over the judged queries of the usual measures: `{"nDCG@10": …, "R@100": …, "RR@10": …}`."""
    return figures(qrels, rankings).means
