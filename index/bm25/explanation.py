"""Why a document has its BM25 score: the words that it shares with the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tercet.index.bm25.formula import weights
from tercet.index.bm25.query import Bm25Query
from tercet.models.representations import Float64, Int64, Shape


@dataclass(frozen=True, slots=True)
class Bm25Terms:
    """The T terms that query and document share, those with the largest product first.

    `s_bm25` is the sum of the products. counts, frequencies: int64[T], how often query and document have
    each; idf and weights: float64[T], as in `formula.py`; products: float64[T], SCALE · count · idf · weight.
    """

    terms: tuple[str, ...]
    counts: Annotated[Int64, Shape("T")]
    idf: Annotated[Float64, Shape("T")]
    frequencies: Annotated[Int64, Shape("T")]
    weights: Annotated[Float64, Shape("T")]
    products: Annotated[Float64, Shape("T")]


def explain_bm25(row: int, query: Bm25Query, ordinal: int) -> Bm25Terms:
    """The terms of one row of the segment with this number."""
    segment, term_numbers, words = query.facts.segments[ordinal], query.numbers[ordinal], query.words
    document_terms, frequencies = segment.forward.row(row)
    present = np.flatnonzero(term_numbers >= 0)
    _, shared, there = np.intersect1d(
        term_numbers[present], document_terms, assume_unique=True, return_indices=True
    )
    known, counted = present[shared], frequencies[there]
    document_weights = weights(counted, int(segment.lengths[row]), query.facts.mean_length)
    products = words.weights[known].astype(np.float64) * document_weights
    order = np.argsort(-products, kind="stable")  # of equal products, the terms ascend
    return Bm25Terms(
        tuple(words.terms[term] for term in known[order].tolist()),
        words.counts[known[order]],
        words.idf[known[order]],
        counted[order].astype(np.int64),
        document_weights[order],
        products[order],
    )
