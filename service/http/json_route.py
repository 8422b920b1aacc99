"""Routes whose bodies are JSON: strict about their type, fast and safe in parsing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from index.documents.json_values import loads
from service.errors import Failure
from service.http.asgi import READING, Receive, Scope
from service.http.body_check import BodyCheck
from service.http.hosts import is_foreign
from service.http.json_body import LARGE_BYTES, parse, scan
from service.http.query_parameters import QueryParameters
from service.load.pools import Pool
from service.runtime import Runtime

BORNE = {
    "X-Request-Id": {
        "description": "The request's id in the server's log: the one that it brought, or a new one.",
        "schema": {"type": "string"},
    },
    "Tercet-Version": {"description": "The server's version.", "schema": {"type": "string"}},
}


NO_BODY = ""  # what no route takes: its framework refuses it, after the request's key


class JsonRequest(Request):
    """A request whose body is strict JSON: no NaN, no bad UTF-8, no lone surrogates, bounded depth.

    refusal: what is wrong with the body once it was read, or that there was no memory to read it.
    """

    def __init__(self, scope: Scope, receive: Receive, check: BodyCheck | None) -> None:
        """check: of the route's body; None where it has none."""
        super().__init__(scope, receive)
        self._check = check
        self.refusal: RequestValidationError | MemoryError | None = None

    async def scan(self) -> None:
        """Counts what a large body holds. Raises RequestTooLargeError."""
        body = await self.body()
        if len(body) > LARGE_BYTES:
            self._structure = await self._pool.run(scan, body)

    async def json(self) -> Any:
        """The body as its route's type, or NO_BODY where it is none. Raises json.JSONDecodeError."""
        body = await self.body()
        try:
            if len(body) > LARGE_BYTES:
                return await self._pool.run(lambda: self._checked(parse(body, self._structure)))
            return self._checked(loads(body))
        except MemoryError as error:  # which the framework would take for a mistake in the body
            self.refusal = error
            return NO_BODY

    def _checked(self, value: Any) -> Any:
        if self._check is None:
            return value
        runtime: Runtime = self.app.state.runtime
        try:
            return self._check.checked(value, runtime.limits)
        except RequestValidationError as error:
            self.refusal = error
            return NO_BODY

    @property
    def _pool(self) -> Pool:
        runtime: Runtime = self.app.state.runtime
        return runtime.pools.bodies


class JsonRoute(APIRoute):
    """Answers 400 to a body of another type, and to what a page of another server changes without this type.

    A browser may send `text/plain`, or nothing, to any server from any page without asking; it asks before
    JSON.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """options: those of `APIRoute`. Every documented answer gets the headers that every answer bears."""
        super().__init__(path, endpoint, **options)
        answers = {self.status_code or 200: {}, **self.responses}
        self.responses = {
            status: {**answer, "headers": {**BORNE, **answer.get("headers", {})}}
            for status, answer in answers.items()
        }

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of this route."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None
        check = None if self.body_field is None else BodyCheck(self.body_field.field_info.annotation)
        parameters = QueryParameters(self)
        changes = not READING.issuperset(self.methods or ())

        async def handle_json(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive, check)
            parameters.check(request)
            sent = await request.body() if takes_body or changes else b""
            if not is_json(request.headers.get("content-type")) and (
                (changes and _from_a_foreign_page(request)) or sent
            ):
                given = request.headers.get("content-type", "none")[:100]
                return Failure(
                    400,
                    f"the body's type is {given}; send JSON with the header Content-Type: application/json",
                    "unsupported_content_type",
                ).response()
            await request.scan()
            if sent and not takes_body:
                _require_no_fields(sent)
            try:
                return await handle(request)
            except RequestValidationError:
                if request.refusal is not None:
                    raise request.refusal from None
                raise

        return handle_json


def _require_no_fields(body: bytes) -> None:
    """For a route that takes none: an empty object is as good as no body. Raises RequestValidationError."""
    try:
        value = loads(body)
    except orjson.JSONDecodeError as error:
        wrong = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([wrong], body=error.doc) from error
    if not isinstance(value, dict):
        raise RequestValidationError([{"type": "model_type", "loc": ("body",), "input": value}], body=value)
    for name in value:
        wrong = {"type": "extra_forbidden", "loc": ("body", name), "input": value[name]}
        raise RequestValidationError([wrong], body=value)


def _from_a_foreign_page(request: Request) -> bool:
    """Browsers say which page sends what changes something; others send no Origin."""
    origin = request.headers.get("origin")
    return origin is not None and is_foreign(origin, request.headers.get("host", ""))


def is_json(content_type: str | None) -> bool:
    """Whether a body of this type is JSON."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
