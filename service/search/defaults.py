"""What a search uses where it does not say: what is stored for the collection, or else the usual."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.languages.sample import NO_LANGUAGES
from tercet.service.collections.readable import ReadableSnapshot, SearchTarget


@dataclass(frozen=True, slots=True)
class WantedEffort:
    """How wide the approximate dense search shall look; None leaves it to the collection."""

    ef_search: int | None = None
    nprobe: int | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to the collection."""
        return self.ef_search is not None and self.nprobe is not None

    def used(self, stored: DenseEffort | None) -> DenseOptions:
        """The effort wanted, else the collection's, else the usual one."""
        usual = DenseOptions() if stored is None else stored.options
        return DenseOptions(
            usual.ef_search if self.ef_search is None else self.ef_search,
            usual.nprobe if self.nprobe is None else self.nprobe,
        )


@dataclass(frozen=True, slots=True)
class WantedCandidates:
    """How many documents each retriever shall propose; None leaves it to the collection.

    BM25 proposes only where it has a weight, whatever is wanted.

    largest: a server's limit, which what is left to the collection keeps to.
    """

    dense: int | None = None
    sparse: int | None = None
    bm25: int | None = None
    largest: int | None = None

    def complete(self, weights: Weights) -> bool:
        """Whether nothing that a search with these weights needs is left to the collection."""
        return not (self.dense is None or self.sparse is None or (self.bm25 is None and weights.bm25))


def weights_used(wanted: Weights | None, target: SearchTarget[ReadableSnapshot]) -> Weights:
    """The weights wanted, else those of the collection, else what is usual for its languages, as far as they
    are known.
    """
    if wanted is not None:
        return wanted
    if target.defaults is not None:
        return target.defaults.weights
    return (target.snapshot.known_languages or NO_LANGUAGES).usual_weights()


def rerank_weights(target: SearchTarget[ReadableSnapshot]) -> Weights:
    """A collection's for texts that have no BM25 score: defaults that weigh nothing else leave 1, 1, 1."""
    weights = weights_used(None, target)
    return weights if weights.dense or weights.sparse or weights.colbert else Weights()


def candidates_used(
    wanted: WantedCandidates,
    top_k: int,
    weights: Weights,
    defaults: SearchDefaults | None,
    offset: int = 0,
) -> CandidateLimits:
    """The candidates wanted, else those of the collection, else 200; defaults are enough for top_k.

    Where so many and an offset go beyond them they are doubled until they do not, so that many pages have the
    same.
    """
    usual = CandidateLimits() if defaults is None else defaults.candidates

    def chosen(requested: int | None, by_default: int) -> int:
        if requested is not None:
            return requested
        enough = max(by_default, top_k)
        while enough < offset + top_k:
            enough *= 2
        return enough if wanted.largest is None else min(enough, wanted.largest)

    return CandidateLimits(
        chosen(wanted.dense, usual.dense),
        chosen(wanted.sparse, usual.sparse),
        chosen(wanted.bm25, usual.bm25),
    ).used(weights)
