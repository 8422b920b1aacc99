"""Shapes of the routes of documents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tercet.index.documents.ids import identifier_of
from tercet.index.documents.metadata import MAX_METADATA_LEVELS
from tercet.service.schemas.base import (
    WHOLE,
    GivenPosition,
    MinPosition,
    Partition,
    Position,
    Request,
    Text,
    Usage,
    counted,
)
from tercet.service.schemas.embed import PackedArray, SparseEmbedding
from tercet.service.schemas.filters import FilterTree
from tercet.service.schemas.search import MAX_ROWS, PackedVectors, SparseQuery, Vector

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=255,
        description="A name for this write, of at most 255 bytes of UTF-8: a repeat under it within a day "
        "changes nothing and gets the same answer; another write under it is a conflict, 409.",
    ),
]
IfPosition = Annotated[
    GivenPosition,
    Field(description="Write only if none of these documents was written after this position; else 409."),
]
_Whole64 = Annotated[int, Field(ge=-(2**63), lt=2**64)]
DocumentId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        description="1 to 512 bytes of UTF-8, any characters; a whole number is the text of its digits.",
    ),
    BeforeValidator(
        identifier_of,
        json_schema_input_type=Annotated[str, Field(min_length=1, max_length=512)] | _Whole64,
    ),
]
KnownId = Annotated[str, BeforeValidator(identifier_of, json_schema_input_type=str | _Whole64)]
Whole = Annotated[int, Field(ge=0, lt=2**63), WHOLE]
ONLY_PARTITION = Field(
    None, description="All documents of this partition, or of these those of `ids` or `filter`."
)


class TextRepresentations(Request):
    """Representations of one text, as an item of `embeddings` that `/embed` gives for documents."""

    dense: Vector | PackedVectors | None = None
    sparse: SparseQuery | None = None
    colbert: (
        Annotated[list[Vector], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
        | PackedVectors
        | None
    ) = Field(None, description="May be missing where the collection's `token_codec` is `none`.")
    tokens: Whole | None = Field(None, description="Ignored; `/embed` gives it.")
    truncated: bool | None = Field(None, description="Ignored; `/embed` gives it.")


class WindowRepresentations(TextRepresentations):
    """Those of a document's window."""

    start: Annotated[int, Field(ge=0, lt=2**31), WHOLE] = Field(
        description="Its first character in `text`, counted in Unicode code points."
    )
    end: Annotated[int, Field(ge=0, lt=2**31), WHOLE] = Field(description="The character after its last.")


class DocumentRepresentations(TextRepresentations):
    """Ready representations of a document, made with the collection's encoder: nothing is encoded then."""

    fingerprint: str = Field(description="Of the encoder that made them, as `/embed` gives it.")
    windows: (
        Annotated[list[WindowRepresentations], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
        | None
    ) = Field(
        None,
        description="Only in a collection with windows, instead of `dense`, `sparse` and `colbert`: those of "
        "each window, in order. Without it the whole text is one window.",
    )
    position: GivenPosition | None = Field(None, description="Ignored; `GET` of a document gives it.")


class DocumentContent(Request):
    """A document without representations, as a line of a binary body."""

    rest_field = "metadata"

    id: DocumentId
    text: Text
    title: Text | None = Field(None, description="Encoded before the text.")
    metadata: dict[str, Any] | None = Field(
        None,
        description=f"JSON of at most {MAX_METADATA_LEVELS} levels, with integers of 64 bits; declared "
        "fields can be filtered by.",
    )
    partition: Partition | None = Field(
        None,
        description="What a partitioned collection places it by, such as a tenant; a short form of "
        "`metadata.partition`.",
    )


class DocumentRequest(DocumentContent):
    """A document."""

    representations: DocumentRepresentations | None = None


class PutDocumentsRequest(Request):
    """Documents to add, or to replace where their ids are there."""

    list_field = "documents"

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {"id": "tea", "text": "Green tea is brewed with hot water."},
                        {"id": "rail", "title": "Steam", "text": "A train.", "metadata": {"year": 1830}},
                    ],
                    "idempotency_key": "import-17",
                }
            ]
        }
    )

    documents: Annotated[
        list[DocumentRequest],
        Field(min_length=1, fail_fast=True),
        counted("write_documents", "items"),
    ] = Field(
        description="Their number is limited by the setting `max_write_documents`; no id may occur twice."
    )
    create: bool | None = Field(
        False,
        description="Makes the collection where it is missing, with the settings of a `PUT` of it without a "
        "body gives, but partitioned where each document has a `partition`; for that the key needs `admin`.",
    )
    idempotency_key: Key | None = None
    if_position: IfPosition | None = None


class PutDocumentsResponse(BaseModel):
    """Documents that are on the disk, and that the next search sees."""

    upserted: int
    position: Position
    usage: Usage
    truncated: int | None = Field(
        None, description="How many were cut at the encoder's limit; only where some were."
    )


class PatchDocumentRequest(Request):
    """What to change of a document."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"year": 2001}}]})

    metadata: dict[str, Any] = Field(description="In place of all that it has, or merged into it.")
    merge: bool | None = Field(
        False,
        description="Merge as a JSON Merge Patch (RFC 7396): what is not named stays, objects are merged, "
        "null removes.",
    )
    idempotency_key: Key | None = None
    if_position: IfPosition | None = None


class PatchDocumentResponse(BaseModel):
    """The change is on the disk."""

    position: Position


class UpdateDocumentsRequest(Request):
    """Which documents to change, by ids or filter, a partition or both, and how."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"ids": ["tea", "rail"], "metadata": {"year": 2001}},
                {"filter": {"lt": {"year": 1900}}, "metadata": {"old": True}, "merge": True},
            ]
        }
    )

    ids: (
        Annotated[list[KnownId], Field(min_length=1, fail_fast=True), counted("write_documents", "items")]
        | None
    ) = Field(None, description="Their number is limited by the setting `max_write_documents`.")
    filter: FilterTree | None = Field(None, description="All documents that it allows.")
    partition: Partition | None = ONLY_PARTITION
    metadata: dict[str, Any] = Field(description="In place of all that each has, or merged into it.")
    merge: bool | None = Field(
        False,
        description="Merge as a JSON Merge Patch (RFC 7396): what is not named stays, objects are merged, "
        "null removes.",
    )
    idempotency_key: Key | None = None


class UpdateDocumentsResponse(BaseModel):
    """The changes are on the disk."""

    updated: int
    position: Position


class DeleteDocumentsRequest(Request):
    """Which documents to delete: by ids or filter, a partition or both."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ids": ["draft-1", "draft-2"]}, {"filter": {"lt": {"year": 1900}}}]}
    )

    ids: (
        Annotated[list[KnownId], Field(min_length=1, fail_fast=True), counted("write_documents", "items")]
        | None
    ) = Field(None, description="Their number is limited by the setting `max_write_documents`.")
    filter: FilterTree | None = Field(None, description="All documents that it allows.")
    partition: Partition | None = ONLY_PARTITION
    idempotency_key: Key | None = None


class DeleteDocumentsResponse(BaseModel):
    """What was there and is no longer."""

    deleted: int
    position: Position


class CountDocumentsRequest(Request):
    """Which documents to count."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"filter": {"lt": {"year": 1900}}}]})

    filter: FilterTree | None = Field(None, description="Those that it allows; by default all.")
    partition: Partition | None = Field(None, description="Those of this one alone.")
    min_position: MinPosition | None = None


class CountDocumentsResponse(BaseModel):
    """How many there are."""

    count: int


class GetDocumentsRequest(Request):
    """Which documents to give."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["tea", "rail"]}]})

    ids: Annotated[list[KnownId], Field(min_length=1, fail_fast=True), counted("page_documents", "items")] = (
        Field(description="Their number is limited by the setting `max_page_documents`.")
    )
    partition: Partition | None = Field(None, description="Only those of this one are there.")
    min_position: MinPosition | None = None


class StoredText(BaseModel):
    """What is stored of one text: what scores are computed from."""

    dense: list[float] | PackedArray
    sparse: SparseEmbedding
    colbert: list[list[float]] | PackedArray | None = Field(
        None, description="Absent where the collection's `token_codec` is `none`."
    )


class StoredWindow(StoredText):
    """What is stored of a window."""

    start: int
    end: int


class StoredDocumentRepresentations(BaseModel):
    """What is stored of a document: its three representations, or where it is divided into windows those of
    each. `PUT` takes it as it is, but pools token vectors again: into a collection with token pooling put the
    text.
    """

    fingerprint: str
    position: int | str = Field(description="The position that it was written at; 0 where a build wrote it.")
    dense: list[float] | PackedArray | None = None
    sparse: SparseEmbedding | None = None
    colbert: list[list[float]] | PackedArray | None = None
    windows: list[StoredWindow] | None = None


class DocumentResponse(BaseModel):
    """A stored document."""

    id: str
    collection: str | None = Field(None, description="Only through an alias of several collections.")
    title: str | None
    text: str
    metadata: dict[str, Any]
    partition: str | None = Field(None, description="Only where `metadata.partition` is a text.")
    representations: StoredDocumentRepresentations | None = Field(None, description="Only where asked for.")


class GetDocumentsResponse(BaseModel):
    """Stored documents in the order of their ids in the request; of several collections those of each."""

    documents: list[DocumentResponse]
    missing: list[str] = Field(description="Ids that are not there.")


class DocumentPage(BaseModel):
    """Some documents, in order of their ids' bytes, or of a field."""

    documents: list[DocumentResponse]
    next: str | None = Field(description="`after` of the next page; null where there is none.")


Encoding = Literal["float", "base64"]
