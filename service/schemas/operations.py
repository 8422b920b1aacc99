"""Shapes of `/health`, `/ready` and `/info`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


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
