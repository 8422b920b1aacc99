"""Routes whose bodies are JSON: strict about their type, fast and safe in parsing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from tercet.index.documents.json_values import loads
from tercet.service.errors import Failure
from tercet.service.http.asgi import READING, Receive, Scope
from tercet.service.http.hosts import is_foreign
from tercet.service.http.json_body import LARGE_BYTES, Structure, parse, scan
from tercet.service.http.query_parameters import QueryParameters
from tercet.service.http.why_not_json import why_not_json
from tercet.service.load.pools import Pool
from tercet.service.requests.body_check import BodyCheck
from tercet.service.requests.path_route import PathRoute
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import NoFields

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

    def __init__(self, scope: Scope, receive: Receive, check: BodyCheck) -> None:
        """check: of the route's body."""
        super().__init__(scope, receive)
        self._check = check
        self.refusal: RequestValidationError | MemoryError | None = None

    async def scan(self) -> None:
        """Counts what a large body holds. Raises RequestTooLargeError."""
        body = await self.body()
        if len(body) > LARGE_BYTES:
            self._structure = await self._pool.run(scan, body)

    async def json(self) -> Any:
        """The body as its route's type, or NO_BODY where it is none.

        Raises json.JSONDecodeError, which says where it is no JSON and why.
        """
        body = await self.body()
        try:
            if len(body) > LARGE_BYTES:
                return await self._pool.run(lambda: self._checked(_parsed(body, self._structure)))
            return self._checked(_parsed(body))
        except MemoryError as error:  # which the framework would take for a mistake in the body
            self.refusal = error
            return NO_BODY

    async def require_no_fields(self) -> None:
        """Checks that there is no body, or an empty object. Raises RequestValidationError."""
        if not await self.body():
            return
        try:
            await self.json()
        except orjson.JSONDecodeError as error:
            detail = {"type": "json_invalid", "loc": ("body",), "msg": error.msg, "ctx": {"error": error.msg}}
            raise RequestValidationError([detail]) from error
        if self.refusal is not None:
            raise self.refusal

    def _checked(self, value: Any) -> Any:
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


def _parsed(body: bytes, structure: Structure | None = None) -> Any:
    try:
        return loads(body) if structure is None else parse(body, structure)
    except orjson.JSONDecodeError as error:
        raise orjson.JSONDecodeError(why_not_json(body, error), "", 0) from error


class JsonRoute(PathRoute):
    """Answers 400 to a body of another type, and to what a page of another server changes without this type.

    A browser may send `text/plain`, or nothing, to any server from any page without asking; it asks before
    JSON.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """options: those of `PathRoute`. Every documented answer gets the headers that every answer bears."""
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
        check = BodyCheck(
            NoFields | None if self.body_field is None else self.body_field.field_info.annotation
        )
        parameters = QueryParameters(self)
        changes = not READING.issuperset(self.methods or ())

        async def handle_json(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive, check)
            parameters.check(request)
            if not is_json(request.headers.get("content-type")) and (
                changes and (from_a_foreign_page(request) or await request.body())
            ):
                given = request.headers.get("content-type", "none")[:100]
                said = (
                    f"the body's type is {given}; send JSON with the header Content-Type: application/json"
                    if await request.body()
                    else f"the type is {given}; from a page of another server send Content-Type: "
                    "application/json, also without a body"
                )
                return Failure(400, said, "unsupported_content_type").response()
            await request.scan()
            if changes and not takes_body:
                await request.require_no_fields()
            try:
                return await handle(request)
            except RequestValidationError:
                if request.refusal is not None:
                    raise request.refusal from None
                raise

        return handle_json


def from_a_foreign_page(request: Request) -> bool:
    """Browsers say which page sends what changes something; others send no Origin."""
    origin = request.headers.get("origin")
    return origin is not None and is_foreign(origin, request.headers.get("host", ""))


def is_json(content_type: str | None) -> bool:
    """Whether a body of this type is JSON."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
