"""Bounds the requests in work."""

from __future__ import annotations

from collections.abc import Callable

from service.errors import failure_of
from service.exceptions import OverloadedError, RefusalReason
from service.http.asgi import Application, Message, Receive, Scope, Send, has_body, is_arriving

# Small answers that need no encoder; a search node asks its workers for the last two before all else.
ALWAYS_SERVED = {"/health", "/ready", "/tei/health", "/metrics", "/info", "/tokenizer"}


class RequestLimitMiddleware:
    """Answers 429 to requests over the limit.

    A request is in work while the server has something to do for it: not while its body arrives, nor
    while its client takes the answer, so that slow clients leave the places to others.
    """

    def __init__(self, app: Application, max_requests: int, refused: Callable[[RefusalReason], None]) -> None:
        """refused: counts an answer 429."""
        self._app = app
        self._max_requests = max_requests
        self._refused = refused
        self._in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS_SERVED:
            await self._app(scope, receive, send)
            return
        if self._in_work >= self._max_requests:
            error = self._overloaded()
            self._refused(error.reason)
            await failure_of(error).response()(scope, receive, send)
            return
        arriving = has_body(scope)

        async def receive_outside() -> Message:
            nonlocal arriving
            if not arriving:
                return await receive()
            self._in_work -= 1
            try:
                message = await receive()
            finally:
                self._in_work += 1
            arriving = is_arriving(message)
            if self._in_work > self._max_requests:  # others came while this one's body arrived
                raise self._overloaded()
            return message

        async def send_outside(message: Message) -> None:
            self._in_work -= 1
            try:
                await send(message)
            finally:
                self._in_work += 1

        self._in_work += 1
        try:
            await self._app(scope, receive_outside, send_outside)
        finally:
            self._in_work -= 1

    def _overloaded(self) -> OverloadedError:
        return OverloadedError(
            f"{self._max_requests} requests are in work, the limit (setting max_concurrent_requests): "
            "try again in a second",
            1,
            "requests",
        )
