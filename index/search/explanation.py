"""Why a document scores as it does: matching terms, the alignment of token vectors, and words for BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tercet.index.blas import one_blas_thread
from tercet.index.bm25.explanation import Bm25Terms
from tercet.index.candidates import Window
from tercet.index.search.late_interaction import late_scores
from tercet.index.search.query import CheckedQuery
from tercet.index.segments.segment import Segment
from tercet.index.sparse.idf import CollectionIdf, GivenIdf
from tercet.models.representations import Float64, Int32, Int64, Shape


@dataclass(frozen=True, slots=True)
class MatchingTerms:
    """The token ids that query and document share, those with the largest product first.

    `s_lex` is the sum of the products. idf: the collection's idf(t) / m, or 1 where it has none; windows:
    int64[T], the first of the document's windows where a term weighs most, None in a collection without
    windows. token_ids: int32[T]; the rest: float64[T].
    """

    token_ids: Annotated[Int32, Shape("T")]
    query_weights: Annotated[Float64, Shape("T")]
    idf: Annotated[Float64, Shape("T")]
    document_weights: Annotated[Float64, Shape("T")]
    windows: Annotated[Int64, Shape("T")] | None

    @property
    def products(self) -> Float64:
        """What each term adds to the score."""
        return self.query_weights * self.idf * self.document_weights

    def take(self, indices: Int64) -> MatchingTerms:
        return MatchingTerms(
            self.token_ids[indices],
            self.query_weights[indices],
            self.idf[indices],
            self.document_weights[indices],
            None if self.windows is None else self.windows[indices],
        )


@dataclass(frozen=True, slots=True)
class Alignment:
    """For each token vector of the query the document's nearest; `s_mul` is the mean of the similarities.

    Both count token vectors from 0, which not every token has: `Tokenizer.has_vector` tells. Empty where
    either has none. document_vectors: int64[N]; similarities: float64[N]. window: the one whose `s_mul`
    counts, and whose token vectors these are; None in a collection without windows.
    """

    document_vectors: Annotated[Int64, Shape("N")]
    similarities: Annotated[Float64, Shape("N")]
    window: Window | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts of a document's sparse and colbert scores, and of its BM25 score where there is one."""

    terms: MatchingTerms
    alignment: Alignment
    bm25: Bm25Terms | None = None


def explain(
    segments: Sequence[Segment],
    ordinal: int,
    row: int,
    query: CheckedQuery,
    idf: CollectionIdf | GivenIdf | None,
) -> Explanation:
    """Explains the scores of a row of the segment at an ordinal. query: with the encoder's own weights."""
    return Explanation(_terms(segments[ordinal], row, query, idf), _alignment(segments, ordinal, row, query))


def _terms(
    segment: Segment, row: int, query: CheckedQuery, idf: CollectionIdf | GivenIdf | None
) -> MatchingTerms:
    token_ids, weights = segment.forward.row(row)
    shared, in_query, in_document = np.intersect1d(
        query.token_ids, token_ids, assume_unique=True, return_indices=True
    )
    terms = MatchingTerms(
        shared,
        query.weights[in_query].astype(np.float64),
        np.ones(len(shared)) if idf is None else idf.of_terms(shared),
        weights[in_document].astype(np.float64),
        None if segment.windows is None else segment.windows.of_terms(row, shared),
    )
    return terms.take(np.argsort(-terms.products, kind="stable"))  # of equal products, the ids ascend


@one_blas_thread
def _alignment(segments: Sequence[Segment], ordinal: int, row: int, query: CheckedQuery) -> Alignment:
    segment, tokens = segments[ordinal], query.colbert
    store = segment.token_vectors
    if store is None or tokens is None:
        return Alignment(np.zeros(0, np.int64), np.zeros(0), None)
    text, window = row, None
    if segment.windows is not None:
        best = int(np.argmax(late_scores(segments, query, np.array([ordinal]), np.array([row])).scores))
        text, window = int(segment.windows.of(row)[best]), segment.windows.window(row, best)
    vectors = store.of(text)
    if len(vectors) == 0:
        return Alignment(np.zeros(0, np.int64), np.zeros(0), window)
    similarity = tokens.vectors.astype(np.float64) @ vectors.astype(np.float64).T  # (N, L)
    return Alignment(similarity.argmax(axis=1), similarity.max(axis=1), window)
