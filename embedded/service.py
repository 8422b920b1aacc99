"""The service of a data root in a thread of this program: the handlers of HTTP, called without HTTP."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import uuid
from collections.abc import Callable, Coroutine, MutableMapping
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar, get_type_hints

import orjson

from tercet.embedded.errors import TercetError
from tercet.embedded.failures import translated
from tercet.index.documents.json_values import loads
from tercet.models.encoder import Encoder
from tercet.service.keys.access import EVERYTHING
from tercet.service.load.deadlines import NO_DEADLINE
from tercet.service.requests.body_check import BodyCheck
from tercet.service.routes.document_bodies import KeyHeaders
from tercet.service.routes.pages import ListPage
from tercet.service.runtime import Runtime
from tercet.service.schemas.search import CollectionName
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.metrics import Telemetry

Handler = Callable[..., Coroutine[Any, Any, Any]]
Result = TypeVar("Result")
NAMES = BodyCheck(CollectionName, ("path", "name"))


class EmbeddedService:
    """One data root, open until `close`. It holds the root's lock, as a server does.

    Safe to call from several threads.
    """

    def __init__(self, settings: Settings, encoder: Encoder | None = None) -> None:
        """encoder: one that is loaded already, instead of the settings' own.

        Raises ConflictError where another process writes to the data root, and TercetError where the encoder
        or the data root cannot be used.
        """
        self._loop = asyncio.new_event_loop()
        # A daemon: what was acknowledged is on the disk, so a program may end without closing.
        self._thread = threading.Thread(target=self._loop.run_forever, name="tercet", daemon=True)
        self._closing = threading.Lock()
        self._closed = False
        self._thread.start()
        try:
            with translated():
                self._runtime = self._run(_opened(settings, encoder))
        except BaseException:
            self._end_loop()
            raise

    def call(self, handler: Handler, *, name: str | None = None, body: Any = None, **arguments: Any) -> Any:
        """What a handler of the service answers, as parsed JSON; None where it has nothing to say.

        name: of the collection or alias; body: what HTTP would have as the JSON body; arguments: others of
        the handler. Raises ApiError as HTTP would answer.
        """
        with translated():
            if self._closed:
                raise TercetError("the store is closed; open it again with tercet.open")
            limits = self._runtime.limits
            given = {
                **arguments,
                "services": self._runtime,
                "deadline": NO_DEADLINE,
                "access": EVERYTHING,
                "keys": KeyHeaders(None, None),
                "page": ListPage(),
                "request": SimpleNamespace(
                    state=SimpleNamespace(access=EVERYTHING, request_id=uuid.uuid4().hex)
                ),
            }
            if name is not None:
                given["name"] = given["alias"] = NAMES.checked(name, limits)
            check, taken = _shape_of(handler)
            if check is not None:
                # Through JSON: a tuple is a list and an invalid number is refused, as over HTTP.
                value = loads(json.dumps(body, ensure_ascii=False, allow_nan=False).encode())
                given["body"] = check.checked(value, limits)
            answer = self._run(_answered(handler, {key: given[key] for key in taken if key in given}))
        return orjson.loads(answer) if answer else None

    def close(self) -> None:
        """Finishes what was accepted and lets go of the data root. A second call does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._run(self._runtime.stop())
        self._end_loop()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupted caller waits for nothing any more
            raise

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _opened(settings: Settings, encoder: Encoder | None) -> Runtime:
    """A runtime that is ready. Raises why it cannot be."""
    runtime = Runtime(settings, Telemetry(), searches=True, encoder=encoder)
    decided = asyncio.Event()
    runtime.opened = runtime.failed = decided.set
    await runtime.start()
    await decided.wait()
    if runtime.failure is not None:
        await runtime.stop()
        raise runtime.failure
    return runtime


async def _answered(handler: Handler, arguments: dict[str, Any]) -> bytes:
    """The body of a handler's answer, which may come in chunks."""
    response = await handler(**arguments)
    parts: list[bytes] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        parts.append(message.get("body", b""))

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    await response({"type": "http"}, receive, send)
    return b"".join(parts)


@cache  # a few handlers
def _shape_of(handler: Handler) -> tuple[BodyCheck | None, frozenset[str]]:
    """What checks a handler's body, and the names of its arguments."""
    names = frozenset(inspect.signature(handler).parameters)
    if "body" not in names:
        return None, names
    return BodyCheck(get_type_hints(handler, include_extras=True)["body"]), names
