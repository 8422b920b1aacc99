"""Rankings of one query by each side and by sums of sides, through the index or over every document."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from index.candidates import CandidateLimits, Weights
from index.fusion import best, weighted_sum
from index.scoring import DECIMALS
from index.snapshot import Snapshot
from models.representations import Representations

DEPTH = 100
SUM = "sum"
SIDES = MappingProxyType(
    {
        "dense": Weights(1.0, 0.0, 0.0),
        "sparse": Weights(0.0, 1.0, 0.0),
        "colbert": Weights(0.0, 0.0, 1.0),
        "dense+sparse": Weights(1.0, 1.0, 0.0),
    }
)


def exhaustive_rankings(snapshot: Snapshot, query: Representations, weights: Weights) -> dict[str, list[str]]:
    """The best `DEPTH` ids of all documents under each weighting, ties in order of id."""
    ids, scores = snapshot.score_all(query)
    encoded = [id.encode() for id in ids]
    # Rounded as the index does before it sums, so that equal documents tie here too.
    components = np.asarray(np.round(scores.astype(np.float64), DECIMALS), np.float64)

    def ranked(side: Weights) -> list[str]:
        sums = weighted_sum(components, side)
        return [ids[place] for place in best(sums, DEPTH, lambda places: [encoded[p] for p in places])]

    return {name: ranked(side) for name, side in (SIDES | {SUM: weights}).items()}


def indexed_rankings(
    snapshot: Snapshot, query: Representations, weights: Weights, limits: CandidateLimits
) -> dict[str, list[str]]:
    """As `exhaustive_rankings`, but of candidates: the dense and the lexical side rank what their own
    retriever proposes, the others the union of both."""
    alone = {"dense": CandidateLimits(limits.dense, 0), "sparse": CandidateLimits(0, limits.sparse)}
    rankings = {}
    for name, side in (SIDES | {SUM: weights}).items():
        # A ranking without token vectors need not score them.
        needed = query if side.colbert else query.keep(("dense", "sparse"))
        found = snapshot.search(needed, top_k=DEPTH, weights=side, candidates=alone.get(name, limits))
        rankings[name] = [hit.document.id for hit in found.hits]
    return rankings
