"""Exact scores of documents from all segments, a side at a time rather than a segment.

All exact scores of stored documents come from here, but late interaction's, which `late_interaction.py` adds.
Of a document's windows the best counts: `s_dense = max_w <q, p_w>` and `s_mul = max_w s_mul(q, p_w)`. `s_lex`
takes the largest weight of each term in any window, which the forward rows of documents hold already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tercet.index.errors import damaged
from tercet.index.files.pieces import read_ahead
from tercet.index.native.kernels import exact_products_at
from tercet.index.runs import runs
from tercet.index.scoring import DECIMALS
from tercet.index.search.query import CheckedQuery
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import Float32, Float64, Int64, offsets_of, ragged_positions

# Documents that a dense search compares in the time that one side of a row takes.
DOCUMENTS_PER_ROW = 4
# What scores come from, as segments name it.
VECTORS, WEIGHTS, WORDS = "dense", "forward_weights", "bm25_forward_weights"


@dataclass(frozen=True, slots=True)
class Candidates:
    """K distinct documents with all scores but late interaction, in order of segment and row.

    segments: int64[K], ordinals of the segments; rows: int64[K], rows within them; dense, sparse, bm25:
    float64[K], exact scores; boost: float64[K], what is added, None where nothing is.
    """

    segments: Int64
    rows: Int64
    dense: Float64
    sparse: Float64
    bm25: Float64
    boost: Float64 | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def components(self, colbert: Float64, sides: int) -> Float64:
        """With their late interaction float64[K], the scores of the first sides: float64[K, sides]."""
        columns = [self.dense, self.sparse, colbert, self.bm25]
        if self.boost is not None:
            columns.append(self.boost)
        return np.array(columns[:sides]).T

    def take(self, indices: Int64) -> Candidates:
        return Candidates(
            self.segments[indices],
            self.rows[indices],
            self.dense[indices],
            self.sparse[indices],
            self.bm25[indices],
            None if self.boost is None else self.boost[indices],
        )


@dataclass(frozen=True, slots=True)
class WindowScores:
    """The scores float64[W] of the windows of K documents, or of these where they have none.

    offsets: int64[K+1], where those of each document lie.
    """

    scores: Float64
    offsets: Int64

    def best(self) -> Float64:
        """Of each document that of its best window, float64[K]."""
        if len(self.scores) == len(self.offsets) - 1:
            return self.scores
        best: Float64 = np.maximum.reduceat(self.scores, self.offsets[:-1])
        return best

    def of(self, document: int) -> Float64:
        """The scores of one document's windows."""
        return self.scores[self.offsets[document] : self.offsets[document + 1]]

    def take(self, documents: Int64) -> WindowScores:
        counts = self.offsets[documents + 1] - self.offsets[documents]
        return WindowScores(self.scores[ragged_positions(self.offsets, documents)], offsets_of(counts))


def scored(
    segments: Sequence[Segment],
    query: CheckedQuery,
    ordinals: Int64,
    rows: Int64,
    dense: Float64 | None = None,
) -> Candidates:
    """Rows int64[K] of the segments at ordinals int64[K], ascending, with `s_dense`, `s_lex` and `s_bm25`.

    dense: `s_dense`, where that was computed before. 0 for a side that is not in the query.
    """
    if len(rows) == 0:
        return Candidates(ordinals, rows, *(np.empty(0) for _ in range(3)))
    read_ahead(ordinals, rows, lambda ordinal, some: segments[ordinal].pieces(some))
    lexical = LexicalQuery.of(query.token_ids, query.weights, len(segments))
    sums = [partial(lexical.sums, [segment.inverted for segment in segments], ordinals, rows)]
    if query.bm25 is not None:
        indexes = [part.inverted for part in query.bm25.facts.segments]
        read_ahead(ordinals, rows, lambda ordinal, some: indexes[ordinal].pieces(some))
        sums.append(partial(query.bm25.lexical.sums, indexes, ordinals, rows))
    sides: list[Callable[[], Any]] = [*sums]
    if dense is None:
        sides.append(partial(dense_scores, segments, query.dense, ordinals, rows))
    done = segment_threads().run(sides, [DOCUMENTS_PER_ROW * len(rows)] * len(sides))
    if dense is None:
        dense = done.pop().best()
    for name, sums_of_side in zip((WEIGHTS, WORDS), done, strict=False):
        require_finite(sums_of_side, segments, ordinals, name)
    sparse, *words = (np.round(sums, DECIMALS) for sums in done)
    return Candidates(ordinals, rows, dense, sparse, words[0] if words else np.zeros(len(rows)))


def dense_scores(
    segments: Sequence[Segment], query: Float32 | None, ordinals: Int64, rows: Int64
) -> WindowScores:
    """`s_dense` of each window of rows int64[K] of the segments at ordinals int64[K]."""
    ordinals, texts, offsets = texts_of(segments, ordinals, rows)
    if query is None:
        return WindowScores(np.zeros(len(texts)), offsets)
    vectors = tuple(segment.dense_index.record for segment in segments)
    products = exact_products_at(vectors, ordinals, texts, query)
    require_finite(products, segments, ordinals, VECTORS)
    return WindowScores(np.round(products, DECIMALS), offsets)


def require_finite(scores: Float64, segments: Sequence[Segment], ordinals: Int64, array: str) -> None:
    """Raises DamagedIndexError where a score float64[K] is no finite number, as queries are finite; it names
    the array of the segments at ordinals int64[K] that the score comes from.
    """
    if not np.isfinite(scores).all():
        segment = segments[ordinals[np.argmin(np.isfinite(scores))]]
        raise damaged(segment.arrays.path(array), "has values that are not finite")


def texts_of(segments: Sequence[Segment], ordinals: Int64, rows: Int64) -> tuple[Int64, Int64, Int64]:
    """What was encoded of rows int64[K] of the segments at ordinals int64[K].

    Returns the segments int64[W] and rows int64[W] of these texts, which are the documents' own where there
    are no windows; and where those of each document begin, int64[K+1].
    """
    if len(rows) == 0 or segments[0].windows is None:
        return ordinals, rows, np.arange(len(rows) + 1)
    counts, texts = np.empty(len(rows), np.int64), []
    for ordinal, run in runs(ordinals):
        some, counts[run] = segments[ordinal].texts_of(rows[run])
        texts.append(some)
    return np.repeat(ordinals, counts), np.concatenate(texts), offsets_of(counts)
