"""How sure a collection's searches are, fitted on its judged queries and tried on held-out ones.

Each query counts twice: as it is, and in the collection without its relevant documents, as one that nothing
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from tercet.evaluation.calibrating import Examples, ExampleSet, calibration_error, fitted
from tercet.evaluation.judged_scores import JudgedScores
from tercet.index.catalog.calibration import Calibration
from tercet.models.representations import OUTPUTS, Bool, Float64, Int64, Representations

QueryHits = tuple[Examples, Examples]
"""The best hits of one query, as it is and without its relevant documents."""
ERROR_DECIMALS = 6


class ConfidenceReport(TypedDict):
    """Expected calibration error of hits of held-out queries, by what was known and as fitted on the others.

    before: None where nothing was known. threshold: of the fit on all queries.
    """

    before: float | None
    fitted: float
    threshold: float
    stored: bool


def query_hits(query: Representations, judged: JudgedScores, limit: int) -> QueryHits:
    """The hits of a judged query. limit: place of the number of candidates that is usual."""
    usual = judged.proposed[limit]
    scores, relevant = judged.components[usual, : len(OUTPUTS)], judged.grades[usual] > 0
    length = 0 if query.colbert is None else int(query.colbert.offsets[-1])
    return Examples.of(scores, relevant, length), Examples.without_answers(scores, relevant, length)


def calibrated(
    hits: Sequence[QueryHits], prior: Calibration | None, folds: Sequence[Int64]
) -> tuple[Calibration, ConfidenceReport]:
    """The calibration of all queries, and a report of none that is stored. prior: what came with the
    checkpoint; folds: numbers int64[F] of queries that are held out in turn.
    """
    before, after, answers = list[Float64](), list[Float64](), list[Bool]()
    for fold in folds:
        others = _fitted([hits[number] for number in range(len(hits)) if number not in fold], prior)
        for query in (query for number in fold.tolist() for query in hits[number]):
            answers.append(query.answers)
            after.append(others.confidences(query.features))
            if prior is not None:
                before.append(prior.confidences(query.features))
    calibration = _fitted(hits, prior)
    report = ConfidenceReport(
        before=_error(before, answers) if before else None,
        fitted=_error(after, answers),
        threshold=calibration.threshold,
        stored=False,
    )
    return calibration, report


def _fitted(hits: Sequence[QueryHits], prior: Calibration | None) -> Calibration:
    answered, unanswered = zip(*hits, strict=True)
    return fitted([ExampleSet(answered, unanswered)], prior)


def _error(confidences: Sequence[Float64], answers: Sequence[Bool]) -> float:
    together = np.concatenate(answers).astype(np.float64)
    error = calibration_error(np.concatenate(confidences), together, np.ones(len(together)))
    return round(error, ERROR_DECIMALS)
