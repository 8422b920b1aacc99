"""What a search uses where it does not say: the collection's defaults, or else 1, 1, 1 and 200 candidates."""

from __future__ import annotations

from dataclasses import dataclass

from index.candidates import CandidateLimits, Weights, default_candidates
from index.defaults import SearchDefaults


@dataclass(frozen=True, slots=True)
class WantedCandidates:
    """How many documents each retriever shall propose; None leaves it to the collection.

    largest: a server's limit, which what is left to the collection keeps to.
    """

    dense: int | None = None
    sparse: int | None = None
    largest: int | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to the collection."""
        return self.dense is not None and self.sparse is not None


def weights_used(wanted: Weights | None, defaults: SearchDefaults | None) -> Weights:
    """The weights wanted, else those of the collection, else 1, 1, 1."""
    if wanted is not None:
        return wanted
    return Weights() if defaults is None else defaults.weights


def candidates_used(wanted: WantedCandidates, top_k: int, defaults: SearchDefaults | None) -> CandidateLimits:
    """The candidates wanted, else those of the collection, else 200; defaults are enough for top_k."""
    usual = CandidateLimits(default_candidates(top_k), default_candidates(top_k))
    if defaults is not None:
        stored = defaults.candidates
        usual = CandidateLimits(max(stored.dense, top_k), max(stored.sparse, top_k))
    largest = max(usual.dense, usual.sparse) if wanted.largest is None else wanted.largest
    return CandidateLimits(
        min(usual.dense, largest) if wanted.dense is None else wanted.dense,
        min(usual.sparse, largest) if wanted.sparse is None else wanted.sparse,
    )
