"""The best documents of a lexical query over the inverted indexes of many segments, as if they were one.

The bounds of all segments have one unit, so that what is found in some says how much a document of the others
has to have: a segment is not asked for its own best. Exact scores come last, over what is left of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from tercet.index.documents.row_set import RowSet
from tercet.index.files.pieces import read_ahead
from tercet.index.native.kernels import find_candidates, mask, quantize_query, score_candidates
from tercet.index.search.threads import DOCUMENTS_PER_THREAD
from tercet.index.sparse.inverted_index import InvertedIndex
from tercet.index.sparse.query import LexicalQuery
from tercet.models.cores import usable_cores
from tercet.models.representations import Bool, Float32, Int64

# Documents that are searched through in the time that one takes to be scored by itself.
DOCUMENTS_PER_ROW = 128
# Of what the k-th has, that terms which are not read have at most together, to begin with; 0 defers nothing.
DEFERRED_SHARE = 0.4
ALL_ALLOWED = mask(None)
GROUPS = 2 * usable_cores()  # of segments at most: few to begin, and to share the last of them well

BoundedCandidates = tuple[Int64, Int64, Int64]
"""Segments, ascending, rows and bounds, int64[K] each."""


class LexicalSearch:
    """A search for the k best documents and all that tie with the last. costs: documents of each part."""

    def __init__(
        self,
        indexes: Sequence[InvertedIndex],
        query: LexicalQuery,
        k: int,
        allowed: Sequence[RowSet | Bool | None],
    ) -> None:
        """query: of one term at least; k: above 0; allowed: of each segment the documents that may be found,
        as bool[N] or rows; None for all.
        """
        self._indexes = indexes
        self._query = query
        self._k = min(k, max(1, sum(index.documents for index in indexes)))
        self._records = tuple(index.record for index in indexes)
        self._terms = np.empty(query.terms.shape, np.int64)
        self._multipliers = np.empty(query.terms.shape, np.uint16)
        self._unit, self._slack, self._narrow = quantize_query(
            self._records, query.terms, query.weights, query.most, self._terms, self._multipliers
        )
        self._scored_singly: list[tuple[int, Int64]] = []
        masks = [ALL_ALLOWED] * len(indexes)
        for ordinal, some in enumerate(allowed):
            if some is None:
                continue
            if isinstance(some, RowSet) and len(some) * DOCUMENTS_PER_ROW <= indexes[ordinal].documents:
                self._scored_singly.append((ordinal, some.rows))
                self._terms[ordinal] = -1
            else:
                masks[ordinal] = mask(some.mask if isinstance(some, RowSet) else some)
        self._masks = tuple(masks)
        self._progress = np.array([1, 0], np.int64)  # the floor, and how many impacts were read
        self._edges, self.costs = _groups([index.documents for index in indexes])

    @property
    def parts(self) -> list[Callable[[], BoundedCandidates]]:
        """What finds candidates in some segments each, for threads to take."""
        return [partial(self.find, first, last) for first, last in pairwise(self._edges)]

    def find(self, first: int, last: int) -> BoundedCandidates:
        """What may be among the best of all segments, in those from `first` up to `last`."""
        return find_candidates(
            self._records,
            self._terms,
            self._multipliers,
            self._slack,
            self._query.least / self._query.most,
            self._k,
            self._masks,
            first,
            last,
            self._progress,
            self._narrow,
            DEFERRED_SHARE,
        )

    @property
    def impacts_read(self) -> int:
        """Of postings and columns, by all parts so far."""
        return int(self._progress[1])

    def best(self, parts: Sequence[BoundedCandidates]) -> tuple[Int64, Int64, Float32]:
        """The k documents with the largest Σ query weight · document weight, and all that tie with the last.

        parts: of all segments, in order. Returns segments int64[K], rows int64[K] and scores float32[K], best
        first, equal scores by segment and row, only scores above 0.
        """
        segments, rows, bounds = self._joined(parts)
        query = self._query
        read_ahead(segments, rows, lambda ordinal, some: self._indexes[ordinal].pieces(some))
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

    def _joined(self, groups: Sequence[BoundedCandidates]) -> BoundedCandidates:
        """What was found and reaches the last floor, and what is scored singly."""
        if len(groups) == 1 and not self._scored_singly:
            return groups[0]
        parts = list(groups)
        for ordinal, rows in self._scored_singly:
            # Nothing is known of these, so their bound is as high as one can be.
            highest = np.iinfo(np.uint16 if self._narrow else np.uint32).max
            parts.append((np.full(len(rows), ordinal), rows, np.full(len(rows), highest, np.int64)))
        segments, rows, bounds = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        kept = np.flatnonzero(bounds >= self._progress[0])
        if self._scored_singly:
            kept = kept[np.argsort(segments[kept], kind="stable")]
        return segments[kept], rows[kept], bounds[kept]


def _groups(documents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Segments of so many documents each, in groups that are worth a thread.

    Returns where each group begins, with the end of the last, and how many documents each has.
    """
    enough = max(DOCUMENTS_PER_THREAD, sum(documents) // GROUPS)
    edges, sizes = [0], [0]
    for ordinal, count in enumerate(documents):
        if sizes[-1] >= enough:
            edges.append(ordinal)
            sizes.append(0)
        sizes[-1] += count
    return [*edges, len(documents)], sizes
