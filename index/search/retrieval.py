"""Candidates: what the retrievers, dense, lexical and BM25, propose over all segments, by exact score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from index.candidates import CandidateLimits, DenseOptions
from index.documents.filters import Filter, evaluate
from index.fusion import best
from index.search.dense_search import Found, search_dense
from index.search.query import CheckedQuery
from index.search.threads import segment_threads
from index.segments.segment import Segment
from models.representations import Float64, Int64

NOTHING: Found = np.empty(0, np.int64), np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Candidates:
    """K distinct documents with all scores but late interaction, in order of segment and row.

    segments: int64[K], places of the segments; rows: int64[K], rows within them; dense, sparse, bm25:
    float64[K], exact scores.
    """

    segments: Int64
    rows: Int64
    dense: Float64
    sparse: Float64
    bm25: Float64

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Int64) -> Candidates:
        """The candidates at these places."""
        return Candidates(
            self.segments[places],
            self.rows[places],
            self.dense[places],
            self.sparse[places],
            self.bm25[places],
        )


def retrieve(
    segments: Sequence[Segment],
    query: CheckedQuery,
    limits: CandidateLimits,
    options: DenseOptions,
    condition: Filter | None,
) -> Candidates:
    """The `limits.dense` documents of highest `s_dense`, the `limits.sparse` of highest `s_lex`, and the
    `limits.bm25` of highest `s_bm25`.

    Each segment proposes its best and all that tie with the last of them; the proposals are cut to the
    limits by score, then id, over all segments together, so that the division into segments does not show.
    """
    masks = [
        None if condition is None else evaluate(condition, segment.columns, len(segment))
        for segment in segments
    ]
    documents = [segment.documents_kept for segment in segments]

    def lexical(place: int) -> Found:
        segment = segments[place]
        kept = segment.allowed(masks[place])
        return segment.inverted.search(query.token_ids, query.weights, limits.sparse, kept)

    def bm25(place: int) -> Found:
        part = segments[place].bm25
        if query.bm25 is None or part is None:
            return NOTHING
        return part.search(query.bm25.parts[place], limits.bm25, segments[place].allowed(masks[place]))

    proposed = [_cut([], 0, segments)]
    if query.dense is not None and limits.dense > 0:
        found = search_dense(segments, query.dense, limits.dense, masks, options)
        proposed.append(_cut(found, limits.dense, segments))
    if len(query.token_ids) and limits.sparse > 0:
        proposed.append(_cut(segment_threads().map(lexical, documents), limits.sparse, segments))
    if query.bm25 is not None and limits.bm25 > 0:
        proposed.append(_cut(segment_threads().map(bm25, documents), limits.bm25, segments))
    return _united(segments, query, proposed)


def ids_at(segments: Sequence[Segment], places: Int64, rows: Int64) -> list[bytes]:
    """The ids, as UTF-8 bytes, of rows int64[K] of the segments at places int64[K]."""
    ids = [b""] * len(rows)
    for place in np.unique(places).tolist():
        here = np.flatnonzero(places == place)
        found = segments[place].documents.ids.take(rows[here])
        for position, identifier in zip(here.tolist(), found, strict=True):
            ids[position] = identifier
    return ids


def _cut(found: Sequence[Found], limit: int, segments: Sequence[Segment]) -> tuple[Int64, Int64]:
    """Segments and rows of the `limit` best of what each segment proposes."""
    lengths = np.array([len(rows) for rows, _ in found], np.int64)
    places = np.repeat(np.arange(len(found)), lengths)
    rows, scores = (np.concatenate(parts) for parts in zip(NOTHING, *found, strict=True))
    order = best(scores.astype(np.float64), limit, lambda inner: ids_at(segments, places[inner], rows[inner]))
    return places[order], rows[order]


def _united(
    segments: Sequence[Segment], query: CheckedQuery, proposed: Sequence[tuple[Int64, Int64]]
) -> Candidates:
    """The documents of all sides, in order of segment and row, with their exact scores."""
    places, rows = (np.concatenate(parts) for parts in zip(*proposed, strict=True))
    order = np.lexsort((rows, places))
    places, rows = places[order], rows[order]
    distinct = np.ones(len(rows), np.bool_)
    distinct[1:] = (places[1:] != places[:-1]) | (rows[1:] != rows[:-1])
    places, rows = places[distinct], rows[distinct]
    found = Candidates(places, rows, *(np.empty(len(rows)) for _ in range(3)))
    for place, run in runs(places):
        found.dense[run] = segments[place].dense_scores(query.dense, rows[run])
        found.sparse[run] = segments[place].lexical_scores(query.token_ids, query.weights, rows[run])
        found.bm25[run] = segments[place].bm25_scores(query.bm25_part(place), rows[run])
    return found


def runs(values: Int64) -> Iterator[tuple[int, slice]]:
    """Each stretch of equal values in int64[K]: the value, and where it lies."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    for first, last in pairwise(edges):
        if first < last:
            yield int(values[first]), slice(first, last)
