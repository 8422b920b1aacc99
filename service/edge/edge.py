"""The edge: reads the body of each request once, and lets the application answer it.

A request's record begins; its head is judged, where the wire has not done it; a browser that asks before a
page's request is answered. Then the application runs. When it asks for the body, all of it is read, and from
then on the request ends where its client leaves. The answer gets its marks, is audited before it leaves, and
is encoded as the client prefers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from tercet.service.edge.answers import AnswerCoding
from tercet.service.edge.bodies import Body, BodyLimits
from tercet.service.edge.entrance import CLAIM, Entrance, Refusal
from tercet.service.edge.ledger import Claim
from tercet.service.edge.marks import Marks
from tercet.service.edge.records import Record, Records
from tercet.service.error_table import KNOWN
from tercet.service.errors import INTERNAL, Failure, failure_of
from tercet.service.exceptions import (
    AuditError,
    BrokenAnswerError,
    NotReadyError,
    ServiceError,
)
from tercet.service.http.asgi import Application, Message, Receive, Scope, Send, headers
from tercet.service.http.checksums import (
    AT_END,
    EndingChecksum,
    checksum_line,
    checksum_of,
    is_checked,
    require_sound_body,
)
from tercet.service.http.departure import STATE as DEPARTURE
from tercet.service.http.departure import Departure
from tercet.service.load.gate import PASSAGE, Passage
from tercet.service.load.pools import Pool
from tercet.service.requests.direct import DirectRoutes
from tercet.service.requests.streamed_route import STREAMED
from tercet.service.telemetry.metrics import Telemetry
from tercet.service.tracing.facts import gathering
from tercet.service.tracing.request import tracing

OVERLOADED = 429

log = logging.getLogger("tercet.request")


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """What the edge of one server goes by. direct: routes that it calls itself; answer: to an exception that
    is known. codings: where large bodies are decoded and encoded; compression: whether answers are encoded
    for clients that take them so.
    """

    entrance: Entrance
    marks: Marks
    bodies: BodyLimits
    records: Records
    telemetry: Telemetry
    direct: DirectRoutes
    answer: Callable[[Request, Exception], Awaitable[Response]]
    codings: Pool
    compression: bool = True


class Edge:
    """The outermost application: one `_Exchange` for each request."""

    def __init__(self, app: Application, options: EdgeOptions) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; hands on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = scope.get("state", {}).get("arrived")
        record = self._options.records.begin(scope, time.monotonic() if arrived is None else arrived)
        with tracing(record.trace), gathering(record.facts):
            await _Exchange(self._options, record, receive, send).run(self._app)


class _Exchange:
    """One request and its answer."""

    def __init__(self, options: EdgeOptions, record: Record, receive: Receive, send: Send) -> None:
        self._options = options
        self._record = record
        self._scope = record.scope
        self._send = send
        self._passage: Passage | None = self._scope["state"].get(PASSAGE)
        self._receive = receive
        self._body_read = False
        self._again: bytes | None = None  # the body, once more
        self._start: Message | None = None  # of the answer, until the first piece of its body is there
        self._begun = False
        self._replaced = False  # the answer, by an error
        self._checksum: EndingChecksum | None = None  # of an answer in pieces
        self._coding: AnswerCoding | None = None
        self._left = False
        self._departed: asyncio.Future[None] | None = None

    async def run(self, app: Application) -> None:
        """Answers, whatever happens. Raises CancelledError where no connection could have ended it."""
        scope, record = self._scope, self._record
        departure: Departure | None = scope["state"].get(DEPARTURE)
        work = asyncio.current_task()
        try:
            refusal = self._options.entrance.judge(scope) if self._passage is None else None
            if refusal is not None:
                await self._refuse(refusal)
                return
            preflight = self._options.entrance.cross_origin.preflight(scope)
            if preflight is not None:
                await preflight(scope, self.receive, self.send)
                return
            if departure is not None and work is not None:
                departure.expect(lambda: self._leave(work))
            if not await self._answered_directly():
                # HTTP asks for HEAD wherever GET works; the server's protocol leaves the body out.
                inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
                await app(inner, self.receive, self.send)
        except ClientDisconnect:  # before its body was complete
            pass
        except asyncio.CancelledError:
            if departure is None or work is None:  # whoever runs this without a connection ends it
                raise
            work.uncancel()
            if not self._left:
                await self._end_early()
        except BrokenAnswerError:  # its connection ends, so that nobody takes it for whole
            log.exception("broken off", extra={"request_id": record.id, "path": record.path})
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            await self._fail(self._unexpected(error))
        finally:
            if departure is not None:
                departure.expect(None)
            if CLAIM in scope["state"]:
                self._claim.end()
            # After the answer, which leaves once this task has ended.
            asyncio.get_running_loop().call_soon(self._options.records.end, record)

    @property
    def _claim(self) -> Claim:
        claim: Claim = self._scope["state"][CLAIM]
        return claim

    @cached_property
    def _body(self) -> Body:
        is_here = self._passage is not None and self._passage.begun
        return Body(self._scope, self._receive, self._options.bodies, self._claim, is_here=is_here)

    async def receive(self) -> Message:
        """The whole body; after that, the departure of the client, if it ever comes."""
        if self._again is not None:  # FastAPI reads what the edge has read
            body, self._again = self._again, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._body_read:
            self._departed = self._departed or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._departed)
            return {"type": "http.disconnect"}
        if self._scope["state"].get(STREAMED):
            return await self._piece()
        with self._claim.resting():
            body = await self._body.read(self._options.codings)
        self._body_read = True
        require_sound_body(self._scope, body)
        self._claim.require_place()
        self._claim.count(len(body))
        if self._passage is not None:
            self._passage.begin()
        return {"type": "http.request", "body": body, "more_body": False}

    async def _piece(self) -> Message:
        """The next piece of a body that its route takes as it comes."""
        with self._claim.resting():
            piece = await self._body.next_piece()
        self._claim.count(len(piece))
        if not self._body.arriving:
            self._body_read = True
            if self._passage is not None:
                self._passage.begin()
        return {"type": "http.request", "body": piece, "more_body": self._body.arriving}

    async def send(self, message: Message) -> None:
        """Holds the beginning of the answer back until the first piece of its body is there."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._replaced:
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._start is not None:
            start, self._start = self._start, None
            body, more = await self._begin(start, body, more=more)
        elif self._coding is not None:
            body = await self._coding.go_on(body, more=more)
        if self._checksum is not None:
            body = self._checksum.go_on(body, more=more)
        await self._out({"type": "http.response.body", "body": body, "more_body": more})

    async def _answered_directly(self) -> bool:
        """Calls the handler of a route that needs no more than its body; false where FastAPI is to answer."""
        scope = self._scope
        found = self._options.direct.find(scope)
        if found is None:
            return False
        direct, name = found
        request = Request(scope, self.receive)
        try:
            body = (await self.receive())["body"]
            response = await direct.answer(body, request, name)
        except KNOWN as error:
            response = await self._options.answer(request, error)
        if response is None:
            self._again = body
            return False
        await response(scope, self.receive, self.send)
        return True

    async def _begin(self, start: Message, body: bytes, *, more: bool) -> tuple[bytes, bool]:
        """Sends the head of the answer; gives the first piece of its body as it is to be sent, and whether
        there are more.
        """
        self._record.status = start["status"]
        if self._passage is not None:
            self._passage.end(answered=start["status"] != OVERLOADED)
        if start["status"] == OVERLOADED and CLAIM in self._scope["state"]:
            with self._claim.resting():
                await asyncio.sleep(self._claim.refused())
        try:
            await self._options.records.enter(self._record)
        except AuditError as error:
            if start["status"] < 400:  # a refusal stays one
                self._record.status, body = failure_of(error).rendered(self._scope["path"])
                more, self._replaced = False, True
                head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
                start = {"type": "http.response.start", "status": self._record.status, "headers": head}
        start["headers"] = list(start.get("headers", ()))
        if self._options.compression:
            self._coding = AnswerCoding(headers(self._scope, b"accept-encoding"), self._options.codings)
            body = await self._coding.begin(start, body, more=more)
        start["headers"] = [*start["headers"], *self._options.marks.of(self._scope, self._record.id)]
        if is_checked(self._scope):
            self._checksum = EndingChecksum() if more else None
            start["headers"] = [*start["headers"], checksum_line(AT_END if more else checksum_of(body))]
        self._begun = True
        await self._out(start)
        return body, more

    async def _out(self, message: Message) -> None:
        claim: Claim | None = self._scope["state"].get(CLAIM)
        if claim is None:  # the answer to one that was not let in
            await self._send(message)
            return
        with claim.resting():
            await self._send(message)

    async def _refuse(self, refusal: Refusal) -> None:
        """Answers a request that is not let in."""
        if refusal.reason is not None:
            self._options.telemetry.count_refusal(refusal.reason)
        await asyncio.sleep(refusal.seconds)
        await self._fail(refusal.failure)

    async def _fail(self, failure: Failure) -> None:
        """Answers with an error, unless an answer has begun."""
        self._start = None
        if self._begun:
            return
        await failure.response()(self._scope, self.receive, self.send)

    def _unexpected(self, error: Exception) -> Failure:
        failure = failure_of(error) if isinstance(error, ServiceError) else INTERNAL
        if failure is INTERNAL:
            about = {"request_id": self._record.id, "path": self._record.path}
            log.error("a bug", exc_info=error, extra=about)
            self._record.status = INTERNAL.status
        return failure

    async def _end_early(self) -> None:
        """Answers a request that the server can no longer finish."""
        if self._scope["state"].get("changes"):
            failure = Failure(
                503,
                "the server ended during the write; whether it was made is unknown: repeat it with the same "
                "idempotency_key",
                "write_unknown",
            )
        else:
            failure = failure_of(NotReadyError("the server is ending; send the request again in a moment"))
        await self._fail(failure)

    def _leave(self, work: asyncio.Task[None]) -> None:
        """Stops the work of a client that has left after its body had arrived."""
        if self._departed is not None and not self._departed.done():
            self._departed.set_result(None)
        if self._body_read and not self._left:
            self._left = True
            work.cancel()
