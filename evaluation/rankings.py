"""Rankings of one query by each side and by sums of sides, through the index or over every document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import best, relative_sum
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.models.representations import OUTPUTS, Float32, Representations

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


def weightings(snapshot: Snapshot, weights: Weights) -> dict[str, Weights]:
    """The weights of each ranking of sides that there are, by its name; those of `sum` are given.

    A collection with BM25 has two more: that side alone, and the sum with it.
    """
    settings = snapshot.settings
    lacking = [side for side in OUTPUTS if side not in settings.sides]
    named = {name: side for name, side in SIDES.items() if not any(getattr(side, other) for other in lacking)}
    named[SUM] = weights.of(settings.encoder_sides)
    if settings.bm25:
        named[BM25_WORDS] = Weights(0.0, 0.0, 0.0, 1.0)
        named[SUM_WITH_BM25] = replace(weights, bm25=1.0)
    return named


def exhaustive_rankings(
    snapshot: Snapshot, query: Representations, text: str, weights: Weights
) -> dict[str, list[str]]:
    """The best `DEPTH` ids of all documents under each weighting, ties in order of id.

    text: what the query's representations are of.
    """
    ids, scores = snapshot.score_all(query, text)
    return {name: ranking(ids, scores, side) for name, side in weightings(snapshot, weights).items()}


def ranking(ids: Sequence[str], scores: Float32, weights: Weights) -> list[str]:
    """The best `DEPTH` of documents with scores float32[N, S], ties in order of id."""
    sums = relative_sum(scores.astype(np.float64), weights)
    rows = best(sums, DEPTH, lambda rows: PackedBytes.of([ids[row].encode() for row in rows]))
    return [ids[row] for row in rows]


def indexed_rankings(
    snapshot: Snapshot, query: Representations, text: str, weights: Weights, limits: CandidateLimits
) -> dict[str, list[str]]:
    """As `exhaustive_rankings`, but of candidates: the dense side, the lexical side and BM25 rank what their
    own retriever proposes, the others the union of those that have a weight.
    """
    alone = {
        "dense": CandidateLimits(limits.dense, 0, 0),
        "sparse": CandidateLimits(0, limits.sparse, 0),
        BM25_WORDS: CandidateLimits(0, 0, limits.bm25),
    }
    rankings = {}
    for name, side in weightings(snapshot, weights).items():
        # A ranking without token vectors need not score them.
        needed = query if side.colbert else query.keep(("dense", "sparse"))
        result = snapshot.answer(SnapshotQuery(needed, text, DEPTH, side, alone.get(name, limits)))
        rankings[name] = [hit.document.id for hit in result.hits]
    return rankings
