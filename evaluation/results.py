"""What is reported of rankings: each measure of each ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ir_measures.measures import Measure

from tercet.evaluation.beir import TEST, read_judged_queries
from tercet.evaluation.errors import DatasetError, MeasureError
from tercet.evaluation.metrics import MEASURES, deepest, figures
from tercet.evaluation.rankings import DEPTH, Ranking
from tercet.evaluation.runs import read_run

Rankings = dict[str, dict[str, Ranking]]
"""Scores by document id, best first, by ranking, then by query id."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is computed of rankings.

    split: the judgments, `qrels/<split>.tsv`. depth: how many of the best documents of each query are kept,
    by default as many as the measures look at, and 100 at least.
    """

    measures: tuple[Measure, ...] = MEASURES
    split: str = TEST
    depth: int | None = None

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


class Results(TypedDict):
    """results: measure by name, by ranking."""

    results: dict[str, dict[str, float]]


class RunsReport(Results):
    """What `tercet eval --run FILE --json` prints.

    missing_queries: by run, how many judged queries it lacks; each counts 0.
    """

    dataset: str
    split: str
    queries: int
    unjudged_queries: int
    missing_queries: dict[str, int]


def measured(qrels: Mapping[str, Mapping[str, int]], rankings: Rankings, measuring: Measuring) -> Results:
    """What is reported of rankings. qrels: grade by document id, by query id."""
    found = {name: figures(qrels, ranking, measuring.measures) for name, ranking in rankings.items()}
    return Results(results={name: each.means for name, each in found.items()})


def score_runs(folder: Path, files: Sequence[Path], measuring: Measuring) -> RunsReport:
    """Scores run files against the judgments of a folder; neither its corpus nor an encoder is needed.

    A run is called as its file is without the ending, or by its whole path where two would be called alike.
    Raises DatasetError naming file and line, and MeasureError where the depth is less than measures need.
    """
    judged = read_judged_queries(folder, measuring.split)
    depth = None if measuring.depth is None else measuring.ranks
    rankings = {name: read_run(path, depth) for name, path in run_names(files).items()}
    for ranking, path in zip(rankings.values(), files, strict=True):
        if not ranking.keys() & judged.qrels.keys():
            raise DatasetError(
                f"{path}: has none of the queries that qrels/{measuring.split}.tsv judges; "
                "give the run of these queries, or their split"
            )
    return RunsReport(
        dataset=folder.resolve().name,
        split=measuring.split,
        queries=len(judged.queries),
        unjudged_queries=judged.unjudged_queries,
        missing_queries={
            name: len(judged.qrels.keys() - ranking.keys()) for name, ranking in rankings.items()
        },
        **measured(judged.qrels, rankings, measuring),
    )


def run_names(files: Sequence[Path]) -> dict[str, Path]:
    """Run files by what they are called in a report. Raises DatasetError for one that is given twice."""
    stems = {path.stem: path for path in files}
    named = stems if len(stems) == len(files) else {str(path): path for path in files}
    if len(named) != len(files):
        raise DatasetError("a run file is given twice; give each once")
    return named
