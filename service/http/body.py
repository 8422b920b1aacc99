"""Reads each request's body within limits first, and stops the work for clients that leave."""

from __future__ import annotations

import asyncio

from service.errors import Failure, failure_of
from service.exceptions import OverloadedError, RequestTooLargeError
from service.http.asgi import Application, Message, Receive, Scope, Send, header

# Small answers that need no encoder; a search node asks its workers for the last two before all else.
ALWAYS_SERVED = {"/health", "/ready", "/metrics", "/info", "/tokenizer"}


class BodyMiddleware:
    """Bounds bodies in bytes and time, and requests in number; cancels the work of departed clients."""

    def __init__(
        self, app: Application, *, max_bytes: int, timeout_seconds: float, max_concurrent: int
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_seconds = timeout_seconds
        self._max_concurrent = max_concurrent
        self._in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in ALWAYS_SERVED:
            await self._answer(scope, receive, send)
            return
        if self._in_work >= self._max_concurrent:
            error = OverloadedError(
                f"{self._in_work} requests are in work, the limit (setting max_concurrent_requests): "
                "try again in a second",
                1,
            )
            await failure_of(error).response()(scope, receive, send)
            return
        self._in_work += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._in_work -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._read(scope, receive)
        if isinstance(body, Failure):
            await body.response()(scope, receive, send)
        elif body is not None:
            await self._serve(scope, body, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Failure | None:
        """The whole body; a failure to answer with; or None where the client left."""
        declared = header(scope, b"content-length") or "0"
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._max_bytes):
            return self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size > self._max_bytes:
                        return self._too_large()
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            message_text = f"the body did not arrive within {self._timeout_seconds:g} s"
            return Failure(400, message_text, "incomplete_body", headers=(("Connection", "close"),))

    async def _serve(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Runs the application on the body that was read, until it is done or its client has left."""
        left = asyncio.ensure_future(_until_left(receive))
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            if unread:
                return unread.pop()
            await asyncio.shield(left)
            return {"type": "http.disconnect"}

        work = asyncio.ensure_future(self._app(scope, replay, send))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            left.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    def _too_large(self) -> Failure:
        return failure_of(
            RequestTooLargeError(
                f"the body is larger than {self._max_bytes} bytes (setting max_body_bytes): split the request"
            )
        )


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
