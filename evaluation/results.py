"""What is reported of rankings: each measure of each ranking, of each query, and of two rankings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
from ir_measures.measures import Measure

from tercet.evaluation.answers import judgments_of
from tercet.evaluation.comparison import TRIALS, is_exact, randomization_test
from tercet.evaluation.dataset import Dataset
from tercet.evaluation.errors import DatasetError, MeasureError
from tercet.evaluation.metrics import MEASURES, Figures, deepest, figures, ranks_seen
from tercet.evaluation.rankings import DEPTH, Ranking
from tercet.evaluation.runs import read_run
from tercet.index.files.directory import write_atomically

Rankings = dict[str, dict[str, Ranking]]
"""Scores by document id, best first, by ranking, then by query id."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is computed of rankings.

    depth: how many of the best documents of each query are kept, by default as many as the measures look at,
    and 100 at least.
    by_query: whether the figures of each query are reported. compare: two rankings by name, whose difference
    is tested with random signs from `seed`.
    """

    measures: tuple[Measure, ...] = MEASURES
    depth: int | None = None
    by_query: bool = False
    compare: tuple[str, str] | None = None
    seed: int = 0

    @property
    def ranks(self) -> int:
        """How many documents of each query are ranked. Raises MeasureError where measures need more."""
        least = deepest(self.measures)
        if self.depth is not None and self.depth < least:
            measure = next(measure for measure in self.measures if deepest([measure]) == least)
            raise MeasureError(
                f"{measure} looks at {least} ranks, and the depth is {self.depth}; keep {least} or more"
            )
        return max(DEPTH, least) if self.depth is None else self.depth

    def check_compared(self, rankings: Collection[str]) -> None:
        """Raises DatasetError for a ranking to compare that is not among those there are."""
        for name in self.compare or ():
            if name not in rankings:
                raise DatasetError(
                    f"{name!r} cannot be compared: it is no ranking here, and no run file; "
                    f"there are {', '.join(rankings)}, and --runs FOLDER writes rankings as run files"
                )


class Difference(TypedDict):
    """Means of one measure of two rankings, the second less the first, and the p-value of that."""

    first: float
    second: float
    difference: float
    p_value: float


class Comparison(TypedDict):
    """A randomization test of two rankings. exact: whether every assignment of signs was counted; otherwise
    `trials` random ones from `seed` were.
    """

    first: str
    second: str
    queries: int
    exact: bool
    trials: int
    seed: int
    measures: dict[str, Difference]


class Results(TypedDict):
    """results: measure by name, by ranking. by_query: the same by query id, by ranking, where asked for."""

    results: dict[str, dict[str, float]]
    by_query: NotRequired[dict[str, dict[str, dict[str, float]]]]
    comparison: NotRequired[Comparison]


class SetReport(Results):
    """Results of one data set by name."""

    dataset: str
    split: str
    queries: int
    unjudged_queries: int


class RunsReport(SetReport):
    """What `tercet eval --run FILE --json` prints.

    missing_queries: by run, how many judged queries it lacks; each counts 0.
    """

    missing_queries: dict[str, int]


def measured(dataset: Dataset, rankings: Rankings, measuring: Measuring) -> Results:
    """What is reported of rankings of a data set's queries."""
    qrels = judgments_of(dataset, rankings.values(), ranks_seen(measuring.measures))
    found = {name: figures(qrels, ranking, measuring.measures) for name, ranking in rankings.items()}
    report = Results(results={name: each.means for name, each in found.items()})
    if measuring.by_query:
        report["by_query"] = {name: each.by_query for name, each in found.items()}
    if measuring.compare is not None:
        report["comparison"] = _comparison(found, measuring.compare, measuring.seed)
    return report


def _comparison(found: Mapping[str, Figures], names: tuple[str, str], seed: int) -> Comparison:
    first, second = (found[name] for name in names)
    differences = np.array(
        [
            [second.by_query[query][measure] - value for measure, value in values.items()]
            for query, values in first.by_query.items()
        ]
    )
    p_values = randomization_test(differences, seed).tolist()
    exact = is_exact(len(differences))
    return Comparison(
        first=names[0],
        second=names[1],
        queries=len(differences),
        exact=exact,
        trials=2 ** len(differences) if exact else TRIALS,
        seed=seed,
        measures={
            name: Difference(
                first=mean,
                second=second.means[name],
                difference=second.means[name] - mean,
                p_value=p_value,
            )
            for (name, mean), p_value in zip(first.means.items(), p_values, strict=True)
        },
    )


def score_runs(dataset: Dataset, files: Sequence[Path], measuring: Measuring) -> RunsReport:
    """Scores run files against the judgments of a data set; an encoder is not needed, and the corpus only for
    answers.

    A run is called as its file is without the ending, or by its whole path where two would be called alike.
    Raises DatasetError naming file and line, and MeasureError where the depth is less than measures need.
    """
    depth = None if measuring.depth is None else measuring.ranks
    named = run_names(files)
    measuring.check_compared(named)
    rankings = {name: read_run(path, depth) for name, path in named.items()}
    for ranking, path in zip(rankings.values(), files, strict=True):
        if not ranking.keys() & dataset.queries.keys():
            raise DatasetError(
                f"{path}: has none of the queries that {dataset.judgments} judges; "
                "give the run of these queries, or their split"
            )
    return RunsReport(
        dataset=dataset.name,
        split=dataset.split,
        queries=len(dataset.queries),
        unjudged_queries=dataset.unjudged_queries,
        missing_queries={
            name: len(dataset.queries.keys() - ranking.keys()) for name, ranking in rankings.items()
        },
        **measured(dataset, rankings, measuring),
    )


def mean_results(reports: Sequence[Results]) -> dict[str, dict[str, float]]:
    """The mean of each measure over data sets, each of which counts alike, by ranking."""
    return {
        ranking: {
            measure: sum(report["results"][ranking][measure] for report in reports) / len(reports)
            for measure in means
        }
        for ranking, means in reports[0]["results"].items()
    }


def write_by_query(path: Path, by_query: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Tab-separated lines of ranking, query, measure and value, under a header."""
    rows = (
        f"{ranking}\t{query}\t{measure}\t{value!r}\n".encode()
        for ranking, queries in by_query.items()
        for query, figures in queries.items()
        for measure, value in figures.items()
    )
    write_atomically(path, chain([b"ranking\tquery\tmeasure\tvalue\n"], rows))


def run_names(files: Sequence[Path]) -> dict[str, Path]:
    """Run files by what they are called in a report. Raises DatasetError for one that is given twice."""
    stems = {path.stem: path for path in files}
    named = stems if len(stems) == len(files) else {str(path): path for path in files}
    if len(named) != len(files):
        raise DatasetError("a run file is given twice; give each once")
    return named
