"""One request answered by an application of this process, without HTTP between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from urllib.parse import unquote

from fastapi import FastAPI

from tercet.models.errors import EncoderUnavailableError
from tercet.service.exceptions import NotReadyError
from tercet.service.http.asgi import Message, Scope
from tercet.service.runtime import Runtime

LOOK_SECONDS = 0.1
HOST = (b"host", b"localhost")  # a name that every application of ours has

Answer = tuple[int, dict[str, str], bytes]


class InProcess:
    """An application and its lifespan. Use from one event loop."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._open = AsyncExitStack()
        self._begun = False

    @property
    def runtime(self) -> Runtime:
        """What the application holds."""
        runtime: Runtime = self._app.state.runtime
        return runtime

    async def check(self) -> None:
        """Opens everything at the first call, which returns once requests can be answered.

        Raises why they cannot be, now or any more.
        """
        if not self._begun:
            self._begun = True
            await self._open.enter_async_context(self._app.router.lifespan_context(self._app))
            await until_ready(self.runtime)
        require_sound(self.runtime)

    async def stop(self) -> None:
        """Finishes what was accepted."""
        await self._open.aclose()

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Status, headers with their names in lower case, and body.

        target: path with its query, percent-encoded.
        """
        collected = _Collected(body)
        await self._app(_scope(method, target, headers, body), collected.receive, collected.send)
        return collected.status, collected.headers, b"".join(collected.parts)


async def until_ready(runtime: Runtime) -> None:
    """Waits until an application can answer. Raises why it never will."""
    while True:
        require_sound(runtime)
        try:
            await runtime.ready()
            return
        except (NotReadyError, EncoderUnavailableError):
            await asyncio.sleep(LOOK_SECONDS)


def require_sound(runtime: Runtime) -> None:
    """Raises why an application could not be opened."""
    if runtime.failure is not None:
        raise runtime.failure


class _Collected:
    """The two ends of one request: what it brings, and what is answered."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    async def receive(self) -> Message:
        body, self._body = self._body, None
        if body is None:  # whoever asks in vain is cancelled, which no message tells
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
        elif message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))


def _scope(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Scope:
    path, _, query = target.partition("?")
    given = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [HOST, *given, (b"content-length", str(len(body)).encode("ascii"))],
        "client": None,
        "server": None,
        "state": {},
    }
