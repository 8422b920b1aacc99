"""Request and response shapes of the routes. A field that is not listed here is an error.

`null` for an optional field means its default. Limits that are settings are checked in the routes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from index.dense import DenseKind
from index.fields import FieldType
from index.manifest import MAX_FIELDS
from index.token_vectors import TokenCodec
from models.representations import InputType, Output
from service.jobs.store import JobState
from service.sources.reader import OnError

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
PresetName = Literal["sum", "miracl", "mldr", "flag"]


def _whole(value: object) -> object:
    """JSON has one kind of number, so 3.0 is the integer 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_whole)]

# Beyond these a float32 sum could overflow; unit vectors and lexical weights are far below.
Component = Annotated[float, Field(ge=-1e4, le=1e4, allow_inf_nan=False)]
# More than any encoder gives; without a limit, checking millions of numbers would hold up other requests.
MAX_ROWS = 65_536
Vector = Annotated[list[Component], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
LexicalWeight = Annotated[float, Field(ge=0, le=1e4, allow_inf_nan=False)]
TokenId = Annotated[Integer, Field(ge=0, lt=2**31)]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Text = Annotated[str, Field(description="A text; characters are limited by the setting `max_characters`.")]
Texts = Annotated[list[Text], Field(min_length=1, fail_fast=True)]
CollectionName = Annotated[str, Field(pattern=NAME_PATTERN, description="A collection.")]


class Request(BaseModel):
    """A request body: JSON types are taken as they are, unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, value: object) -> object:
        """Keeps one unknown field to complain of: a million of them would be a million complaints."""
        if not isinstance(value, dict) or len(value) <= len(cls.model_fields):
            return value
        known = {name: value[name] for name in cls.model_fields if name in value}
        unknown = next(name for name in value if name not in known)
        return {**known, unknown: value[unknown]}


class EmbedRequest(Request):
    """Texts to encode."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": ["Tea is brewed with hot water."], "outputs": ["dense"]}]}
    )

    inputs: Text | Texts = Field(
        description="One text or several; their number is limited by the setting `max_texts`."
    )
    input_type: InputType | None = Field("document", description="Chooses the instruction prefix, if any.")
    outputs: Annotated[list[Output], Field(min_length=1, max_length=16, fail_fast=True)] | None = Field(
        None, description="Which representations; all three by default."
    )
    truncate: bool | None = Field(True, description="Cut longer texts; otherwise they are errors.")
    max_length: Annotated[Integer, Field(ge=1)] | None = Field(
        None, description="Tokens of a text, special tokens included; by default the encoder's limit."
    )
    dimensions: Annotated[Integer, Field(ge=1)] | None = Field(
        None, description="Keep this many values of the dense vector, normalized again."
    )
    encoding: Literal["float", "base64"] | None = Field(
        "float", description="`base64`: dense and colbert as little-endian float32 with their shape."
    )


class PackedArray(BaseModel):
    """An array as base64 of its little-endian float32 values, row by row."""

    data: str = Field(description="Base64 of the values.")
    shape: list[int] = Field(description="Rows and columns, or one length.")
    dtype: Literal["float32"] = "float32"


class SparseEmbedding(BaseModel):
    """Lexical weights of a text; ids ascend, and the three lists go together."""

    token_ids: list[int]
    weights: list[float]
    tokens: list[str]


class Embedding(BaseModel):
    """What was asked for of one text."""

    dense: list[float] | PackedArray | None = Field(None, description="Unit length.")
    sparse: SparseEmbedding | None = None
    colbert: list[list[float]] | PackedArray | None = Field(None, description="One unit vector per token.")
    tokens: int = Field(description="Tokens encoded, special tokens included.")
    truncated: bool = Field(description="Whether the text was longer.")


class Usage(BaseModel):
    """What a request cost."""

    tokens: int


class EmbedResponse(BaseModel):
    """One embedding for each text, in order."""

    model: str
    fingerprint: str
    usage: Usage
    embeddings: list[Embedding]


class WeightsRequest(Request):
    """Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out."""

    dense: Weight | None = 1.0
    sparse: Weight | None = 1.0
    colbert: Weight | None = 1.0


class CandidatesRequest(Request):
    """How many documents each retriever proposes, at most `max_candidates`; 0 turns one off.

    By default 200, or `top_k` where that is more.
    """

    dense: Annotated[Integer, Field(ge=0)] | None = None
    sparse: Annotated[Integer, Field(ge=0)] | None = None


class SparseQuery(Request):
    """Lexical weights of a query, as `/embed` gives them."""

    token_ids: Annotated[list[TokenId], Field(max_length=MAX_ROWS, fail_fast=True)]
    weights: Annotated[list[LexicalWeight], Field(max_length=MAX_ROWS, fail_fast=True)]
    tokens: Annotated[list[str], Field(max_length=MAX_ROWS, fail_fast=True)] | None = Field(
        None, description="Ignored; `/embed` gives it."
    )


class RepresentationsQuery(Request):
    """Ready representations of a query, made with the collection's encoder: an item of `embeddings` as
    `/embed` gives it for `"input_type": "query"`.

    A side may be missing only where its weight and its number of candidates are 0.
    """

    dense: Vector | None = None
    sparse: SparseQuery | None = None
    colbert: Annotated[list[Vector], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)] | None = None
    tokens: Integer | None = Field(None, description="Ignored; `/embed` gives it.")
    truncated: bool | None = Field(None, description="Ignored; `/embed` gives it.")


class SearchOptions(Request):
    """Effort of the approximate dense search."""

    ef_search: Annotated[Integer, Field(ge=1, le=100_000)] | None = Field(
        None, description="For kind `hnsw`."
    )
    nprobe: Annotated[Integer, Field(ge=1, le=100_000)] | None = Field(None, description="For kind `ivfpq`.")


class SearchRequest(Request):
    """A query to a collection."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"collection": "demo", "query": "how is tea made", "top_k": 3}]}
    )

    collection: CollectionName
    query: Text | RepresentationsQuery
    top_k: Annotated[Integer, Field(ge=1)] | None = Field(
        None, description="Hits; by default 10, and limited by the setting `max_top_k`."
    )
    weights: WeightsRequest | PresetName | None = Field(
        None, description="Weights of the three scores, or a preset's name; by default `sum`: 1, 1, 1."
    )
    candidates: CandidatesRequest | None = None
    filter: dict[str, Any] | None = Field(
        None,
        description="Documents to search among: a tree of and, or, not, eq, in, gte, gt, lte, lt, exists "
        "over the collection's fields.",
    )
    explain: bool | None = Field(False, description="Say for each hit where its scores come from.")
    search_options: SearchOptions | None = None


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


class TermMatch(BaseModel):
    """A token that query and document share; the products add up to the sparse score."""

    token_id: int
    token: str
    query_weight: float
    document_weight: float
    product: float


class TokenAlignment(BaseModel):
    """A query token's best document token; the mean of the similarities is the colbert score.

    Positions count token vectors. A token is null where its text is not known.
    """

    query_position: int
    query_token: str | None
    document_position: int
    document_token: str | None
    similarity: float


class ExplanationResponse(BaseModel):
    """Where a hit's scores come from."""

    terms: list[TermMatch]
    alignment: list[TokenAlignment]


class HitResponse(BaseModel):
    """A document found."""

    id: str
    score: float
    scores: ScoresResponse
    title: str | None
    text: str
    metadata: dict[str, Any]
    explanation: ExplanationResponse | None = Field(None, description="Only where asked for.")


class QueryUsage(BaseModel):
    """How the query was encoded; 0 tokens for ready representations."""

    tokens: int
    truncated: bool


class SearchResponse(BaseModel):
    """Hits, best first; ties in order of id."""

    collection: str
    snapshot: str
    query: QueryUsage
    took_ms: TookMs
    hits: list[HitResponse]


class RerankRequest(Request):
    """Documents to order by their scores with a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "how is tea made", "documents": ["Brewing tea.", "A history of rail."]}]
        }
    )

    query: Text
    documents: Texts = Field(description="Their number is limited by the setting `max_documents`.")
    top_n: Annotated[Integer, Field(ge=1)] | None = Field(None, description="Results; all by default.")
    weights: WeightsRequest | PresetName | None = Field(None, description="As in `/search`.")


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


def _few_fields(value: object) -> object:
    """Counts before the values are checked: a million wrong ones would be a million complaints."""
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        raise ValueError(f"{len(value)} fields are declared; the limit is {MAX_FIELDS}")
    return value


class CollectionRequest(Request):
    """Settings of a new collection; they never change afterwards."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"dense_kind": "hnsw", "fields": {"year": "integer"}}]}
    )

    dense_kind: DenseKind | None = Field("auto", description="The dense index; `auto` chooses by size.")
    token_codec: TokenCodec | None = Field("int8", description="How token vectors are stored.")
    fields: Annotated[dict[str, FieldType], BeforeValidator(_few_fields)] | None = Field(
        None, description="Metadata fields that filters may use."
    )


class CollectionResponse(BaseModel):
    """A collection's settings and state; `snapshot` is null before its first publication."""

    name: str
    snapshot: str | None
    documents: int
    encoder: str
    fingerprint: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    dense_kind: DenseKind
    token_codec: TokenCodec
    fields: dict[str, FieldType]


class CollectionList(BaseModel):
    """All collections, in order of name."""

    collections: list[CollectionResponse]


class DocumentResponse(BaseModel):
    """A stored document."""

    id: str
    title: str | None
    text: str
    metadata: dict[str, Any]


class JobRequest(Request):
    """A batch build of a collection; it replaces what the collection holds when it is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "articles.jsonl"}]})

    source: Annotated[str, Field(min_length=1, max_length=1024)] = Field(
        description="A file or folder below `sources/` of the data root: JSONL, JSONL.gz, Parquet, BEIR."
    )
    encoder: str | None = Field(None, description="Null, or the name or fingerprint of this encoder.")
    on_error: OnError | None = Field(
        "stop", description="At a bad record: `stop` fails the job and names it, `skip` leaves it out."
    )


class JobResponse(BaseModel):
    """A job's progress and outcome. Times are ISO 8601 in UTC."""

    id: str
    collection: str
    source: str
    state: JobState
    documents_done: int
    documents_total: int | None
    fraction: float = Field(description="Share of the source that was read, from 0 to 1.")
    tokens: int
    on_error: OnError
    skipped: int = Field(description="Bad records that were left out.")
    skips: list[str] = Field(description="Where the first of them are, and what is wrong; once it is done.")
    truncated: int = Field(description="Documents longer than the encoder's limit; once it is done.")
    snapshot: str | None
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class JobList(BaseModel):
    """All jobs, the newest first."""

    jobs: list[JobResponse]


class StatusResponse(BaseModel):
    """The process answers."""

    status: Literal["ok", "ready"]


class EncoderResponse(BaseModel):
    """The encoder: its identity, its sizes, its limit in tokens."""

    name: str
    fingerprint: str
    engine: str
    precision: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    max_length: int
    pooling: str


class LimitsResponse(BaseModel):
    """What one request may ask for."""

    body_bytes: int
    texts: int
    characters: int
    documents: int
    top_k: int
    candidates: int
    request_tokens: int


class InfoResponse(BaseModel):
    """What this server is."""

    name: Literal["tercet"]
    version: str
    encoder: EncoderResponse
    encoding_settings: dict[str, Any]
    limits: LimitsResponse


class ErrorDetail(BaseModel):
    """What went wrong."""

    type: str = Field(description="The kind of failure, one for each status.")
    message: str = Field(description="For people: the value, the limit and the remedy.")
    param: str | None = Field(description="The field that is wrong, such as `candidates.dense`.")
    code: str = Field(description="For programs: what exactly is wrong.")


class ErrorResponse(BaseModel):
    """The shape of every error."""

    error: ErrorDetail
