"""Answers of `/search`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field


class TookMs(BaseModel):
    """Milliseconds of each stage."""

    encode: float
    retrieve: float
    score: float
    total: float
    rerank: float | None = Field(None, description="Only where a re-ranker was asked for.")


class ScoresResponse(BaseModel):
    """The three scores before weighting; null where the collection does not store that side."""

    dense: float | None
    sparse: float | None
    colbert: float | None


class HitScoresResponse(ScoresResponse):
    """The scores before weighting; null where the collection does not store a side, or the query lacks it."""

    bm25: float | None = Field(None, description="Only where the collection has BM25.")
    boost: float | None = Field(
        None, description="What `boosts` added to the score; only where they were asked for."
    )
    reranker: float | None = Field(
        None,
        description="The re-ranker's logit, by which the hits are in order; only where one was asked for.",
    )


class TermMatch(BaseModel):
    """A token that query and document share. `product` is that of the two weights and `idf`; the products add
    up to the lexical score.
    """

    token_id: int
    token: str
    query_weight: float
    idf: float = Field(description="The collection's idf(t) / m; 1 where its `lexical` is `plain`.")
    document_weight: float
    product: float
    window: int | None = Field(
        None,
        description="The first of the document's windows in which the token weighs most; only in a "
        "collection with windows.",
    )


class TokenAlignment(BaseModel):
    """A query token's best document token; the mean of the similarities is the colbert score.

    Positions count token vectors. A token is null where its text is not known.
    """

    query_position: int
    query_token: str | None
    document_position: int
    document_token: str | None
    similarity: float
    prompt: bool | None = Field(
        None,
        description="True where the query's token is of what the encoder has before a query, and not of its "
        "text; else absent.",
    )
    window: int | None = Field(
        None,
        description="The document's window whose token vectors these are, the one of highest colbert score; "
        "only in a collection with windows.",
    )


class WordMatch(BaseModel):
    """A term of BM25, a stem or a pair of characters, that query and document share. `product` is the scaled
    product of `query_count`, `idf` and `document_weight`; the products add up to the BM25 score.
    """

    term: str
    query_count: int
    idf: float
    frequency: int = Field(description="How often the document has it.")
    document_weight: float = Field(description="What that is worth in a document of its length, below 1.")
    product: float


class ExplanationResponse(BaseModel):
    """Where a hit's scores come from."""

    terms: list[TermMatch]
    alignment: list[TokenAlignment]
    bm25: list[WordMatch] | None = Field(None, description="Only where the hit has a BM25 score.")
    boosts: list[float] | None = Field(
        None, description="What each of `boosts` added, in their order; only where they were asked for."
    )


class HitWindowResponse(BaseModel):
    """The window of a document that matches best: the one that would score highest by itself."""

    index: int = Field(description="Its place among the document's windows, from 0.")
    start: int = Field(description="Its first character in `text`, counted in Unicode code points.")
    end: int = Field(description="The character after its last.")


class HighlightResponse(BaseModel):
    """A part of a text that has what the query says."""

    start: int = Field(description="Its first character, counted in Unicode code points.")
    end: int = Field(description="The character after its last.")


def _left_out() -> Any:
    """A field that an answer need not have, but never has as null for that."""
    return Field(None, description="Unless `include` leaves it out.", json_schema_extra=_without_default)


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class HitResponse(BaseModel):
    """A document found."""

    id: str
    collection: str | None = Field(None, description="Only through an alias of several collections.")
    score: float
    scores: HitScoresResponse = _left_out()
    confidence: float | None = Field(
        None,
        description="The probability that the document answers the query, from 0 to 1, by its scores without "
        "weights, the query's length and the gap to the next; boosts do not move it. Only where the "
        "checkpoint or the collection has a calibration.",
    )
    window: HitWindowResponse | None = Field(None, description="Only in a collection with windows.")
    title: str | None = _left_out()
    text: str = _left_out()
    metadata: dict[str, Any] = _left_out()
    partition: str | None = Field(None, description="With `metadata`, where `metadata.partition` is a text.")
    explanation: ExplanationResponse | None = Field(None, description="Only where asked for.")
    highlights: list[HighlightResponse] | None = Field(
        None, description="Of `text`, in order and apart; only where asked for."
    )
    title_highlights: list[HighlightResponse] | None = Field(
        None, description="Of `title`; only where asked for, and empty where there is none."
    )


class QueryTermsResponse(BaseModel):
    """The query's lexical weights, and what the collection multiplies each by; one place for each term."""

    token_ids: list[int]
    tokens: list[str]
    weights: list[float]
    idf: list[float] = Field(description="The collection's idf(t) / m.")


class QueryUsage(BaseModel):
    """How the query was encoded; 0 tokens for ready representations."""

    tokens: int
    truncated: bool
    terms: QueryTermsResponse | None = Field(
        None,
        description="Only where the collection's `lexical` is `idf`; of a search, where `include` has them.",
    )


class WeightsResponse(BaseModel):
    """Weights of the scores in the sum."""

    dense: float
    sparse: float
    colbert: float
    bm25: float | None = Field(None, description="Only where the collection has BM25.")


class CandidatesResponse(BaseModel):
    """How many documents each retriever proposes, at most."""

    dense: int
    sparse: int
    bm25: int | None = Field(
        None, description="Only where the collection has BM25; 0 where that has no weight."
    )


class FacetValueResponse(BaseModel):
    """A value, and how many documents have it."""

    value: str | bool
    count: int


class FacetResponse(BaseModel):
    """The commonest values of a field, of equally common ones the smaller first."""

    values: list[FacetValueResponse]
    distinct: int = Field(
        description="Different values in all; over shards, where one has more than 4,096, an estimate, two "
        "times of three within 1.6%."
    )
    missing: int = Field(description="Documents without a value.")
    unlisted: int | None = Field(
        None,
        description="Only over shards, where not all values could be compared: so many documents, at most, "
        "have a value that is not listed.",
    )


Exhausted = Annotated[
    bool, Field(description="No hits of these candidates follow; where it is false, some may.")
]
Confident = Annotated[
    bool | None,
    Field(
        description="Whether the best document is sure enough, so that the query is taken as answered; only "
        "where hits have a `confidence`."
    ),
]
Facets = Annotated[
    dict[str, FacetResponse] | None, Field(description="By field; only where they were asked for.")
]


class PartialResponse(BaseModel):
    """What an answer lacks."""

    shards: list[str] = Field(description="Shards that did not answer.")


Partial = Annotated[
    PartialResponse | None,
    Field(description="Only where `allow_partial` was given and shards did not answer, in time or at all."),
]


class SearchResponse(BaseModel):
    """Hits, best first; ties in order of id, then of collection. `weights` and `candidates` are those that
    were used. Those of a re-ranker come in its order, and ties in that of `score`.
    """

    collection: str
    snapshot: str
    query: QueryUsage
    weights: WeightsResponse
    candidates: CandidatesResponse
    took_ms: TookMs
    exhausted: Exhausted
    confident: Confident = None
    facets: Facets = None
    partial: Partial = None
    hits: list[HitResponse]


class QueryResult(BaseModel):
    """The hits of one of several queries, best first; ties in order of id."""

    query: QueryUsage
    took_ms: TookMs
    exhausted: Exhausted
    confident: Confident = None
    hits: list[HitResponse]


class SearchManyResponse(BaseModel):
    """A result for each of `queries`, in order. `weights` and `candidates` are those that were used."""

    collection: str
    snapshot: str
    weights: WeightsResponse
    candidates: CandidatesResponse
    took_ms: TookMs
    facets: Facets = None
    partial: Partial = None
    results: list[QueryResult]
