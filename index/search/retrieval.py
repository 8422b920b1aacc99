"""Candidates: what the retrievers, dense, lexical and BM25, propose over all segments, by exact score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from tercet.index.candidates import CandidateLimits, DenseOptions
from tercet.index.documents.conditions import Condition
from tercet.index.documents.row_set import RowSet
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import best, kept_of
from tercet.index.runs import runs
from tercet.index.search.dense_search import DenseSearch
from tercet.index.search.exact_scores import Candidates, dense_scores, scored
from tercet.index.search.lexical_search import LexicalSearch
from tercet.index.search.query import CheckedQuery
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import Float32, Int64

NO_ROWS = np.empty(0, np.int64)
ROW_BITS = 40  # more than a row needs; those above have its segment
DENSE, LEXICAL, BM25 = range(3)


@dataclass(frozen=True, slots=True)
class Proposed:
    """K documents that one side proposes: their segments int64[K] and rows int64[K], in no order, with the
    scores float32[K] that they were found by.
    """

    ordinals: Int64
    rows: Int64
    scores: Float32


NOTHING = Proposed(NO_ROWS, NO_ROWS, np.empty(0, np.float32))


def retrieve(
    segments: Sequence[Segment],
    query: CheckedQuery,
    limits: CandidateLimits,
    options: DenseOptions,
    condition: Condition | None,
    nearest: int | None = None,
    *,
    everything: bool = False,
) -> Candidates:
    """The `limits.dense` documents of highest `s_dense`, the `limits.sparse` of highest `s_lex`, and the
    `limits.bm25` of highest `s_bm25`.

    What is found is cut to the limits by score, then id, over all segments together, so that the division
    into segments does not show; then by segment, where several collections have an id. nearest: where
    `s_dense` alone orders, so many of what its side proposes are enough, and no other side is asked.
    everything: all documents are candidates, whatever the limits.
    """
    limits, nearest = limits_for(limits, nearest)
    if everything:
        ordinals, rows = all_rows([segment.allowed(condition) for segment in segments], segments)
    else:
        proposed = propose(segments, query, limits, options, condition)
        ordinals, rows = rows_of(united([numbers_of(side.ordinals, side.rows) for side in proposed]))
    scores = None
    if nearest is not None and nearest < len(rows):
        scores = dense_scores(segments, query.dense, ordinals, rows).best()
        kept = np.sort(best(scores, nearest, partial(ids_at, segments, ordinals, rows)))
        ordinals, rows, scores = ordinals[kept], rows[kept], scores[kept]
    return scored(segments, query, ordinals, rows, scores)


def limits_for(limits: CandidateLimits, nearest: int | None) -> tuple[CandidateLimits, int | None]:
    """What each side is asked for, and how many of the dense side's are left by exact score, None for all.

    nearest: as many as are enough where the dense side alone orders.
    """
    if nearest is not None and nearest <= limits.dense:
        return CandidateLimits(limits.dense, 0, 0), nearest
    return limits, None


def propose(
    segments: Sequence[Segment],
    query: CheckedQuery,
    limits: CandidateLimits,
    options: DenseOptions,
    condition: Condition | None,
) -> list[Proposed]:
    """What the dense, the lexical and the BM25 side propose, each cut to its limit."""
    passing = [None if condition is None else segment.allowed(condition) for segment in segments]
    # Without a condition the dense side leaves the deleted documents out by itself.
    allowed = passing if condition is not None else [segment.kept for segment in segments]
    searches: dict[int, tuple[DenseSearch | LexicalSearch, int]] = {}
    if query.dense is not None and limits.dense > 0:
        dense = DenseSearch(segments, query.dense, limits.dense, passing, options)
        searches[DENSE] = dense, limits.dense
    if segments and len(query.token_ids) and limits.sparse > 0:
        indexes = [segment.inverted for segment in segments]
        lexical = LexicalQuery.of(query.token_ids, query.weights, len(segments))
        searches[LEXICAL] = LexicalSearch(indexes, lexical, limits.sparse, allowed), limits.sparse
    if segments and query.bm25 is not None and len(query.bm25.words.terms) and limits.bm25 > 0:
        indexes = [part.inverted for part in query.bm25.facts.segments]
        searches[BM25] = LexicalSearch(indexes, query.bm25.lexical, limits.bm25, allowed), limits.bm25
    parts = [part for search, _ in searches.values() for part in search.parts]
    costs = [cost for search, _ in searches.values() for cost in search.costs]
    done: Iterator[Any] = iter(segment_threads().run(parts, costs))
    proposed = [NOTHING] * (BM25 + 1)
    for side, (search, limit) in searches.items():
        proposed[side] = _cut(*search.best(list(islice(done, len(search.parts)))), limit, segments)
    return proposed


def ids_at(segments: Sequence[Segment], ordinals: Int64, rows: Int64, some: Int64) -> PackedBytes:
    """The ids, as UTF-8 bytes, of some of rows int64[K] of the segments at ordinals int64[K]."""
    ordinals, rows = ordinals[some], rows[some]
    order = np.argsort(ordinals, kind="stable")
    parts = []
    for ordinal, run in runs(ordinals[order]):
        parts.append(segments[ordinal].documents.ids.gather(rows[order[run]]))
    return parts[0] if len(parts) == 1 else PackedBytes.concatenate(parts).gather(np.argsort(order))


def all_rows(allowed: Sequence[RowSet | None], segments: Sequence[Segment]) -> tuple[Int64, Int64]:
    """Segments and rows of all documents that are allowed; None is all of a segment."""
    rows = [
        np.arange(len(segment.documents)) if some is None else some.rows
        for segment, some in zip(segments, allowed, strict=True)
    ]
    return np.repeat(np.arange(len(segments)), [len(some) for some in rows]), np.concatenate([NO_ROWS, *rows])


def _cut(ordinals: Int64, rows: Int64, scores: Float32, limit: int, segments: Sequence[Segment]) -> Proposed:
    """The `limit` best of what was found, equal scores by id, then by segment; in any order."""
    if len(rows) <= limit:
        return Proposed(ordinals, rows, scores)
    kept = kept_of(scores, limit, partial(ids_at, segments, ordinals, rows), ordinals)
    return Proposed(ordinals[kept], rows[kept], scores[kept])


def numbers_of(ordinals: Int64, rows: Int64) -> Int64:
    """One number for each document, in order of segment and row."""
    return ordinals << ROW_BITS | rows


def rows_of(numbers: Int64) -> tuple[Int64, Int64]:
    """The segments and rows of such numbers."""
    return numbers >> ROW_BITS, numbers & (1 << ROW_BITS) - 1


def united(proposed: Sequence[Int64]) -> Int64:
    """The numbers that all sides propose, ascending, each once."""
    numbers = np.sort(np.concatenate([NO_ROWS, *proposed]))
    # As np.unique, which takes four times as long for so few.
    distinct = np.ones(len(numbers), np.bool_)
    distinct[1:] = numbers[1:] != numbers[:-1]
    return numbers[distinct]
