"""Stops the work for clients that leave."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect

from service.http.asgi import Application, Message, Receive, Scope, Send, is_arriving


class DepartureMiddleware:
    """Cancels the work on a request whose client leaves after its body has arrived."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        work = asyncio.current_task()
        assert work is not None  # noqa: S101 - a coroutine runs in a task
        left: asyncio.Task[None] | None = None

        def stop(left: asyncio.Task[None]) -> None:
            if not left.cancelled():
                work.cancel()

        async def receive_or_leave() -> Message:
            nonlocal left
            if left is not None:
                await asyncio.shield(left)
                return {"type": "http.disconnect"}
            message = await receive()
            if message["type"] == "http.request" and not is_arriving(message):
                left = asyncio.ensure_future(_until_left(receive))
                left.add_done_callback(stop)
            return message

        try:
            await self._app(scope, receive_or_leave, send)
        except ClientDisconnect:  # before its body was complete
            return
        except asyncio.CancelledError:
            if left is None or not left.done():  # the server ends
                raise
            work.uncancel()
        finally:
            if left is not None:
                left.cancel()


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
