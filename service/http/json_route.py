"""Routes whose bodies are JSON: strict about their type, fast and safe in parsing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from index.documents.json_values import loads
from service.errors import Failure
from service.http.json_body import LARGE_BYTES, parse, scan
from service.load.pools import Pool
from service.runtime import Runtime

REQUEST_ID = {
    "description": "The request's id in the server's log: the one that the request brought, or a new one.",
    "schema": {"type": "string"},
}


class JsonRequest(Request):
    """A request whose body is strict JSON: no NaN, no bad UTF-8, no lone surrogates, bounded depth."""

    async def scan(self) -> None:
        """Counts what a large body holds. Raises RequestTooLargeError."""
        body = await self.body()
        if len(body) > LARGE_BYTES:
            self._structure = await self._pool.run(scan, body)

    async def json(self) -> Any:
        """The value of a body that was scanned. Raises json.JSONDecodeError."""
        body = await self.body()
        if len(body) > LARGE_BYTES:
            return await self._pool.run(parse, body, self._structure)
        return loads(body)

    @property
    def _pool(self) -> Pool:
        runtime: Runtime = self.app.state.runtime
        return runtime.pools.bodies


class JsonRoute(APIRoute):
    """Answers 400 to a body of another type.

    A browser may send `text/plain` to any server from any page without asking; it asks before JSON.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """options: those of `APIRoute`. Every documented answer gets the header that every answer bears."""
        super().__init__(path, endpoint, **options)
        answers = {self.status_code or 200: {}, **self.responses}
        self.responses = {
            status: {**answer, "headers": {"X-Request-Id": REQUEST_ID, **answer.get("headers", {})}}
            for status, answer in answers.items()
        }

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of this route."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def handle_json(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive)
            if takes_body and await request.body() and not _is_json(request.headers.get("content-type")):
                given = request.headers.get("content-type", "none")[:100]
                return Failure(
                    400,
                    f"the body's type is {given}; send JSON with the header Content-Type: application/json",
                    "unsupported_content_type",
                ).response()
            await request.scan()
            return await handle(request)

        return handle_json


def _is_json(content_type: str | None) -> bool:
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
