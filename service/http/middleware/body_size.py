"""Gives the framework's refusal of large bodies the one error shape.

FastAPI bounds bodies route by route (`max_body_size`), but where the head announces too many bytes it
replaces every answer by plain text.
"""

from __future__ import annotations

from starlette.middleware.body_limit import MAX_BODY_SIZE_SCOPE_KEY

from service.errors import body_too_large
from service.http.asgi import Application, Message, Receive, Scope, Send


class BodySizeMiddleware:
    """Answers 413 in the one shape."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        replaced = False

        async def send_in_shape(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start" and _is_plain_413(message):
                replaced = True
                await body_too_large(scope[MAX_BODY_SIZE_SCOPE_KEY]).response()(scope, receive, send)
            elif not replaced:
                await send(message)

        await self._app(scope, receive, send_in_shape)


def _is_plain_413(message: Message) -> bool:
    return message["status"] == 413 and (b"content-type", b"text/plain; charset=utf-8") in message["headers"]
