"""Shapes of `/search` and `/rerank`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from index.search.query import MAX_FACET_VALUES
from service.ready_representations import LARGEST_COMPONENT
from service.schemas.base import NAME_PATTERN, WHOLE, AdapterName, Integer, Request, Text, Texts, Usage
from service.schemas.filters import FilterTree
from service.search.pipeline import HitPart

PresetName = Literal["sum", "miracl", "mldr", "flag"]

Component = Annotated[float, Field(ge=-LARGEST_COMPONENT, le=LARGEST_COMPONENT, allow_inf_nan=False)]
# More than any encoder gives; without a limit, checking millions of numbers would hold up other requests.
MAX_ROWS = 65_536
MAX_OFFSET = 1_000_000
MAX_FACETS = 32
Vector = Annotated[list[Component], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
LexicalWeight = Annotated[float, Field(ge=0, le=1e4, allow_inf_nan=False)]
TokenId = Annotated[int, Field(ge=0, lt=2**31), WHOLE]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
CollectionName = Annotated[str, Field(pattern=NAME_PATTERN, description="A collection.")]


class WeightsRequest(Request):
    """Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out."""

    dense: Weight | None = 1.0
    sparse: Weight | None = 1.0
    colbert: Weight | None = 1.0


def _for_search(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(
            "of_search", "it is for /search; /rerank has dense, sparse and colbert: leave it out"
        )


class RerankWeightsRequest(WeightsRequest):
    """Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out."""

    # Not described; here so that what suits /search is told from a misspelt name.
    bm25: SkipJsonSchema[Annotated[None, BeforeValidator(_for_search)]] = None


class SearchWeightsRequest(WeightsRequest):
    """Weights of the scores in the sum; 0 leaves a side out. One of the three that is not given is 1, and
    `bm25`, of a collection that was created with it, is 0.
    """

    bm25: Weight | None = 0.0


class CandidatesRequest(Request):
    """How many documents each retriever proposes, at most `max_candidates`; 0 turns one off.

    By default those that are stored with the collection, or else 200; always enough for `top_k`. BM25
    proposes only where it has a weight.
    """

    dense: Annotated[int, Field(ge=0), WHOLE] | None = None
    sparse: Annotated[int, Field(ge=0), WHOLE] | None = None
    bm25: Annotated[int, Field(ge=0), WHOLE] | None = None


class SparseQuery(Request):
    """Lexical weights of a query, as `/embed` gives them."""

    token_ids: Annotated[list[TokenId], Field(max_length=MAX_ROWS, fail_fast=True)]
    weights: Annotated[list[LexicalWeight], Field(max_length=MAX_ROWS, fail_fast=True)]
    tokens: Annotated[list[str], Field(max_length=MAX_ROWS, fail_fast=True)] | None = Field(
        None, description="Ignored; `/embed` gives it."
    )


class PackedVectors(Request):
    """A vector, or one vector for each token, as `/embed` gives it for `"encoding": "base64"`."""

    data: str = Field(description="Base64 of little-endian float32 values, row by row.")
    shape: Annotated[list[Annotated[int, Field(ge=1), WHOLE]], Field(min_length=1, max_length=2)] = Field(
        description="Rows and columns, or one length."
    )
    dtype: Literal["float32"] | None = "float32"


class RepresentationsQuery(Request):
    """Ready representations of a query, made with the collection's encoder: an item of `embeddings` as
    `/embed` gives it for `"input_type": "query"`.

    A side may be missing only where its weight and its number of candidates are 0.
    """

    dense: Vector | PackedVectors | None = None
    sparse: SparseQuery | None = None
    colbert: (
        Annotated[list[Vector], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
        | PackedVectors
        | None
    ) = None
    text: Text | None = Field(None, description="What was encoded, for BM25, which reads the text itself.")
    tokens: Integer | None = Field(None, description="Ignored; `/embed` gives it.")
    truncated: bool | None = Field(None, description="Ignored; `/embed` gives it.")


class StoredDocumentQuery(Request):
    """A stored document as the query: its representations, and its text for BM25. It is no hit itself."""

    id: str = Field(description="Of a document of the collection; another is 404.")
    window: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        None,
        description="Which of its windows is the query, from 0; by default the first, which is all of a "
        "document without windows.",
    )


def _kind_of_query(value: object) -> str | None:
    """Which of them a value is meant to be; None for what is neither a string nor an object."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "document" if "id" in value else "representations"
    return None


Query = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[RepresentationsQuery, Tag("representations")]
    | Annotated[StoredDocumentQuery, Tag("document")],
    Discriminator(_kind_of_query, "string_or_object", "use a string or an object"),
]


class SearchAfter(Request):
    """The last hit that is known already."""

    score: Annotated[float, Field(allow_inf_nan=False)] = Field(description="Its `score`, as it came.")
    id: str


class SearchOptions(Request):
    """Effort of the approximate dense search; by default what `tercet index tune` stored."""

    ef_search: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        None, description="For kind `hnsw`; of several segments each takes its share."
    )
    nprobe: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        None, description="For kinds `ivfpq` and `ivfrabitq`."
    )


class SearchRequest(Request):
    """A query to a collection."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"collection": "demo", "query": "how is tea made", "top_k": 3}]}
    )

    collection: CollectionName
    query: Query | None = Field(None, description="What to search for; or give `queries`.")
    queries: Annotated[list[Query], Field(min_length=1, fail_fast=True)] | None = Field(
        None,
        description="Several queries, answered alike and through one snapshot; their number is limited by "
        "the setting `max_queries`, and that of all hits by `max_query_hits`.",
    )
    top_k: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Hits; by default 10, and limited by the setting `max_top_k`."
    )
    weights: SearchWeightsRequest | PresetName | None = Field(
        None,
        description="Weights of the scores, or a preset's name; by default those that are stored with the "
        "collection, or else `sum`: 1, 1, 1.",
    )
    candidates: CandidatesRequest | None = None
    filter: FilterTree | None = Field(None, description="Documents to search among.")
    adapter: AdapterName | None = Field(
        None, description="By default the collection's; another one is a conflict, 409."
    )
    explain: bool | None = Field(False, description="Say for each hit where its scores come from.")
    search_options: SearchOptions | None = None
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET), WHOLE] | None = Field(
        0, description="Hits to leave out before the first. Behind the last candidate there are none."
    )
    search_after: SearchAfter | None = Field(
        None, description="Only hits behind this one, whether it is still there or not; for one query."
    )
    snapshot: str | None = Field(
        None,
        description="Of a former answer: only this version is searched, and one that is gone is 409, so that "
        "pages fit together.",
    )
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="Only hits of this weighted sum or more."
    )
    include: Annotated[list[HitPart], Field(max_length=16)] | None = Field(
        None,
        description="The parts of a hit beside its id and score, by default all. Without title, text and "
        "metadata no stored text is read.",
    )
    group_by: str | None = Field(
        None,
        description="A declared keyword field: only the best hit of each of its values. A document of "
        "several values stands for each; one without any is a group by itself.",
    )
    facets: (
        Annotated[
            dict[str, Annotated[int, Field(ge=1, le=MAX_FACET_VALUES), WHOLE]], Field(max_length=MAX_FACETS)
        ]
        | None
    ) = Field(
        None,
        description="Of each of these keyword or boolean fields so many of the commonest values, with exact "
        "counts over all documents that `filter` allows.",
    )


class TookMs(BaseModel):
    """Milliseconds of each stage."""

    encode: float
    retrieve: float
    score: float
    total: float


class ScoresResponse(BaseModel):
    """The three scores before weighting; null where the collection does not store that side."""

    dense: float | None
    sparse: float | None
    colbert: float | None


class HitScoresResponse(ScoresResponse):
    """The scores before weighting; null where the collection does not store a side, or the query lacks it."""

    bm25: float | None = Field(None, description="Only where the collection has BM25.")


class TermMatch(BaseModel):
    """A token that query and document share. `product` is that of the two weights and `idf`; the products add
    up to the sparse score.
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


class HitWindowResponse(BaseModel):
    """The window of a document that matches best: the one that would score highest by itself."""

    index: int = Field(description="Its place among the document's windows, from 0.")
    start: int = Field(description="Its first character in `text`, counted in Unicode code points.")
    end: int = Field(description="The character after its last.")


def _left_out(description: str = "Unless `include` leaves it out.") -> Any:
    """A field that an answer need not have, but never has as null for that."""
    return Field(None, description=description, json_schema_extra=_without_default)


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class HitResponse(BaseModel):
    """A document found."""

    id: str
    score: float
    scores: HitScoresResponse = _left_out()
    window: HitWindowResponse | None = Field(None, description="Only in a collection with windows.")
    title: str | None = _left_out()
    text: str = _left_out()
    metadata: dict[str, Any] = _left_out()
    explanation: ExplanationResponse | None = Field(None, description="Only where asked for.")


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
        None, description="Only where the collection's `lexical` is `idf`."
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
    distinct: int = Field(description="Different values in all.")
    missing: int = Field(description="Documents without a value.")


Facets = Annotated[
    dict[str, FacetResponse] | None, Field(description="By field; only where they were asked for.")
]


class SearchResponse(BaseModel):
    """Hits, best first; ties in order of id. `weights` and `candidates` are those that were used."""

    collection: str
    snapshot: str
    query: QueryUsage
    weights: WeightsResponse
    candidates: CandidatesResponse
    took_ms: TookMs
    facets: Facets = None
    hits: list[HitResponse]


class QueryResult(BaseModel):
    """The hits of one of several queries, best first; ties in order of id."""

    query: QueryUsage
    took_ms: TookMs
    hits: list[HitResponse]


class SearchManyResponse(BaseModel):
    """A result for each of `queries`, in order. `weights` and `candidates` are those that were used."""

    collection: str
    snapshot: str
    weights: WeightsResponse
    candidates: CandidatesResponse
    took_ms: TookMs
    facets: Facets = None
    results: list[QueryResult]


class RerankRequest(Request):
    """Documents to order by their scores with a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "how is tea made", "documents": ["Brewing tea.", "A history of rail."]}]
        }
    )

    query: Text
    documents: Texts = Field(description="Their number is limited by the setting `max_documents`.")
    top_n: Annotated[int, Field(ge=1), WHOLE] | None = Field(None, description="Results; all by default.")
    collection: CollectionName | None = Field(
        None,
        description="Score the texts as documents of this collection: with its idf, its adapter and its "
        "stored weights. By default of none.",
    )
    weights: RerankWeightsRequest | PresetName | None = Field(
        None,
        description="As in `/search`; by default those stored with `collection`, or else `sum`: 1, 1, 1.",
    )
    adapter: AdapterName | None = Field(
        None,
        description="An adapter, or a router that chooses one for each text; by default that of "
        "`collection`, if any. Another than the collection's is a conflict, 409.",
    )


class RerankResult(BaseModel):
    """One document's scores; `index` is its place in the request."""

    index: int
    score: float
    scores: ScoresResponse
    truncated: bool = Field(description="Whether the document was longer than the encoder's limit.")


class RerankResponse(BaseModel):
    """Results, best first; ties in the request's order."""

    query: QueryUsage
    results: list[RerankResult]
    usage: Usage
