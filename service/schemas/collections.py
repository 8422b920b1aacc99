"""Shapes of the routes of collections and their documents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tercet.index.bm25.languages import Bm25Language
from tercet.index.candidates import DEFAULT_CANDIDATES
from tercet.index.catalog.names import MAX_TITLE
from tercet.index.catalog.settings import FEWER_FIELDS, MAX_FIELDS
from tercet.index.dense.kinds import DenseKind
from tercet.index.documents.metadata import FieldType
from tercet.index.token_codecs import LARGEST_POOLING, TokenCodec
from tercet.index.windows.settings import LARGEST_WINDOW_TOKENS, SMALLEST_WINDOW_TOKENS
from tercet.models.representations import LexicalKind
from tercet.service.schemas.base import (
    WHOLE,
    AdapterName,
    ModelName,
    NextPage,
    Position,
    Request,
    at_most,
)
from tercet.service.schemas.search import PresetName, SearchWeightsRequest
from tercet.service.schemas.search_answers import CandidatesResponse, WeightsResponse

DefaultCount = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
FIELD_COUNT = at_most(MAX_FIELDS, "fields are declared", FEWER_FIELDS)


class WindowRequest(Request):
    """Windows in which documents beyond them are encoded."""

    tokens: Annotated[int, Field(ge=SMALLEST_WINDOW_TOKENS, le=LARGEST_WINDOW_TOKENS), WHOLE] = Field(
        description="Tokens of a window at most, special tokens included; no more than the encoder takes."
    )
    overlap: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        None,
        description="Tokens that neighbours share, at most three quarters of a window; by default a quarter.",
    )


class CollectionRequest(Request):
    """Settings of a new collection; but for more fields, they never change afterwards."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"dense_kind": "hnsw", "fields": {"year": "integer"}}]}
    )

    dense_kind: DenseKind | None = Field(
        "auto",
        description="The dense index; `auto` chooses by the collection's size and `dense_memory_bytes`.",
    )
    dense_memory_bytes: Annotated[int, Field(ge=1, le=2**53), WHOLE] | None = Field(
        None,
        description="What dense vectors and their graphs may take of memory; where they take more, `auto` "
        "builds `ivfrabitq`. By default half of the memory of the machine that builds.",
    )
    token_codec: Literal["float16", "int8", "sign", "none"] | None = Field(
        None,
        description="How token vectors are stored, by default `int8`, and `none` where the encoder has none; "
        "`sign` keeps one bit for each value. The residual codecs, which `tercet collection build "
        "--token-codec` takes, keep as few with a codebook that is learned from the source, and lose less.",
    )
    token_pooling: Annotated[int, Field(ge=1, le=LARGEST_POOLING), WHOLE] | None = Field(
        1,
        description="How many tokens of a document share one token vector: those that are alike are stored "
        "as their mean.",
    )
    lexical: LexicalKind | None = Field(
        None,
        description="`idf`: a query's lexical weights are multiplied by the collection's idf; `plain`: they "
        "stay as they are. By default what the encoder's checkpoint recommends.",
    )
    bm25: bool | None = Field(
        False,
        description="Whether searches may also use BM25, as a fourth side. They weigh it only where they "
        "give `weights.bm25`, such as 1.",
    )
    bm25_language: Bm25Language | None = Field(
        None,
        description="Only with `bm25`: the language whose stems words in its script have, by default "
        "`english`. Words in other scripts have those of the script's main language; Korean, Japanese, "
        "Chinese, Thai, Lao, Khmer and Myanmar are read in pairs of characters. `none` leaves words as they "
        "are.",
    )
    model: ModelName | None = Field(
        None, description="Its encoder, one that `/v1/models` lists; by default the server's own."
    )
    adapter: AdapterName | None = Field(
        None,
        description="An adapter or router for its documents and queries; by default none. Of a fixed router "
        "the adapter that it chooses now is kept.",
    )
    window: WindowRequest | Literal[False] | None = Field(
        None,
        description="The overlapping windows in which long documents are encoded, by default as long as the "
        "encoder reads; `false` for none, so that documents are cut there.",
    )
    fields: Annotated[dict[str, FieldType], FIELD_COUNT] | None = Field(
        None,
        description="Metadata fields that filters may use; their names may be any text. A `datetime` is a "
        "string of RFC 3339, such as `2024-05-17T09:30:00Z`; without an offset it is UTC. `POST "
        "/collections/{name}/fields` declares more later.",
    )
    partitioned: bool | None = Field(
        False,
        description="Whether each document has a `partition`, such as its tenant, by which it is placed: "
        "over shards the documents of a partition are in one shard, and a search of it asks that one.",
    )
    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE)] | None = Field(
        None, description="What people call the collection; its name is for programs."
    )


class FieldsRequest(Request):
    """Metadata fields to declare over what a collection holds."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"fields": {"year": "integer"}}]})

    fields: Annotated[dict[str, FieldType], FIELD_COUNT, Field(min_length=1)] = Field(
        description="Their types, as at the creation of a collection."
    )


class DefaultCandidates(Request):
    """How many documents each retriever proposes. BM25 proposes only where it has a weight."""

    dense: DefaultCount | None = DEFAULT_CANDIDATES
    sparse: DefaultCount | None = DEFAULT_CANDIDATES
    bm25: DefaultCount | None = None


class DefaultsRequest(Request):
    """What later searches of a collection use where they give no weights or candidates."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"weights": {"dense": 1, "sparse": 0.5, "colbert": 1}}]}
    )

    weights: SearchWeightsRequest | PresetName
    candidates: DefaultCandidates | None = Field(None, description="By default 200 of each retriever.")


class DefaultsResponse(BaseModel):
    """What searches use where they give no weights or candidates; `tercet tune` or `PUT
    /collections/{name}/defaults` stores it.
    """

    weights: WeightsResponse
    candidates: CandidatesResponse


class UsedDefaults(DefaultsResponse):
    """What searches that give no weights or candidates use."""

    stored: bool = Field(description="Whether it is stored; otherwise it is what is usual.")


class WindowResponse(BaseModel):
    """Windows in which documents beyond them are encoded."""

    tokens: int
    overlap: int


class CollectionResponse(BaseModel):
    """A collection's settings and state; `snapshot` is null before its first publication."""

    name: str
    collections: list[str] | None = Field(
        None, description="Only of an alias of several, which are described as one."
    )
    title: str | None = Field(description="What people call it, if that was said.")
    snapshot: str | None
    documents: int
    model: str = Field(description="Its encoder.")
    adapter: str | None
    fingerprint: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    dense_kind: DenseKind
    dense_memory_bytes: int | None = Field(description="Null for half of the memory of the machine.")
    token_codec: TokenCodec
    token_pooling: int
    lexical: LexicalKind
    bm25: bool
    bm25_language: Bm25Language | None = Field(description="Null without `bm25`.")
    window: WindowResponse | None = Field(description="Null where documents are encoded whole.")
    fields: dict[str, FieldType]
    partitioned: bool = Field(description="Whether documents are placed by their field `partition`.")
    defaults: DefaultsResponse | None = Field(description="Null where none are stored.")


class UnpublishedResponse(BaseModel):
    """Documents in memory that no segment has yet."""

    documents: int
    bytes: int


class LedgerResponse(BaseModel):
    """Writes on the disk that no segment has yet; `bytes` are those of its files."""

    entries: int
    bytes: int


class StatisticsResponse(BaseModel):
    """What a collection holds, and how far its upkeep is."""

    name: str
    documents: int = Field(description="Those that searches find.")
    deleted: int = Field(description="Rows of segments that a merge will drop.")
    segments: int
    bytes: dict[str, int] = Field(description="Of each part of the index, over all segments.")
    unpublished: UnpublishedResponse
    ledger: LedgerResponse
    position: Annotated[Position, Field(description="Of the last write.")]
    published_position: Annotated[Position, Field(description="Of the last write that segments hold.")]
    flushing: bool
    merging: bool


class CollectionList(BaseModel):
    """Collections, in order of name."""

    collections: list[CollectionResponse]
    next: NextPage = None
