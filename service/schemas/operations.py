"""Shapes of `/health`, `/ready` and `/info`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from tercet.models.representations import LexicalKind


class StatusResponse(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class ReadyResponse(BaseModel):
    """What is ready; an encoder worker, which has no documents, says `status` alone."""

    status: Literal["ready"]
    reads: Literal["ready"] = Field(default="ready", description="Searches and reading documents.")
    writes: Literal["ready", "storage_full", "unavailable", "elsewhere"] = Field(
        default="ready",
        description="Writing: `storage_full` where the disk is full and writes are 507, `unavailable` where "
        "the data root cannot be written to at all, `elsewhere` where another server writes.",
    )


class EncoderResponse(BaseModel):
    """The encoder: its identity, its sizes, of which that of a side it lacks is 0, its limit in tokens."""

    name: str
    fingerprint: str
    engine: str
    precision: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    max_length: int
    pooling: str
    lexical: LexicalKind = Field(description="What it recommends to collections.")
    adapter: None = Field(description="Always null: this is the encoder without an adapter.")


class AdapterResponse(BaseModel):
    """An adapter or router. `fingerprint`: of the encoder with it, or null where it cannot be used; see
    `problem`. `router`: a router's settings, such as the adapters that it chooses among.
    """

    name: str
    kind: str | None
    fingerprint: str | None
    description: str
    language: str | None
    domain: str | None
    problem: str | None
    router: dict[str, Any] | None = Field(description="Null for an adapter.")


class LimitsResponse(BaseModel):
    """What one request may ask for."""

    body_bytes: int
    texts: int
    characters: int
    documents: int
    top_k: int
    queries: int
    query_hits: int
    candidates: int
    request_tokens: int
    write_documents: int
    write_tokens: int
    page_documents: int


class FileKindResponse(BaseModel):
    """A kind of file."""

    name: str = Field(description="What people call it.")
    endings: list[str] = Field(description="Of files' names, the usual one first.")
    text: bool = Field(description="Whether a file is one document, not many records.")
    lines: bool = Field(description="Whether the beginning of a file can be read without the rest.")
    packed: bool = Field(
        description="Whether a file may be packed, which one of `packings` after its ending says."
    )
    headings: bool = Field(description="Whether documents have headings to be cut at.")


class FilesResponse(BaseModel):
    """Files that imports and jobs read."""

    kinds: list[FileKindResponse]
    packings: list[str] = Field(description="Endings of names of packed files.")


class InfoResponse(BaseModel):
    """What this server is."""

    name: Literal["tercet"]
    version: str
    encoder: EncoderResponse
    adapters: list[AdapterResponse]
    encoding_settings: dict[str, Any]
    limits: LimitsResponse
    files: FilesResponse
