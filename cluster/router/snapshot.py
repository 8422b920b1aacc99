"""A collection over shards, as the service reads one snapshot: all that one request asks of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster.router.collection import View
from cluster.router.search import Asked, search
from cluster.router.terms import KnownTerms
from index.candidates import CandidateLimits, DenseOptions, Page, SearchResult, Weights
from index.catalog.settings import CollectionSettings
from index.documents.boosts import Boost, check_boosts
from index.documents.filters import Filter, check_filter
from index.fusion import Fusion
from index.search.query import check_fusion, check_group_by, check_options, check_page, check_weights
from index.snapshot import DEFAULT_LIMITS, DEFAULT_OPTIONS, DEFAULT_WEIGHTS, FIRST_PAGE
from models.representations import Float32, Float64, Int32, Representations


class ShardedIdf:
    """The idf of all shards together, at the states of a view; see `index.sparse.idf.CollectionIdf`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors idf(t) / m float64[T] of some terms. Asks shards that were not heard yet."""
        view = self._view
        terms = view.terms if view.is_fixed else view.tell()[0]
        return terms.factors(token_ids)

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32:
        """A query's weights float32[T], times the factors of their terms."""
        return (weights * self.of_terms(token_ids)).astype(np.float32)


class ShardedSnapshot:
    """One request's view of a collection over shards, in the place of `index.snapshot.Snapshot`.

    What it asks first fixes the state of each shard, and all else is of the same states. Its methods wait for
    shards, so they are for threads other than the event loop's.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.settings: CollectionSettings = view.known.description.settings
        self.idf = ShardedIdf(view) if self.settings.lexical == "idf" else None

    @property
    def version(self) -> str:
        """Of all shards, at the states that it is fixed at."""
        return self._fixed().version

    @property
    def documents(self) -> int:
        """How many there are in all shards."""
        return sum(self._fixed().documents)

    @property
    def lost(self) -> tuple[str, ...]:
        """The shards that gave no answer, where that was allowed."""
        return self._view.asking.lost

    def search(
        self,
        query: Representations,
        *,
        text: str | None = None,
        top_k: int = 10,
        weights: Weights = DEFAULT_WEIGHTS,
        candidates: CandidateLimits = DEFAULT_LIMITS,
        filter: Filter | None = None,
        dense_options: DenseOptions = DEFAULT_OPTIONS,
        page: Page = FIRST_PAGE,
        group_by: str | None = None,
        boosts: Sequence[Boost] = (),
        fusion: Fusion = "sum",
        without: Sequence[str] = (),
        contents: bool = True,
    ) -> SearchResult:
        """As `Snapshot.search`; raises what asking shards raises, too."""
        candidates, fields = candidates.used(weights), self.settings.fields
        check_options(top_k, candidates, dense_options)
        check_page(page)
        check_group_by(group_by, fields)
        check_weights(query, text, weights, self.settings)
        check_boosts(boosts, fields)
        check_fusion(fusion)
        if filter is not None:
            check_filter(filter, fields)
        return search(
            self._view,
            Asked(
                query,
                text,
                top_k,
                weights,
                candidates,
                dense_options,
                filter,
                page,
                group_by,
                boosts,
                fusion,
                without,
                contents,
            ),
        )

    def _fixed(self) -> KnownTerms:
        return self._view.terms if self._view.is_fixed else self._view.tell()[0]
