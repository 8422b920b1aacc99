"""Candidates: what the dense and the lexical retriever propose over all segments, merged by exact score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from index.candidates import CandidateLimits, DenseOptions
from index.filters import Filter, evaluate
from index.fusion import best
from index.query import CheckedQuery
from index.scoring import Float64
from index.segment import Segment
from models.representations import Bool, Int64


@dataclass(frozen=True, slots=True)
class Candidates:
    """K distinct documents with two of their scores and the retrievers that proposed them.

    segments: int64[K], places of the segments; rows: int64[K], rows within them; dense, sparse:
    float64[K], exact scores; from_dense, from_sparse: bool[K].
    """

    segments: Int64
    rows: Int64
    dense: Float64
    sparse: Float64
    from_dense: Bool
    from_sparse: Bool

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Int64) -> Candidates:
        """The candidates at these places."""
        return Candidates(
            self.segments[places],
            self.rows[places],
            self.dense[places],
            self.sparse[places],
            self.from_dense[places],
            self.from_sparse[places],
        )


def retrieve(
    segments: Sequence[Segment],
    query: CheckedQuery,
    limits: CandidateLimits,
    options: DenseOptions,
    condition: Filter | None,
) -> Candidates:
    """The `limits.dense` documents of highest `s_dense` and the `limits.sparse` of highest `s_lex`.

    Each segment proposes its best; the proposals are cut to the limits by exact score, then id, over all
    segments together, so that the division into segments does not show.
    """
    found = _concatenate(
        [
            _propose(place, segment, query, limits, options, condition)
            for place, segment in enumerate(segments)
        ]
    )
    ids_of = id_lookup(segments, found)
    from_dense = _cut(found.from_dense, found.dense, limits.dense, ids_of)
    from_sparse = _cut(found.from_sparse, found.sparse, limits.sparse, ids_of)
    merged = Candidates(found.segments, found.rows, found.dense, found.sparse, from_dense, from_sparse)
    return merged.take(np.flatnonzero(from_dense | from_sparse))


def id_lookup(segments: Sequence[Segment], candidates: Candidates) -> Callable[[Int64], list[bytes]]:
    """A function that gives the ids, as UTF-8 bytes, of the candidates at some places."""

    def ids_of(places: Int64) -> list[bytes]:
        chosen, rows = candidates.segments[places], candidates.rows[places]
        ids = [b""] * len(places)
        for segment in np.unique(chosen).tolist():
            here = np.flatnonzero(chosen == segment)
            found = segments[segment].documents.ids.take(rows[here])
            for place, identifier in zip(here.tolist(), found, strict=True):
                ids[place] = identifier
        return ids

    return ids_of


def _propose(
    place: int,
    segment: Segment,
    query: CheckedQuery,
    limits: CandidateLimits,
    options: DenseOptions,
    condition: Filter | None,
) -> Candidates:
    allowed = None if condition is None else evaluate(condition, segment.columns, len(segment))
    dense_rows = sparse_rows = np.empty(0, np.int64)
    if allowed is None or allowed.any():
        if query.dense is not None and limits.dense > 0:
            count = min(limits.dense, len(segment))
            dense_rows, _ = segment.dense_index.search(query.dense, count, allowed, options)
        if len(query.token_ids) and limits.sparse > 0:
            count = min(limits.sparse, len(segment))
            sparse_rows, _ = segment.inverted.search(query.token_ids, query.weights, count, allowed)
    rows = np.union1d(dense_rows, sparse_rows).astype(np.int64)
    return Candidates(
        np.full(len(rows), place, np.int64),
        rows,
        segment.dense_scores(query.dense, rows),
        segment.lexical_scores(query.token_ids, query.weights, rows),
        np.isin(rows, dense_rows),
        np.isin(rows, sparse_rows),
    )


def _concatenate(parts: Sequence[Candidates]) -> Candidates:
    if not parts:
        nothing, flags = np.empty(0, np.int64), np.empty(0, np.bool_)
        return Candidates(nothing, nothing, np.empty(0), np.empty(0), flags, flags)
    return Candidates(
        np.concatenate([part.segments for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.dense for part in parts]),
        np.concatenate([part.sparse for part in parts]),
        np.concatenate([part.from_dense for part in parts]),
        np.concatenate([part.from_sparse for part in parts]),
    )


def _cut(proposed: Bool, scores: Float64, limit: int, ids_of: Callable[[Int64], list[bytes]]) -> Bool:
    """Which of the proposed are among the `limit` best."""
    places = np.flatnonzero(proposed)
    if len(places) <= limit:
        return proposed
    kept = np.zeros(len(proposed), np.bool_)
    kept[places[best(scores[places], limit, lambda inner: ids_of(places[inner]))]] = True
    return kept
