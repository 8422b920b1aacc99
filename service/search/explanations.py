"""Where hits' scores come from, in tokens and words that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise, repeat
from typing import NotRequired, TypedDict

from index.bm25.explanation import Bm25Terms
from index.candidates import Hit
from index.explanation import Alignment, MatchingTerms
from index.snapshot import Snapshot
from models.representations import Int32, Int64, Representations
from models.tokenizer import Tokenizer
from service.exceptions import InvalidRequestError

MAX_ALIGNED = 100_000  # token vectors of a query times hits: worth half a second


class ExplainedTerm(TypedDict):
    """A token that query and document share; the products add up to the sparse score.

    idf: idf(t) / m of the collection, 1 where it has none; a product is of the two weights and the idf.
    """

    token_id: int
    token: str
    query_weight: float
    idf: float
    document_weight: float
    product: float


class AlignedToken(TypedDict):
    """A query token and the document's nearest; positions count token vectors from 0.

    The tokens are None where their text is not known.
    """

    query_position: int
    query_token: str | None
    document_position: int
    document_token: str | None
    similarity: float


class ExplainedWord(TypedDict):
    """A term, a stem or a pair of characters, that query and document share; the products add up to the BM25
    score.

    query_count, frequency: how often query and document have it; document_weight: what that is worth in a
    document of its length.
    """

    term: str
    query_count: int
    idf: float
    frequency: int
    document_weight: float
    product: float


class HitExplanation(TypedDict):
    """The parts of a hit's sparse and colbert scores, and of its BM25 score where it has one."""

    terms: list[ExplainedTerm]
    alignment: list[AlignedToken]
    bm25: NotRequired[list[ExplainedWord]]


def require_explainable(query: Representations, hits: int) -> None:
    """Raises InvalidRequestError where so many hits of this query would take too long to explain."""
    vectors = 0 if query.colbert is None else len(query.colbert.vectors)
    if hits * vectors > MAX_ALIGNED:
        raise InvalidRequestError(
            f"explain aligns {hits} hits with {vectors} tokens of the query; the limit is {MAX_ALIGNED} "
            f"pairs: set top_k to at most {MAX_ALIGNED // vectors}, or shorten the query",
            "explain",
        )


def explain_hits(
    snapshot: Snapshot, tokenizer: Tokenizer, text: str | None, query: Representations, hits: Sequence[Hit]
) -> list[HitExplanation]:
    """One explanation for each hit; `text` is the query's, None for ready representations."""
    query_tokens: list[str | None] = []
    if text is not None:
        query_tokens += tokenizer.token_strings(tokenizer.tokenize([text], "query").token_ids[1:])
    batch = tokenizer.tokenize([hit.document.encoded_text for hit in hits], "document")
    explanations = []
    for hit, (start, stop) in zip(hits, pairwise(batch.offsets.tolist()), strict=True):
        explanation = snapshot.explain(query, hit.document.id, text)
        alignment = explanation.alignment
        ids = batch.token_ids[start + 1 : stop]  # the first token of a text has no vector
        nearest = _tokens_at(ids, alignment.document_vectors, tokenizer)
        explained: HitExplanation = {
            "terms": _terms(explanation.terms, tokenizer),
            "alignment": _aligned(alignment, query_tokens, nearest),
        }
        if explanation.bm25 is not None:
            explained["bm25"] = _words(explanation.bm25)
        explanations.append(explained)
    return explanations


def _terms(terms: MatchingTerms, tokenizer: Tokenizer) -> list[ExplainedTerm]:
    return [
        {
            "token_id": id,
            "token": token,
            "query_weight": left,
            "idf": idf,
            "document_weight": right,
            "product": product,
        }
        for id, token, left, idf, right, product in zip(
            terms.token_ids.tolist(),
            tokenizer.token_strings(terms.token_ids),
            terms.query_weights.tolist(),
            terms.idf.tolist(),
            terms.document_weights.tolist(),
            terms.products.tolist(),
            strict=True,
        )
    ]


def _words(terms: Bm25Terms) -> list[ExplainedWord]:
    return [
        {
            "term": term,
            "query_count": count,
            "idf": idf,
            "frequency": frequency,
            "document_weight": weight,
            "product": product,
        }
        for term, count, idf, frequency, weight, product in zip(
            terms.terms,
            terms.counts.tolist(),
            terms.idf.tolist(),
            terms.frequencies.tolist(),
            terms.weights.tolist(),
            terms.products.tolist(),
            strict=True,
        )
    ]


def _aligned(
    alignment: Alignment, query_tokens: Sequence[str | None], document_tokens: Sequence[str | None]
) -> list[AlignedToken]:
    return [
        {
            "query_position": position,
            "query_token": query_token,
            "document_position": vector,
            "document_token": document_token,
            "similarity": similarity,
        }
        for position, (query_token, vector, document_token, similarity) in enumerate(
            zip(
                chain(query_tokens, repeat(None)),
                alignment.document_vectors.tolist(),
                document_tokens,
                alignment.similarities.tolist(),
                strict=False,
            )
        )
    ]


def _tokens_at(ids: Int32, positions: Int64, tokenizer: Tokenizer) -> list[str | None]:
    """The token at each position; None for one beyond the ids."""
    known = positions < len(ids)
    strings = iter(tokenizer.token_strings(ids[positions[known]]))
    return [next(strings) if is_known else None for is_known in known.tolist()]
