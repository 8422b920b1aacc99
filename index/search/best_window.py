"""Which windows of documents match a query best: those that would score highest by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tercet.index.candidates import Weights, Window
from tercet.index.fusion import relative_sum
from tercet.index.scoring import lexical_scores
from tercet.index.search.exact_scores import Candidates, WindowScores, dense_scores
from tercet.index.search.query import CheckedQuery
from tercet.index.segments.segment import Segment


def best_windows(
    segments: Sequence[Segment],
    candidates: Candidates,
    query: CheckedQuery,
    weights: Weights,
    late: WindowScores,
) -> list[Window | None]:
    """Of each document the window of highest weighted sum, of equal ones the first.

    late: the exact `s_mul` of the documents' windows. None in a collection without windows, and for a query
    that shares no side with it but BM25, whose words are counted in whole documents.
    """
    used = None if len(candidates) == 0 or segments[0].windows is None else _used(weights, query, segments[0])
    if used is None:
        return [None] * len(candidates)
    dense = dense_scores(segments, query.dense, candidates.segments, candidates.rows)
    windows: list[Window | None] = []
    for number, (ordinal, row) in enumerate(
        zip(candidates.segments.tolist(), candidates.rows.tolist(), strict=True)
    ):
        store, best = segments[ordinal].windows, 0
        assert store is not None  # noqa: S101 - all segments of a collection have windows, or none has
        of_document = store.of(row)
        if len(of_document) > 1:
            lexical = lexical_scores(query.token_ids, query.weights, store.lexical, of_document)
            components = np.stack([dense.of(number), lexical, late.of(number)], axis=1)
            best = int(np.argmax(relative_sum(components, used)))
        windows.append(store.window(row, best))
    return windows


def _used(weights: Weights, query: CheckedQuery, segment: Segment) -> Weights | None:
    """The weights of the sides that both query and collection have, or 1 for each of these where they are 0.

    None where there is no such side.
    """
    there = Weights(
        float(query.dense is not None),
        float(len(query.token_ids) > 0),
        float(query.colbert is not None and segment.token_vectors is not None),
    )
    used = Weights(
        weights.dense * there.dense, weights.sparse * there.sparse, weights.colbert * there.colbert
    )
    return next((sides for sides in (used, there) if sides.dense or sides.sparse or sides.colbert), None)
