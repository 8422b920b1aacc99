"""Which of a search's ordered candidates are its hits: a page of them, or the best of each group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from tercet.index.candidates import Page
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search.exact_scores import Candidates
from tercet.index.search.groups import Groups, group_values
from tercet.index.search.retrieval import ids_at
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float64, Int64

Key = TypeVar("Key", bytes, tuple[bytes, str])
"""An id, with the name of its collection where there are several."""

BEHIND_ALL = "~"  # any name of a collection


class Choice:
    """Chooses hits among K candidates, which it names by their numbers."""

    def __init__(
        self,
        candidates: int,
        ids_of: Callable[[Int64], PackedBytes],
        top_k: int,
        page: Page,
        groups: Groups | None = None,
        collections_of: Callable[[Int64], Sequence[str]] | None = None,
    ) -> None:
        """candidates: K; ids_of: gives the ids of some. groups: of each of which the best candidate may be a
        hit. collections_of: gives those of some candidates, where they are of several.
        """
        self.ids_of = ids_of
        self.top_k = top_k
        self.wanted = page.offset + top_k
        self.floor = -math.inf if page.min_score is None else page.min_score
        self._candidates = candidates
        self._page = page
        self._groups = groups
        self._collections_of = collections_of

    @staticmethod
    def among(
        segments: Sequence[Segment],
        candidates: Candidates,
        top_k: int,
        page: Page,
        group_by: str | None,
        collections: Sequence[str] | None = None,
    ) -> Choice:
        """Among candidates of segments. group_by: a keyword field, of each of whose values the best candidate
        may be a hit. collections: of the segments, where they are of several.
        """

        def collections_of(indices: Int64) -> list[str]:
            assert collections is not None  # noqa: S101 - asked for only then
            return [collections[ordinal] for ordinal in candidates.segments[indices].tolist()]

        return Choice(
            len(candidates),
            partial(ids_at, segments, candidates.segments, candidates.rows),
            top_k,
            page,
            None if group_by is None else Groups.of(group_values(segments, candidates, group_by)),
            None if collections is None else collections_of,
        )

    @property
    def depth(self) -> int:
        """How many of the best candidates decide what is chosen."""
        plain = self._groups is None and self._page.after is None
        return self.wanted if plain else self._candidates

    def of(self, order: Int64, sums: Float64) -> Int64:
        """The hits, `top_k` at most, among candidates from the floor up, given best first: int64[n].

        sums: float64[K], of all candidates.
        """
        if self._groups is not None:
            order = self._groups.best(order)
        first = self._page.offset if self._page.after is None else self._behind(order, sums[order])
        return order[first : first + self.top_k]

    def surely_of(self, order: Int64, highest: Float64) -> Int64:
        """The hits among candidates whose sums are not known, by what they are at least.

        highest: float64[K], what they are at most. Behind a cursor are only those whose highest sum is there.
        """
        if self._page.after is None:
            return self.of(order, highest)
        if self._groups is not None:
            order = self._groups.best(order)
        return order[highest[order] < self._page.after.score][: self.top_k]

    def _behind(self, order: Int64, sums: Float64) -> int:
        """How many ordered candidates are not behind the page's cursor. sums: float64[n], descending."""
        after = self._page.after
        assert after is not None  # noqa: S101 - asked for only then
        first, last = (int(np.searchsorted(-sums, -after.score, side)) for side in ("left", "right"))
        id = after.id.encode(errors="surrogatepass")
        equal = self.ids_of(order[first:last]).take(np.arange(last - first))
        if self._collections_of is None:
            return first + _not_behind(equal, id)
        names = self._collections_of(order[first:last])
        return first + _not_behind(list(zip(equal, names, strict=True)), (id, after.collection or BEHIND_ALL))


def _not_behind(ordered: Sequence[Key], key: Key) -> int:
    """How many are not behind the one of a key, or where it would be."""
    # Sums that differ less than their numbers can say stay in their order.
    return ordered.index(key) + 1 if key in ordered else sum(other < key for other in ordered)
