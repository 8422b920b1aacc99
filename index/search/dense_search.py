"""The best documents of the dense side over all segments.

What a search costs grows with what is asked for, that of a graph much and a scan a little, and of many
segments each has but a few of the best. So a segment is first asked for as many as fall to it where these are
spread evenly, and some to spare; and again where all that it gave may be among the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.dense.expectation import likely_at_most
from tercet.index.dense.scan import DenseScan, Scanned, SegmentNeighbors
from tercet.index.documents.row_set import RowSet
from tercet.index.search.list_search import Listed, search_lists
from tercet.index.search.segment_search import search_segment
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float32, Int64

NOTHING: SegmentNeighbors = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


class DenseSearch:
    """A search for the k best documents, and maybe more, by their dense vectors.

    costs: documents of each part.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        query: Float32,
        k: int,
        allowed: Sequence[RowSet | None],
        options: DenseOptions,
    ) -> None:
        """allowed: of each segment the documents that may be returned, or None for all that are not deleted.
        options: the effort of a search for k in one segment; a share takes a share of what is given.
        """
        self._segments, self._query = segments, query
        self._allowed, self._options = allowed, options
        self._passing = [
            segment.documents_kept if rows is None else len(rows)
            for segment, rows in zip(segments, allowed, strict=True)
        ]
        self._total = max(1, sum(self._passing))
        self._k = k = min(k, self._total)
        self._counts = [min(k, likely_at_most(k * count / self._total)) for count in self._passing]
        self._efforts: dict[int, DenseOptions] = {}
        self._listed: list[Listed] = []
        self._others: list[int] = []
        scanned: list[Scanned] = []
        for ordinal, segment in enumerate(segments):
            rows, index = allowed[ordinal], segment.dense_index
            if _is_divided(segment):
                self._others.append(ordinal)
            elif index.scans_for(self._counts[ordinal], rows, self._effort(self._counts[ordinal])):
                scanned.append(self._scanned(ordinal))
            elif self._passing[ordinal] and index.has_lists:
                # What is deleted often lay together: near it, lists would propose nothing else.
                passing = segment.allowed(None) if rows is None else rows
                self._listed.append(Listed(ordinal, segment, passing))
            elif self._passing[ordinal]:
                self._others.append(ordinal)
        self._scan = DenseScan(scanned, query, k)
        self.costs = [*(self._passing[ordinal] for ordinal in self._others), *self._scan.costs]

    @property
    def parts(self) -> list[Callable[[], SegmentNeighbors | None]]:
        """What searches one segment each, or some of the rows that are scanned, for threads to take."""
        return [*(partial(self._propose, ordinal) for ordinal in self._others), *self._scan.parts]

    def best(self, done: Sequence[SegmentNeighbors | None]) -> SegmentNeighbors:
        """The best of all parts, and of lists; what gave too little is asked again."""
        first = dict(zip(self._others, done, strict=False))
        nearest = {ordinal: parts for ordinal, parts in first.items() if parts is not None}
        rest = [part for part in done[len(self._others) :] if part is not None]
        left = [self._scanned(ordinal) for ordinal, parts in first.items() if parts is None]
        if left:
            scan = DenseScan(left, self._query, self._k)
            rest += segment_threads().run(scan.parts, scan.costs)
        if self._listed:
            rest.append(search_lists(self._listed, self._query, self._k, self._total, self._options))
        counts, k = self._counts, self._k
        while True:
            joined = _joined([*nearest.values(), *rest])
            more = [ordinal for ordinal in nearest if counts[ordinal] < min(k, self._passing[ordinal])]
            if not more:
                return joined
            lowest = _lowest(joined, k)
            short = [ordinal for ordinal in more if nearest[ordinal][2].min(initial=math.inf) > lowest]
            if not short:
                return joined
            for ordinal in short:
                counts[ordinal] = (
                    k if self._segments[ordinal].dense_index.scans else min(k, 2 * counts[ordinal])
                )
                nearest[ordinal] = self._nearest(ordinal, counts[ordinal])

    def _propose(self, ordinal: int) -> SegmentNeighbors | None:
        """What one segment proposes. None where it has to be scanned, too, as too little of what lies near
        the query is allowed.
        """
        segment, rows, count = self._segments[ordinal], self._allowed[ordinal], self._counts[ordinal]
        if rows is None or _is_divided(segment):
            return self._nearest(ordinal, count)
        nearest = segment.dense_index.without_scan(self._query, count, rows, self._effort(count))
        return None if nearest is None else _of_segment(ordinal, nearest)

    def _scanned(self, ordinal: int) -> Scanned:
        segment, rows = self._segments[ordinal], self._allowed[ordinal]
        return Scanned(
            ordinal, segment.dense_index.record, len(segment), segment.kept if rows is None else rows
        )

    def _effort(self, count: int) -> DenseOptions:
        if self._options.ef_search is None:
            return self._options
        if count not in self._efforts:  # most segments are asked for as many as others
            ef_search = math.ceil(self._options.ef_search * count / self._k)
            self._efforts[count] = replace(self._options, ef_search=ef_search)
        return self._efforts[count]

    def _nearest(self, ordinal: int, count: int) -> SegmentNeighbors:
        segment = self._segments[ordinal]
        nearest = search_segment(segment, self._query, count, self._allowed[ordinal], self._effort(count))
        return _of_segment(ordinal, nearest)


def _is_divided(segment: Segment) -> bool:
    """Whether a document of it may have several vectors."""
    return segment.windows is not None and not segment.windows.undivided


def _of_segment(ordinal: int, nearest: tuple[Int64, Float32]) -> SegmentNeighbors:
    rows, scores = nearest
    return np.full(len(rows), ordinal), rows, scores


def _lowest(nearest: SegmentNeighbors, k: int) -> float:
    """The score of the k-th best; less than any where there are fewer."""
    _, _, scores = nearest
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else -math.inf


def _joined(parts: Sequence[SegmentNeighbors]) -> SegmentNeighbors:
    segments, rows, scores = (np.concatenate(columns) for columns in zip(NOTHING, *parts, strict=True))
    return segments, rows, scores
