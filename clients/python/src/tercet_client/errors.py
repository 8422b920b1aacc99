"""What can go wrong between a client and its server."""

from __future__ import annotations

import json
from typing import Any

import httpx


class TercetError(Exception):
    """Anything of this package."""


class ConnectionFailedError(TercetError):
    """The server cannot be reached, or did not answer in time."""


class ApiError(TercetError):
    """The server refused.

    status: of HTTP; type: the kind of error that goes with the status; code: the exact reason, for programs;
    param: the field that is wrong, if any.
    """

    def __init__(
        self, status: int, message: str, code: str = "", param: str | None = None, type: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.type = type


class NotFoundError(ApiError):
    """404: there is no such collection, document, alias, backup or job."""


class ConflictError(ApiError):
    """409: it conflicts with what exists."""


class OverloadedError(ApiError):
    """429 or 503, still after all retries."""


KINDS: dict[int, type[ApiError]] = {
    404: NotFoundError,
    409: ConflictError,
    429: OverloadedError,
    503: OverloadedError,
}


def error_of(answer: httpx.Response) -> ApiError:
    """The exception for an answer that is no success."""
    kind = KINDS.get(answer.status_code, ApiError)
    try:
        error = answer.json()["error"]
        given = str(error["message"]), str(error["code"]), error["param"], str(error["type"])
        return kind(answer.status_code, *given)
    except (ValueError, KeyError, TypeError):
        return kind(answer.status_code, f"{answer.url} answered {answer.status_code}: {answer.text[:200]!r}")


def progress_of(line: str) -> Any:
    """A line of the answer to an import. Raises ApiError where the line says that it ended early."""
    found = json.loads(line)
    error = found.get("error")
    if error is not None:
        raise ApiError(200, str(error["message"]), str(error["code"]), error["param"])
    return found
