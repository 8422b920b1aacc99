"""Why a document scores as it does: matching terms and the alignment of token vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from index.candidates import Scores
from index.query import CheckedQuery
from index.segment import Segment


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A token id that query and document share; `s_lex` is the sum of the products."""

    token_id: int
    query_weight: float
    document_weight: float
    product: float


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A query token vector and the document's nearest; `s_mul` is the mean of the similarities.

    Both count token vectors from 0: since the first token of a text has none, vector 0 belongs to its
    second token.
    """

    query_vector: int
    document_vector: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts of a document's scores: terms with the largest product first, then every query vector."""

    scores: Scores
    terms: list[TermMatch]
    alignment: list[TokenMatch]


def explain(segment: Segment, row: int, query: CheckedQuery) -> Explanation:
    """Explains the scores of one row."""
    rows = np.array([row], np.int64)
    colbert = None
    if segment.token_vectors is not None and query.colbert is not None:
        colbert = float(segment.colbert_scores(query.colbert, rows, precise=True)[0])
    scores = Scores(
        float(segment.dense_scores(query.dense, rows)[0]),
        float(segment.lexical_scores(query.token_ids, query.weights, rows)[0]),
        colbert,
    )
    return Explanation(scores, _terms(segment, row, query), _alignment(segment, row, query))


def _terms(segment: Segment, row: int, query: CheckedQuery) -> list[TermMatch]:
    token_ids, weights = segment.forward.row(row)
    shared, in_query, in_document = np.intersect1d(
        query.token_ids, token_ids, assume_unique=True, return_indices=True
    )
    query_weights = query.weights[in_query].astype(np.float64)
    document_weights = weights[in_document].astype(np.float64)
    matches = zip(shared.tolist(), query_weights.tolist(), document_weights.tolist(), strict=True)
    terms = [TermMatch(term, left, right, left * right) for term, left, right in matches]
    return sorted(terms, key=lambda term: (-term.product, term.token_id))


def _alignment(segment: Segment, row: int, query: CheckedQuery) -> list[TokenMatch]:
    store = segment.token_vectors
    if store is None or query.colbert is None:
        return []
    vectors = store.vectors(np.arange(store.offsets[row], store.offsets[row + 1]))
    if len(vectors) == 0:
        return []
    similarity = query.colbert.astype(np.float64) @ vectors.astype(np.float64).T  # (N, L)
    nearest = similarity.argmax(axis=1)
    return [
        TokenMatch(place, int(vector), float(similarity[place, vector]))
        for place, vector in enumerate(nearest)
    ]
