"""The best documents of a lexical query over the inverted indexes of many segments, as if they were one.

The bounds of all segments have one unit, so that what is found in some says how much a document of the others
has to have: a segment is not asked for its own best. Exact scores come last, over what is left of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from index.documents.row_set import RowSet
from index.errors import InvalidQueryError
from index.files.pieces import read_ahead
from index.native.kernels import (
    find_candidates,
    mask,
    quantize_query,
    score_candidates,
    score_in_segments,
)
from index.sparse.inverted_index import InvertedIndex
from models.representations import Bool, Float32, Float64, Int32, Int64

# Documents that are searched through in the time that one takes to be scored by itself.
DOCUMENTS_PER_ROW = 128
ALL_ALLOWED = mask(None)

Found = tuple[Int64, Int64, Int64]
"""Segments, ascending, rows and bounds, int64[K] each."""


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """T terms of a query as S segments number them, and their weights.

    terms: int32[S, T], ascending in each segment but for -1, which it lacks; weights: float32[T], above 0.
    Where forward rows hold frequencies tf, a weight is tf / (tf + base + slope · length), and in each segment
    between `least` and `most` times, float64[S] both, what its index was built with.
    """

    terms: Int32
    weights: Float32
    base: float
    slope: float
    least: Float64
    most: Float64

    @staticmethod
    def plain(token_ids: Int32, weights: Float32, segments: int) -> LexicalQuery:
        """A query whose terms all segments number alike: token_ids int32[Q] in any order, weights float32[Q].

        Raises InvalidQueryError for weights that are negative or not finite.
        """
        return LexicalQuery.of(*_checked_query(token_ids, weights), segments)

    @staticmethod
    def of(token_ids: Int32, weights: Float32, segments: int) -> LexicalQuery:
        """The same of ascending distinct token ids int32[T] with weights float32[T] above 0."""
        ones = np.ones(segments)
        terms = np.repeat(token_ids[None], segments, axis=0)
        return LexicalQuery(terms, weights, 0.0, 0.0, ones, ones)

    def sums(self, indexes: Sequence[InvertedIndex], segments: Int64, rows: Int64) -> Float64:
        """Σ query weight · document weight of rows int64[K] of segments int64[K], ascending: float64[K]."""
        if not len(self.weights):
            return np.zeros(len(rows))
        records = tuple(index.record for index in indexes)
        return score_in_segments(records, self.terms, self.weights, self.base, self.slope, segments, rows)


class LexicalSearch:
    """A search for the k best documents; threads may look through some of the segments each."""

    def __init__(
        self,
        indexes: Sequence[InvertedIndex],
        query: LexicalQuery,
        k: int,
        allowed: Sequence[RowSet | Bool | None],
    ) -> None:
        """allowed: of each segment the documents that may be found, as bool[N] or rows; None for all."""
        self._indexes = indexes
        self._query = query
        self._k = min(k, max(1, sum(index.documents for index in indexes)))
        self._records = tuple(index.record for index in indexes)
        self._places = np.empty(query.terms.shape, np.int64)
        self._multipliers = np.empty(query.terms.shape, np.uint16)
        self._unit, self._slack, self._narrow = quantize_query(
            self._records, query.terms, query.weights, query.most, self._places, self._multipliers
        )
        self._scored_singly: list[tuple[int, Int64]] = []
        masks = [ALL_ALLOWED] * len(indexes)
        for place, some in enumerate(allowed):
            if some is None:
                continue
            if isinstance(some, RowSet) and len(some) * DOCUMENTS_PER_ROW <= indexes[place].documents:
                self._scored_singly.append((place, some.rows))
                self._places[place] = -1
            else:
                masks[place] = mask(some.mask if isinstance(some, RowSet) else some)
        self._masks = tuple(masks)
        self._floors = np.ones(1, np.int64)

    def find(self, first: int, last: int) -> Found:
        """What may be among the best of all segments, in those from `first` up to `last`."""
        return find_candidates(
            self._records,
            self._places,
            self._multipliers,
            self._slack,
            self._query.least / self._query.most,
            self._k,
            self._masks,
            first,
            last,
            self._floors,
            self._narrow,
        )

    def best(self, found: Sequence[Found]) -> tuple[Int64, Int64, Float32]:
        """The k documents with the largest Σ query weight · document weight, and all that tie with the last.

        found: of all segments, in order. Returns segments int64[K], rows int64[K] and scores float32[K], best
        first, equal scores by segment and row, only scores above 0.
        """
        segments, rows, bounds = self._joined(found)
        query = self._query
        read_ahead(segments, rows, lambda place, some: self._indexes[place].pieces(some))
        kept, scores = score_candidates(
            self._records,
            query.terms,
            query.weights,
            query.base,
            query.slope,
            segments,
            rows,
            bounds,
            self._unit,
            self._k,
        )
        order = kept[np.lexsort((rows[kept], segments[kept], -scores[kept]))]
        return segments[order], rows[order], scores[order]

    def _joined(self, found: Sequence[Found]) -> Found:
        """What was found and reaches the last floor, and what is scored singly."""
        if len(found) == 1 and not self._scored_singly:
            return found[0]
        parts = list(found)
        for place, rows in self._scored_singly:
            # Nothing is known of these, so their bound is as high as one can be.
            highest = np.iinfo(np.uint16 if self._narrow else np.uint32).max
            parts.append((np.full(len(rows), place), rows, np.full(len(rows), highest, np.int64)))
        segments, rows, bounds = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        kept = np.flatnonzero(bounds >= self._floors[0])
        if self._scored_singly:
            kept = kept[np.argsort(segments[kept], kind="stable")]
        return segments[kept], rows[kept], bounds[kept]


def search_index(
    index: InvertedIndex, token_ids: Int32, weights: Float32, k: int, allowed: RowSet | None = None
) -> tuple[Int64, Float32]:
    """The k best documents of one index, and all that tie with the last: rows int64[K], scores float32[K].

    token_ids: int32[T], any order, unknown ones match nothing; weights: float32[T]. Best first, equal scores
    by row, only scores above 0. Raises InvalidQueryError for weights that are negative or not finite.
    """
    query = LexicalQuery.plain(token_ids, weights, 1)
    if k <= 0 or len(query.weights) == 0:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    search = LexicalSearch([index], query, k, [allowed])
    _, rows, scores = search.best([search.find(0, 1)])
    return rows, scores


def _checked_query(token_ids: Int32, weights: Float32) -> tuple[Int32, Float32]:
    """Ascending distinct token ids int32[Q] and their summed weights float32[Q], all above 0."""
    token_ids, weights = np.asarray(token_ids, np.int32), np.asarray(weights, np.float32)
    if len(token_ids) != len(weights):
        raise InvalidQueryError(
            f"a sparse query has {len(token_ids)} token ids but {len(weights)} weights; give one each"
        )
    smallest, largest = weights.min(initial=1), weights.max(initial=0)
    if not (smallest >= 0 and largest < np.inf):
        raise InvalidQueryError(
            "a sparse query has a weight that is negative or not finite; weights must be 0 or more"
        )
    if smallest > 0 and (token_ids[1:] > token_ids[:-1]).all():
        return np.array(token_ids), np.array(weights)
    distinct, inverse = np.unique(token_ids, return_inverse=True)
    totals = np.bincount(inverse, weights, len(distinct))
    summed = np.minimum(totals, np.finfo(np.float32).max).astype(np.float32)
    return distinct[summed > 0], summed[summed > 0]
