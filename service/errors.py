"""From exceptions to HTTP: what a failure is answered with, in the one shape.

{"error": {"type": "…", "message": "…", "param": null, "code": "…"}}
"""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from tercet.index.errors import (
    CollectionFencedError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidDocumentError,
    StorageError,
    StorageFullError,
    UnforcedPublicationError,
    WriteUnknownError,
)
from tercet.models.errors import (
    AdapterUnusableError,
    EncoderFailedError,
    EncoderUnavailableError,
    RerankerUnusableError,
)
from tercet.service.error_table import PARAMS, TABLE, TYPES
from tercet.service.exceptions import (
    OverloadedError,
    RefusalReason,
    RequestTooLargeError,
    UnauthenticatedError,
)
from tercet.service.http.asgi import Receive, Scope, Send
from tercet.service.http.error_shapes import shape_of
from tercet.service.http.paths import shown
from tercet.service.http.refusals import DELETED_HEADER
from tercet.service.invalid_values import TOKEN_IDS, TOO_MANY, is_another_kind, message_of

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class Failure:
    """What an error answer says."""

    status: int
    message: str
    code: str
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        """The failure in the one shape of all errors, as JSON."""
        error = {
            "type": TYPES.get(self.status, "malformed_request"),
            "message": self.message,
            "param": self.param,
            "code": self.code,
        }
        return orjson.dumps({"error": error})

    def rendered(self, path: str) -> tuple[int, bytes]:
        """Status and body in the one shape, or in that of the service whose clients call the path."""
        shape = shape_of(path)
        if shape is None:
            return self.status, self.body
        status, content = shape(self.status, self.message, self.code)
        return status, orjson.dumps(content)

    def response(self) -> Response:
        """The answer, in the shape of the path that it is given to."""
        return FailureResponse(self)


class FailureResponse(Response):
    """An error in the shape of the path that it is given to."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.body, failure.status, dict(failure.headers), "application/json")
        self._failure = failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        self.status_code, self.body = self._failure.rendered(scope["path"])
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


# Their messages are for the log: they tell paths of this machine, or addresses of others.
LOGGED = (
    DamagedIndexError,
    StorageError,
    UnforcedPublicationError,
    AdapterUnusableError,
    RerankerUnusableError,
    EncoderUnavailableError,
    OSError,
    MemoryError,
)
INTERNAL = Failure(500, "an internal error; the server's log has the details", "internal")
# Of exceptions whose messages tell paths of this machine, or addresses of others.
HIDDEN: dict[type, Failure] = {
    DamagedIndexError: Failure(
        503, "the collection is damaged; the server's log names the file", "damaged_index"
    ),
    AdapterUnusableError: Failure(
        503,
        "the adapter is damaged, or belongs to another base; the server's log names the file",
        "adapter_unusable",
        "adapter",
    ),
    RerankerUnusableError: Failure(
        503,
        "the re-ranker is no cross-encoder, or damaged; the server's log names the file",
        "reranker_unusable",
        "reranker",
    ),
    EncoderFailedError: Failure(
        503,
        "the encoder failed on this request; if it fails again, the logs of the server and of its encoder "
        "workers say why",
        "encoder_failed",
    ),
    EncoderUnavailableError: Failure(
        503, "no encoder worker answers; try again in a moment", "encoder_unavailable"
    ),
    UnforcedPublicationError: Failure(
        503,
        "the server's storage failed: a snapshot was or may be published, but is not known to outlast a loss "
        "of power; the server's log has the details",
        "storage_unavailable",
    ),
}


def failure_of(error: Exception) -> Failure:
    """What to answer for an exception; `INTERNAL` for one that is not in the table."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    for kind in type(error).__mro__:
        if kind in HIDDEN:
            return HIDDEN[kind]
    if isinstance(error, StorageError):  # its message may tell addresses, too
        return _storage_failure(error)
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return Failure(
            503,
            "the server has too little memory for this request now; ask for less at a time, or try again "
            "later",
            "out_of_memory",
        )
    if isinstance(error, OSError):  # such as a full disk; its message tells paths
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _storage_failure(StorageFullError())
        reason = error.strerror or "the server's log has the details"
        return Failure(503, f"the server's storage failed: {reason}", "storage_unavailable")
    for kind in type(error).__mro__:
        if kind in TABLE:
            status, code = TABLE[kind]
            return Failure(
                getattr(error, "status", status),
                _printable(str(error)),
                getattr(error, "code", code),
                _short_param(_param(error, kind)),
                _headers(error),
            )
    return INTERNAL


def _param(error: Exception, kind: type[Exception]) -> str | None:
    """The field that an error is about, where that is known."""
    if isinstance(error, InvalidDocumentError):
        return error.part
    return getattr(error, "param", PARAMS.get(kind))


def _storage_failure(error: StorageError) -> Failure:
    status, code = TABLE[type(error)]
    message = {
        StorageFullError: "the server's disk is full; nothing was written: free space there and try again",
        WriteUnknownError: "the server's storage failed during the write; whether it was made is unknown: "
        "repeat it with the same idempotency_key",
    }.get(
        type(error), "the server's storage failed and nothing was written; the server's log has the details"
    )
    return Failure(status, message, code)


def install_error_handlers(
    app: FastAPI,
    routes: Sequence[BaseRoute],
    refused: Callable[[RefusalReason], None],
    others: Callable[[Request, str], Awaitable[str]],
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Makes every error of the application's routes take the one shape; gives the answer to one of `KNOWN`.

    routes: all of them; refused: counts an answer 429; others: which collections there are instead of one
    that is not there, in words.
    """

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, OverloadedError):
            refused(error.reason)
        if isinstance(error, LOGGED):
            log.error("%s", error)
        failure = failure_of(error)
        if isinstance(error, CollectionNotFoundError) and error.folder is not None:
            instead = await others(request, error.folder.name)
            failure = replace(failure, message=failure.message + instead)
        return _answered(error, failure)

    async def from_framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class alone
        return _answered(error, _plain(error, request.method, request.url.path, _methods_of(routes, request)))

    for kind in TABLE:
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(RequestValidationError, answer)
    app.add_exception_handler(HTTPException, from_framework)
    return answer


def _answered(error: Exception, failure: Failure) -> Response:
    """The answer to an error, which loses its frames with it, as do those that it followed.

    A frame that has the error as a variable and the error know each other: its body, and what was read of it,
    would stay until the collector of cycles looks, which then holds all threads for as long as it frees it.
    """
    followed: BaseException | None = error
    while followed is not None:
        followed.__traceback__ = None
        followed = followed.__context__
    return failure.response()


def _invalid(error: RequestValidationError) -> Failure:
    """A body, path or query that does not have the documented shape."""
    details: Sequence[dict[str, Any]] = error.errors()
    # Where alternatives are allowed, the one that was meant: it got furthest, and of those of equal depth it
    # is the one that is not of another JSON type altogether.
    # A field by another name tells more than that it is missing by its own.
    detail = max(
        details,
        key=lambda detail: (
            len(_path(detail, error.body)),
            not is_another_kind(detail),
            detail["type"] == "extra_forbidden",
        ),
    )
    if detail["type"] == "json_invalid":
        reason = detail.get("ctx", {}).get("error", "it cannot be parsed")
        return Failure(400, f"the body is not valid JSON: {reason}", "invalid_json")
    path = _path(detail, error.body)
    if not path and detail["type"] == "missing":
        return Failure(400, "the body is empty; send a JSON object", "empty_body")
    param = _short_param(".".join(map(str, path)) or None)
    if detail["type"] == TOO_MANY:
        return failure_of(RequestTooLargeError(f"{param} {detail['msg']}", param))
    alike = [other for other in details if _path(other, error.body) == path]
    message = message_of(param or "the body", alike)
    if not path and detail["type"] in ("model_attributes_type", "model_type"):
        message = "body: send a JSON object"
    code = {"missing": "missing_field", "extra_forbidden": "unknown_field", TOKEN_IDS: TOKEN_IDS}.get(
        detail["type"], "invalid_value"
    )
    return Failure(422, _printable(message), code, param)


def _plain(error: HTTPException, method: str, path: str, methods: Sequence[str]) -> Failure:
    """The answer to an unknown path, or to a method that is not among those of the path."""
    headers = tuple((error.headers or {}).items())
    if error.status_code == 404:
        remedy = "leave the slash at its end out" if path.endswith("/") else "/docs lists all routes"
        return Failure(
            404, _printable(f"there is no path {shown(path)!r:.200}; {remedy}"), "unknown_path", None, headers
        )
    if error.status_code == 405:
        allowed = ", ".join(methods)
        message = _printable(f"{path!r:.200} does not take {method}; it takes {allowed}")
        return Failure(405, message, "method_not_allowed", None, (("Allow", allowed),))
    return Failure(error.status_code, _printable(str(error.detail)), "malformed", None, headers)


def _methods_of(routes: Sequence[BaseRoute], request: Request) -> list[str]:
    """The methods of all routes that have the request's path."""
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in matching for method in getattr(route, "methods", None) or ()}
    if not methods or "GET" in methods:  # none: the pages of the description, which are no routes of ours
        methods |= {"GET", "HEAD"}
    return sorted(methods)


def _path(detail: Mapping[str, Any], body: Any) -> list[str | int]:
    """Where in the body an error is: the parts of its location that are keys, not Pydantic's own marks."""
    source, *rest = detail["loc"] or ("body",)
    if source != "body":
        return list(rest)
    path: list[str | int] = []
    here = body
    for part in rest:
        in_object = isinstance(here, dict) and part in here
        if in_object or (isinstance(here, list) and isinstance(part, int) and part < len(here)):
            here = here[part]
            path.append(part)
        elif isinstance(here, dict) and detail["type"] == "missing" and part == rest[-1]:
            path.append(part)
    return path


def _short_param(param: str | None) -> str | None:
    """The name of a field, not endlessly long: a client chooses the names of unknown ones."""
    return None if param is None else _printable(param)[:200]


def _headers(error: Exception) -> tuple[tuple[str, str], ...]:
    if isinstance(error, OverloadedError):
        return (("Retry-After", str(max(1, math.ceil(error.retry_after_seconds)))),)
    if isinstance(error, CollectionFencedError):
        return (("Retry-After", "1"),)
    if isinstance(error, CollectionNotFoundError) and error.was_deleted:
        return ((DELETED_HEADER, "true"),)
    if isinstance(error, UnauthenticatedError):
        return (("WWW-Authenticate", "Bearer"),)
    return ()


def _printable(message: str) -> str:
    """The message without lone surrogates, which JSON cannot carry, and not endlessly long."""
    return message.encode("utf-8", "replace").decode("utf-8")[:2000]
