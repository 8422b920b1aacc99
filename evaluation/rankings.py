"""Rankings of one query by each side and by sums of sides, through the index or over every document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import as_weighted, best, relative_sum
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.models.representations import OUTPUTS, Float32, Output, Representations

Ranking = dict[str, float]
"""Scores by document id, best first."""
DEPTH = 100
SUM = "sum"
BM25_WORDS = "bm25-words"
SUM_WITH_BM25 = "sum+bm25-words"
SIDES = MappingProxyType(
    {
        "dense": Weights(1.0, 0.0, 0.0),
        "sparse": Weights(0.0, 1.0, 0.0),
        "colbert": Weights(0.0, 0.0, 1.0),
        "dense+sparse": Weights(1.0, 1.0, 0.0),
    }
)


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """Which rankings are made of each query, and how.

    weights: of each ranking, by its name. limits: None to rank every document. depth: how many of the best
    are kept.
    """

    weights: Mapping[str, Weights]
    limits: CandidateLimits | None
    depth: int = DEPTH


def weightings(sides: Collection[Output], weights: Weights, *, bm25: bool) -> dict[str, Weights]:
    """The weights of the rankings of an encoder's sides, by name; those of the ranking `sum` are given.

    A collection with BM25 has two more: that side alone, and the sum with it.
    """
    lacking = [side for side in OUTPUTS if side not in sides]
    named = {name: side for name, side in SIDES.items() if not any(getattr(side, other) for other in lacking)}
    named[SUM] = weights.of(sides)
    if bm25:
        named[BM25_WORDS] = Weights(0.0, 0.0, 0.0, 1.0)
        named[SUM_WITH_BM25] = replace(weights, bm25=1.0)
    return named


def query_rankings(
    snapshot: Snapshot, query: Representations, text: str, plan: RankingPlan
) -> dict[str, Ranking]:
    """The best documents of one query under each weighting, ties in order of id.

    text: what the query's representations are of. Of candidates, the dense side, the lexical side and BM25
    rank what their own retriever proposes, the others the union of those that have a weight.
    """
    if plan.limits is None:
        ids, scores = snapshot.score_all(query, text)
        return {name: ranking(ids, scores, side, plan.depth) for name, side in plan.weights.items()}
    alone = {
        "dense": CandidateLimits(plan.limits.dense, 0, 0),
        "sparse": CandidateLimits(0, plan.limits.sparse, 0),
        BM25_WORDS: CandidateLimits(0, 0, plan.limits.bm25),
    }
    rankings = {}
    for name, weights in plan.weights.items():
        # A ranking without token vectors need not score them.
        needed = query if weights.colbert else query.keep(("dense", "sparse"))
        limits = alone.get(name, plan.limits)
        request = SnapshotQuery(needed, text, plan.depth, weights, limits, contents=False)
        rankings[name] = {hit.document.id: hit.score for hit in snapshot.answer(request).hits}
    return rankings


def ranking(ids: Sequence[str], scores: Float32, weights: Weights, depth: int = DEPTH) -> Ranking:
    """The best of documents with scores float32[N, S], ties in order of id."""
    sums = relative_sum(scores.astype(np.float64), weights)
    rows = best(sums, depth, lambda rows: PackedBytes.of([ids[row].encode() for row in rows]))
    weighted = as_weighted(sums[rows], weights, scores.shape[1])
    return dict(zip([ids[row] for row in rows], weighted.tolist(), strict=True))
