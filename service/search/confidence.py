"""How sure a search is of its hits, whatever orders them: no weight, boost or re-ranker changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.candidates import Hit, SearchResult, Weights
from tercet.index.catalog.calibration import Calibration, features_of
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.search.snapshot_query import FIRST_PAGE, LEADERS, SnapshotQuery
from tercet.models.representations import OUTPUTS, Float64
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.exceptions import InvalidRequestError
from tercet.service.search.query import SearchQuery
from tercet.service.search.stored_queries import LikeDocument, LikeExamples

CONFIDENCE_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class RatedHits:
    """Hits with their confidences, and whether the best document by the usual sum reaches the threshold."""

    hits: list[Hit]
    confidences: list[float]
    confident: bool

    def at_least(self, least: float) -> RatedHits:
        """Without hits of less confidence."""
        kept = [number for number, confidence in enumerate(self.confidences) if confidence >= least]
        return RatedHits(
            [self.hits[number] for number in kept],
            [self.confidences[number] for number in kept],
            self.confident,
        )


def calibration_used(
    query: SearchQuery, settings: CollectionSettings, calibration: Calibration | None
) -> Calibration | None:
    """The calibration that a query's hits go by; None where it is not asked for, or there is none.

    Raises InvalidRequestError where `min_confidence` needs one.
    """
    if not query.needs_confidence:
        return None
    reason = _lacking(query, settings, calibration)
    if reason is None:
        return calibration
    if query.min_confidence is not None:
        raise InvalidRequestError(
            f"min_confidence is {query.min_confidence:g}, but {reason}, or leave min_confidence out",
            "min_confidence",
            "unsupported",
        )
    return None


def _lacking(query: SearchQuery, settings: CollectionSettings, calibration: Calibration | None) -> str | None:
    """Why it is not known how sure hits are, and what to do; None where it is known."""
    if isinstance(query.query, LikeDocument | LikeExamples):
        return f"{query.param} is a stored document, which nothing answers; search for a text"
    sides = settings.sides
    if not isinstance(query.query, str):
        sides = tuple(side for side in sides if getattr(query.query, side) is not None)
    if sides != OUTPUTS:
        return f"that takes all of {', '.join(OUTPUTS)}, and there is only {', '.join(sides)}; give all three"
    if calibration is None:
        return (
            f"checkpoint {settings.encoder!r} came without a calibration for collection {settings.name!r}; "
            f"make one from judged queries with `tercet tune {settings.name} FOLDER`"
        )
    return None


def with_leaders(query: SnapshotQuery, snapshot: ReadableSnapshot) -> SnapshotQuery:
    """Asks for the best by the usual sum, too, where they may not be among the hits. It blocks."""
    # Those of a search without weights, whatever is stored for the collection.
    usual = snapshot.languages().usual_weights()
    return query if _has_leaders(query, usual) else replace(query, leading=usual)


def rated(
    snapshot: ReadableSnapshot, query: SnapshotQuery, result: SearchResult, calibration: Calibration
) -> RatedHits:
    """The hits of a query of all three sides, with their confidences. It may search, so it blocks.

    query: what the result answers, as `with_leaders` gave it. Raises as `ReadableSnapshot.answer`.
    """
    hits, usual = result.hits, query.leading or query.weights
    leaders = result.leaders
    if leaders is None:
        leaders = _scores(hits if query.leading is None else snapshot.answer(_leading(query, usual)).hits)
    if not len(leaders):
        return RatedHits(hits, [], confident=False)
    order = np.argsort(-(leaders @ usual.array(len(OUTPUTS))))[:LEADERS]  # a re-ranker has another
    scores = np.concatenate([leaders[order], _scores(hits)])
    assert query.query.colbert is not None  # noqa: S101 - of all three sides
    length = int(query.query.colbert.offsets[-1])
    confidences = calibration.confidences(features_of(scores, length, usual)).round(CONFIDENCE_DECIMALS)
    return RatedHits(
        hits, confidences[len(order) :].tolist(), confident=bool(confidences[0] >= calibration.threshold)
    )


def _has_leaders(query: SnapshotQuery, usual: Weights) -> bool:
    """Whether the best by the sum with these weights are among the hits."""
    return (
        query.top_k >= LEADERS
        and query.weights == usual
        and query.fusion == "sum"
        and query.page == FIRST_PAGE
        and query.group_by is None
        and not query.boosts
    )


def _leading(query: SnapshotQuery, usual: Weights) -> SnapshotQuery:
    """The search for the best by the sum with these weights, without their contents."""
    return replace(
        query,
        top_k=LEADERS,
        weights=usual,
        fusion="sum",
        page=FIRST_PAGE,
        group_by=None,
        boosts=(),
        contents=False,
        leading=None,
    )


def _scores(hits: Sequence[Hit]) -> Float64:
    """Scores float64[N, 3] of hits that have all three."""
    scores = [(hit.scores.dense, hit.scores.sparse, hit.scores.colbert or 0.0) for hit in hits]
    return np.array(scores, np.float64).reshape(len(hits), 3)
