"""The shapes in which clients of other services expect errors, by the beginning of a path.

What stands below no such path, and OpenAI's routes, whose shape is ours, have the one shape of
`service/errors.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from tercet.service.exceptions import NO_KEY

Shape = Callable[[int, str, str], tuple[int, dict[str, Any]]]
"""(status, message, code) → the status to answer and the body's value."""


class TeiError(BaseModel):
    """An error of Text Embeddings Inference."""

    error: str
    error_type: str


class CohereError(BaseModel):
    """An error of Cohere."""

    message: str
    code: str


class JinaError(BaseModel):
    """An error of Jina."""

    detail: str
    code: str


class OllamaError(BaseModel):
    """An error of Ollama."""

    error: str


class DifyError(BaseModel):
    """An error of Dify's External Knowledge API."""

    error_code: int = Field(
        description="1001: there is no key; 1002: it is not known, or may not do this; 2001: there is no "
        "such collection; otherwise the status."
    )
    error_msg: str


# Text Embeddings Inference has no 400, tells texts that are too long by 413 and a failed encoder by 424.
TEI_STATUS = {400: 422, 507: 424}
TEI_STATUS_OF_CODE = {"text_too_long": 413, "encoder_failed": 424, "out_of_memory": 424}
TEI_TYPES = {413: "Validation", 422: "Validation", 424: "Backend", 429: "Overloaded", 503: "Unhealthy"}


def _tei(status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
    status = TEI_STATUS_OF_CODE.get(code, TEI_STATUS.get(status, status))
    kind = TEI_TYPES.get(status, "Validation" if status < 500 else "Backend")
    return status, {"error": message, "error_type": kind}


def _cohere(status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
    return status, {"message": message, "code": code}


def _jina(status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
    return status, {"detail": message, "code": code}


def _ollama(status: int, message: str, _code: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": message}


# Dify tells a key that does not fit by 403 alone.
DIFY_STATUS = {401: 403}


def _dify(status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
    if status in (401, 403):
        number = 1001 if message == NO_KEY else 1002
    else:
        number = 2001 if code == "collection_not_found" else status
    return DIFY_STATUS.get(status, status), {"error_code": number, "error_msg": message}


SHAPES: dict[str, Shape] = {
    "/tei": _tei,
    "/v1/rerank": _cohere,
    "/v2/": _cohere,
    "/jina/": _jina,
    "/api/": _ollama,
    "/dify/": _dify,
}


def shape_of(path: str) -> Shape | None:
    """The shape of errors below a path; None for the one shape."""
    return next((shape for beginning, shape in SHAPES.items() if path.startswith(beginning)), None)
