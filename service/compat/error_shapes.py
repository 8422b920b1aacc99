"""The shapes in which clients of other services expect errors, by the beginning of a path.

What stands below no such path, and OpenAI's routes, whose shape is ours, have the one shape of
`service/errors.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

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


SHAPES: dict[str, Shape] = {
    "/tei": _tei,
    "/v1/rerank": _cohere,
    "/v2/": _cohere,
    "/jina/": _jina,
    "/api/": _ollama,
}


def shape_of(path: str) -> Shape | None:
    """The shape of errors below a path; None for the one shape."""
    return next((shape for beginning, shape in SHAPES.items() if path.startswith(beginning)), None)
