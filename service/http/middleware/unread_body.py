"""Ends the connections of requests that were answered before their body had arrived."""

from __future__ import annotations

import asyncio

from service.http.asgi import CLOSE, Application, Message, Receive, Scope, Send, has_body, header, is_arriving

LINGER_SECONDS = 5.0
LINGER_BYTES = 64 << 20


class UnreadBodyMiddleware:
    """Says `Connection: close` in such an answer, and holds its end until the rest of the body has come.

    Closing at once would reset the connection, and a client that still sends might never see the answer.
    What comes is thrown away, for a bounded time and size: then the connection ends all the same.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        arriving = True
        closing = False

        async def receive_noting() -> Message:
            nonlocal arriving
            message = await receive()
            arriving = is_arriving(message)
            return message

        async def send_then_linger(message: Message) -> None:
            nonlocal closing
            if message["type"] == "http.response.start" and arriving:
                # Whoever waits for 100 Continue was not asked for the body, and must not be now.
                closing = header(scope, b"expect") is not None or not await _discard(receive, 0)
                if closing:
                    message["headers"] = [*message.get("headers", ()), CLOSE]
            elif closing and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _discard(receive, LINGER_SECONDS)
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, receive_noting, send_then_linger)


async def _discard(receive: Receive, seconds: float) -> bool:
    """Whether the rest of the body has come within this time; 0: whether it is here."""
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while size <= LINGER_BYTES:
                message = await receive()
                if not is_arriving(message):
                    return True
                size += len(message.get("body", b""))
    except TimeoutError:
        pass
    return False
