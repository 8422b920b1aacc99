"""Why a document has its BM25 score: the words that it shares with the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from index.bm25.query import Bm25Query
from index.bm25.segment import Bm25Segment
from models.representations import Float64, Int64


@dataclass(frozen=True, slots=True)
class Bm25Terms:
    """The T terms that query and document share, those with the largest product first.

    `s_bm25` is the sum of the products. counts, frequencies: int64[T], how often query and document have
    each; idf and weights: float64[T], as in `formula.py`; products: float64[T], SCALE · count · idf · weight.
    """

    terms: tuple[str, ...]
    counts: Int64
    idf: Float64
    frequencies: Int64
    weights: Float64
    products: Float64


def explain_bm25(segment: Bm25Segment, row: int, query: Bm25Query, place: int) -> Bm25Terms:
    """The terms of one row of the segment at this place."""
    numbers, frequencies = segment.forward.row(row)
    part = query.part(place)
    _, asked, held = np.intersect1d(part.token_ids, numbers, assume_unique=True, return_indices=True)
    weights = part.saturation.weights(frequencies[held], row)
    products = part.weights[asked].astype(np.float64) * weights
    known = np.flatnonzero(query.places[place] >= 0)[asked]
    order = np.argsort(-products, kind="stable")  # of equal products, the terms ascend
    return Bm25Terms(
        tuple(query.terms[term] for term in known[order].tolist()),
        query.counts[known[order]],
        query.idf[known[order]],
        frequencies[held][order].astype(np.int64),
        weights[order],
        products[order],
    )
