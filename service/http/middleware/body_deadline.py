"""Bounds the time in which a request's body arrives."""

from __future__ import annotations

import asyncio

from service.exceptions import BodyTimeoutError
from service.http.asgi import Application, Message, Receive, Scope, Send, has_body, is_arriving


class BodyDeadlineMiddleware:
    """Raises BodyTimeoutError in who reads a body that is not whole in time."""

    def __init__(self, app: Application, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        arriving = True

        async def receive_in_time() -> Message:
            nonlocal arriving
            if not arriving:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise BodyTimeoutError(
                    f"the body did not arrive within {self._seconds:g} s (setting body_timeout_seconds)"
                ) from None
            arriving = is_arriving(message)
            return message

        await self._app(scope, receive_in_time, send)
