"""The best documents of segments whose dense side is lists of short codes.

Codes say about what a vector's score is, and vectors are far larger than codes. So what all segments propose
is merged by its codes, and of the best of all alone the vectors are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.dense.expectation import likely_at_most
from tercet.index.dense.scan import SegmentNeighbors
from tercet.index.documents.row_set import RowSet
from tercet.index.native.kernels import products_at
from tercet.index.search.segment_search import search_segment
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float32, Int64

VECTORS_READ = 8  # for each document that is wanted


@dataclass(frozen=True, slots=True)
class Listed:
    """A segment with lists: its ordinal, and which rows may be returned, or None if that is all of them."""

    ordinal: int
    segment: Segment
    allowed: RowSet | None

    @property
    def passing(self) -> int:
        """How many documents may be returned."""
        return len(self.segment) if self.allowed is None else len(self.allowed)

    def propose(self, query: Float32, count: int, options: DenseOptions) -> tuple[Int64, Float32]:
        """So many distinct rows, with the scores of their codes."""
        return self.segment.dense_index.propose_from_lists(query, count, self.allowed, options)

    def rows_like(self, rows: Int64) -> Int64:
        """All rows with the vectors of these that may be returned."""
        alike = self.segment.dense_index.rows_like(rows)
        return alike if self.allowed is None else alike[self.allowed.has(alike)]


def search_lists(
    listed: Sequence[Listed], query: Float32, k: int, total: int, options: DenseOptions
) -> SegmentNeighbors:
    """The k best of these segments, and more, by their vectors: segments, rows and scores.

    total: documents that may be returned from all segments, of these and other kinds.
    """
    wanted = VECTORS_READ * k
    counts = [min(wanted, likely_at_most(wanted * lists.passing / total)) for lists in listed]
    sizes = [lists.passing for lists in listed]
    parts = [
        partial(lists.propose, query, count, options) for lists, count in zip(listed, counts, strict=True)
    ]
    proposed = segment_threads().run(parts, sizes)
    while True:
        scores = np.concatenate([np.empty(0, np.float32), *(scores for _, scores in proposed)])
        lowest = -np.inf
        if len(scores) > wanted:
            lowest = float(np.partition(scores, len(scores) - wanted)[len(scores) - wanted])
        short = [
            number
            for number, (_, own) in enumerate(proposed)
            if len(own) >= counts[number] < min(wanted, sizes[number]) and own.min() > lowest
        ]
        if not short:
            break
        for number in short:
            counts[number] = min(wanted, 2 * counts[number])
            proposed[number] = listed[number].propose(query, counts[number], options)
    rows = []
    for lists, (some, own) in zip(listed, proposed, strict=True):
        share = min(k, likely_at_most(k * lists.passing / total), lists.passing)
        if len(some) < share:  # the lists that were looked at had no more
            rows.append(search_segment(lists.segment, query, share, lists.allowed, options)[0])
        else:
            rows.append(lists.rows_like(some[own >= lowest]))
    return _scored(listed, rows, query)


def _scored(listed: Sequence[Listed], rows: Sequence[Int64], query: Float32) -> SegmentNeighbors:
    """Rows of each segment with the scores that their vectors have."""
    together = np.concatenate([np.empty(0, np.int64), *rows])
    numbers = np.repeat(np.arange(len(listed)), [len(some) for some in rows])
    vectors = tuple(lists.segment.dense_index.record for lists in listed)
    segments = np.array([lists.ordinal for lists in listed], np.int64)[numbers]
    scores = products_at(vectors, numbers, together, np.ascontiguousarray(query, np.float32))
    return segments, together, scores
