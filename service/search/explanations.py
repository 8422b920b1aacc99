"""Where hits' scores come from, in tokens and words that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise, repeat
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from tercet.index.bm25.explanation import Bm25Terms
from tercet.index.candidates import Document, Hit
from tercet.index.documents.boosts import Boost
from tercet.index.scoring import DECIMALS
from tercet.index.search.explanation import Alignment, MatchingTerms
from tercet.ingest.document_windows import cutter_for, text_of_window
from tercet.models.representations import Int32, Int64, Representations
from tercet.models.texts.windows import WindowCutter
from tercet.models.tokenizer import Tokenizer
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.exceptions import InvalidRequestError

MAX_ALIGNED = 100_000  # token vectors of a query times hits: worth half a second
CHARACTERS_PER_VECTOR = 64  # of a query's text: finding their words among a hit's costs as much


class ExplainedTerm(TypedDict):
    """A token that query and document share; the products add up to the lexical score.

    idf: idf(t) / m of the collection, 1 where it has none; a product is of the two weights and the idf.
    window: where the document has windows, the first of those where the token weighs most.
    """

    token_id: int
    token: str
    query_weight: float
    idf: float
    document_weight: float
    product: float
    window: NotRequired[int]


class AlignedToken(TypedDict):
    """A query token and the document's nearest; positions count token vectors from 0.

    The tokens are None where their text is not known. prompt: the query token is of what the encoder has
    before a query, and not of its text. window: where the document has windows, the one whose token vectors
    are compared.
    """

    query_position: int
    query_token: str | None
    document_position: int
    document_token: str | None
    similarity: float
    prompt: NotRequired[bool]
    window: NotRequired[int]


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
    """The parts of a hit's sparse and colbert scores, and of its BM25 score where it has one; and what each
    of the boosts that were asked for adds.
    """

    terms: list[ExplainedTerm]
    alignment: list[AlignedToken]
    bm25: NotRequired[list[ExplainedWord]]
    boosts: NotRequired[list[float]]


def require_explainable(query: Representations, text: str | None, hits: int, *, bm25: bool) -> None:
    """Raises InvalidRequestError where so many hits of this query would take too long to explain.

    text: the query's, where it is known; bm25: whether the collection counts its words.
    """
    vectors = _vectors(query)
    characters = len(text) if bm25 and text is not None else 0
    vectors_per_hit = vectors + characters // CHARACTERS_PER_VECTOR
    if hits * vectors_per_hit > MAX_ALIGNED:
        words = f" and the words of its {characters} characters" if characters else ""
        most = MAX_ALIGNED // vectors_per_hit
        remedy = f"set top_k to at most {most}, or shorten the query" if most else "shorten the query"
        raise InvalidRequestError(
            f"explain aligns {hits} hits with {vectors} tokens of the query{words}; the limit is "
            f"{MAX_ALIGNED} pairs, {CHARACTERS_PER_VECTOR} characters being worth a token: {remedy}",
            "explain",
        )


def require_few_windows(snapshot: ReadableSnapshot, query: Representations, hits: Sequence[Hit]) -> None:
    """Raises InvalidRequestError where hits have so many windows that all would take too long to explain.

    One hit is always explained: the search itself took as long for it.
    """
    vectors, windows = _vectors(query), snapshot.encodings_of(*_names(hits))
    if len(hits) > 1 and windows * vectors > MAX_ALIGNED:
        raise InvalidRequestError(
            f"explain aligns the {windows} windows of {len(hits)} hits with {vectors} tokens of the query; "
            f"the limit is {MAX_ALIGNED} pairs: set top_k lower, or shorten the query",
            "explain",
        )


def _vectors(query: Representations) -> int:
    return 0 if query.colbert is None else len(query.colbert.vectors)


def explain_hits(
    snapshot: ReadableSnapshot,
    tokenizer: Tokenizer,
    text: str | None,
    query: Representations,
    hits: Sequence[Hit],
    boosts: Sequence[Boost] = (),
) -> list[HitExplanation]:
    """One explanation for each hit; `text` is the query's, None for ready representations.

    Raises as `require_few_windows`.
    """
    require_few_windows(snapshot, query, hits)
    query_tokens, of_prompt = _query_tokens(text, query, tokenizer)
    cutter, unpooled = cutter_for(snapshot.settings, tokenizer), snapshot.settings.token_pooling == 1
    names, collections = _names(hits)
    stored = snapshot.explanations(query, names, text, collections)
    texts = [
        _aligned_text(hit.document, explanation.alignment, cutter)
        for hit, explanation in zip(hits, stored, strict=True)
    ]
    batch = tokenizer.tokenize([aligned or "" for aligned in texts], "document")
    has_vector = tokenizer.has_vector(batch)
    explanations = []
    for explanation, aligned, (start, stop) in zip(
        stored, texts, pairwise(batch.offsets.tolist()), strict=True
    ):
        own = slice(start, start if aligned is None else stop)
        ids = batch.token_ids[own][has_vector[own]]
        vectors = explanation.alignment.document_vectors
        # A vector that tokens share is of none of them.
        nearest = _tokens_at(ids, vectors, tokenizer) if unpooled else [None] * len(vectors)
        explained: HitExplanation = {
            "terms": _terms(explanation.terms, tokenizer),
            "alignment": _aligned(explanation.alignment, query_tokens, of_prompt, nearest),
        }
        if explanation.bm25 is not None:
            explained["bm25"] = _words(explanation.bm25)
        explanations.append(explained)
    if boosts:
        for explained, added in zip(
            explanations, _rounded(snapshot.boosts_of(names, boosts, collections).T), strict=True
        ):
            explained["boosts"] = added
    return explanations


def _names(hits: Sequence[Hit]) -> tuple[list[str], list[str | None]]:
    """Ids, and the collections of each where there are several."""
    return [hit.document.id for hit in hits], [hit.document.collection for hit in hits]


def _query_tokens(
    text: str | None, query: Representations, tokenizer: Tokenizer
) -> tuple[list[str], list[bool]]:
    """The token of each of the query's vectors, and whether it is of the prompt; none where no text has so
    many.

    Ready representations may come with another text than was encoded.
    """
    if text is None or query.colbert is None:
        return [], []
    batch = tokenizer.tokenize([text], "query")
    has_vector = tokenizer.has_vector(batch)
    token_ids = batch.token_ids[has_vector]
    if len(token_ids) != len(query.colbert.vectors):
        return [], []
    return tokenizer.shown_tokens(token_ids), tokenizer.is_instruction(batch)[has_vector].tolist()


def _aligned_text(document: Document, alignment: Alignment, cutter: WindowCutter | None) -> str | None:
    """What was encoded into the token vectors that were compared; None where that is not known."""
    if cutter is None:
        return document.encoded_text
    return None if alignment.window is None else text_of_window(document, alignment.window, cutter)


def _terms(terms: MatchingTerms, tokenizer: Tokenizer) -> list[ExplainedTerm]:
    explained: list[ExplainedTerm] = [
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
            tokenizer.shown_tokens(terms.token_ids),
            _rounded(terms.query_weights),
            _rounded(terms.idf),
            _rounded(terms.document_weights),
            _rounded(terms.products),
            strict=True,
        )
    ]
    if terms.windows is not None:
        for term, window in zip(explained, terms.windows.tolist(), strict=True):
            term["window"] = window
    return explained


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
            _rounded(terms.idf),
            terms.frequencies.tolist(),
            _rounded(terms.weights),
            _rounded(terms.products),
            strict=True,
        )
    ]


def _aligned(
    alignment: Alignment,
    query_tokens: Sequence[str],
    of_prompt: Sequence[bool],
    document_tokens: Sequence[str | None],
) -> list[AlignedToken]:
    aligned: list[AlignedToken] = [
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
                _rounded(alignment.similarities),
                strict=False,
            )
        )
    ]
    for token, is_prompt in zip(aligned, of_prompt, strict=False):
        if is_prompt:
            token["prompt"] = True
    if alignment.window is not None:
        for token in aligned:
            token["window"] = alignment.window.index
    return aligned


def _tokens_at(ids: Int32, positions: Int64, tokenizer: Tokenizer) -> list[str | None]:
    """The token at each position; None for one beyond the ids."""
    known = positions < len(ids)
    strings = iter(tokenizer.shown_tokens(ids[positions[known]]))
    return [next(strings) if is_known else None for is_known in known.tolist()]


def _rounded(values: npt.NDArray[Any]) -> list[Any]:
    """Numbers with as many decimals as scores have."""
    rounded: list[Any] = values.astype(np.float64).round(DECIMALS).tolist()
    return rounded
