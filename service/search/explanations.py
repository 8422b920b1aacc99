"""Where hits' scores come from, in tokens that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from index.candidates import Hit
from index.explanation import Explanation
from index.snapshot import Snapshot
from models.representations import InputType, Representations
from models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A token that query and document share; the products add up to the sparse score."""

    token_id: int
    token: str
    query_weight: float
    document_weight: float
    product: float


@dataclass(frozen=True, slots=True)
class AlignedToken:
    """A query token and the document's nearest; positions count token vectors from 0.

    The tokens are None where their text is not known.
    """

    query_position: int
    query_token: str | None
    document_position: int
    document_token: str | None
    similarity: float


@dataclass(frozen=True, slots=True)
class HitExplanation:
    """The parts of a hit's sparse and colbert scores."""

    terms: list[ExplainedTerm]
    alignment: list[AlignedToken]


def explain_hits(
    snapshot: Snapshot, tokenizer: Tokenizer, text: str | None, query: Representations, hits: Sequence[Hit]
) -> list[HitExplanation]:
    """One explanation for each hit. text: the query's, None where ready representations were given."""
    if not hits:
        return []
    query_tokens = [] if text is None else _vector_tokens(tokenizer, [text], "query")[0]
    documents = _vector_tokens(tokenizer, [hit.document.encoded_text for hit in hits], "document")
    return [
        _readable(snapshot.explain(query, hit.document.id), tokenizer, query_tokens, document_tokens)
        for hit, document_tokens in zip(hits, documents, strict=True)
    ]


def _readable(
    explanation: Explanation, tokenizer: Tokenizer, query_tokens: list[str], document_tokens: list[str]
) -> HitExplanation:
    strings = tokenizer.token_strings(np.array([term.token_id for term in explanation.terms], np.int32))
    terms = [
        ExplainedTerm(term.token_id, string, term.query_weight, term.document_weight, term.product)
        for term, string in zip(explanation.terms, strings, strict=True)
    ]
    alignment = [
        AlignedToken(
            match.query_vector,
            _at(query_tokens, match.query_vector),
            match.document_vector,
            _at(document_tokens, match.document_vector),
            match.similarity,
        )
        for match in explanation.alignment
    ]
    return HitExplanation(terms, alignment)


def _vector_tokens(tokenizer: Tokenizer, texts: Sequence[str], input_type: InputType) -> list[list[str]]:
    """For each text, the token of each of its token vectors: all but the first, which has no vector."""
    batch = tokenizer.tokenize(texts, input_type)
    strings = tokenizer.token_strings(batch.token_ids)
    offsets = batch.offsets.tolist()
    return [strings[start + 1 : stop] for start, stop in pairwise(offsets)]


def _at(tokens: list[str], position: int) -> str | None:
    return tokens[position] if position < len(tokens) else None
