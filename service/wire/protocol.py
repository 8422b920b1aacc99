"""HTTP/1.1 on the wire: limits for clients that wait, our error shape for all of it, and the gate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tercet.service.edge.cross_origin import is_preflight
from tercet.service.edge.places import ALWAYS_SERVED
from tercet.service.errors import Failure, failure_of
from tercet.service.exceptions import OverloadedError
from tercet.service.http.asgi import Application, RawHeaders, Scope, header
from tercet.service.http.departure import STATE as DEPARTURE
from tercet.service.http.departure import Departure
from tercet.service.load.gate import PASSAGE, Passage
from tercet.service.requests.keys import OPEN_FILES
from tercet.service.wire.connections import Connections
from tercet.service.wire.joined_writes import JoinedWrites
from tercet.service.wire.waiting import waited_seconds

MAX_HEAD_BYTES = 64 * 1024  # of a head, or of what comes beside a body
PROGRESS_BYTES = 16 * 1024  # what a client must take of an answer each time
LINGER_SECONDS = 5.0  # for the body of a request that was turned away
INVALID = (
    "this is no valid HTTP/1.1 request (a path is ASCII, with other characters percent-encoded), "
    f"or its headers exceed {MAX_HEAD_BYTES} bytes"
)


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol on llhttp's parser, with deadlines for heads and answers, and our refusals.

    A client may offer another protocol, as Java's does with h2c: the server goes on with this one, and reads
    the bytes that follow as the next request.
    """

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = server_state
        self._limits = server_state.limits
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._untaken_bytes = 0  # of what was written, when the write deadline was set
        self._in_head = False
        self._offers = False  # whether the head that was read offers another protocol
        self._open_bytes = 0  # of a head that has no end yet, or beside a body
        self._goes_on = False  # whether a head or a piece of a body came to its end
        self._arrived = 0.0
        self._waited_seconds = 0.0
        self._here: list[tuple[RequestResponseCycle, Application]] = []  # requests that have just come
        self._feeding = False

    def connection_made(self, transport: Any) -> None:  # an asyncio.Transport, which asyncio does not say
        """Opens the connection, or ends it where there are too many."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
        self._socket = transport.get_extra_info("socket")
        if self._shared.make_room():
            self._shared.waits(self)
            self._expect_head()
        else:
            in_use = f"all {self._limits.connections} connections are in use (setting max_connections)"
            self._refuse(Failure(429, in_use, "overloaded", headers=(("Retry-After", "1"),)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends what was meant for the connection."""
        self._shared.waits_no_more(self)
        self._cancel_head_deadline()
        self._cancel_write_deadline()
        self._unset_keepalive_if_required()
        unfinished = self.cycle is not None and not self.cycle.response_complete
        super().connection_lost(exc)
        if unfinished:
            self._departed()

    def data_received(self, data: bytes) -> None:
        """Takes what the client sent; the first byte after an answer begins the next head."""
        if self._head_deadline is None and (self.cycle is None or not self.cycle.more_body):
            self._expect_head()
        self._unset_keepalive_if_required()
        self._waited_seconds = waited_seconds(self._socket)
        self._arrived = time.monotonic() - self._waited_seconds
        self._feeding = True
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._end_invalid()
        finally:
            self._feeding = False
        for cycle, app in self._here:
            self._start_asgi_task(cycle, app)
        self._here.clear()
        self._note_who_waits()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps headers, and passes over those behind a body, which nobody here reads."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request is here. Raises ValueError for a head that is too long, or that two servers might read
        differently.
        """
        self._goes_on = True
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            raise ValueError("a head that is too long")
        self._offers = self.parser.should_upgrade()
        if self._offers:
            return
        self._in_head = False
        self._cancel_head_deadline()
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if codings and [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise ValueError("a Transfer-Encoding other than chunked")
        self.scope["state"].update({"arrived": self._arrived, DEPARTURE: Departure()})
        if not self.url.startswith(b"/"):
            self._take_authority()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._goes_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of the body."""
        self._goes_on = True
        if self._offers:
            return
        super().on_message_complete()
        if not self.pipeline:  # a large body had it paused, and who is not read from is not seen to leave
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Waits for the next request, unless it is here, or for the client to take the last of the answer."""
        self._shared.waits(self)
        super().on_response_complete()
        self._note_who_waits()
        self._bound_closing()

    def pause_writing(self) -> None:
        """Waits for the client to take what was written."""
        super().pause_writing()
        self._shared.waits(self)
        self._expect_progress()

    def resume_writing(self) -> None:
        """Writes on."""
        super().resume_writing()
        self._cancel_write_deadline()
        self._note_who_waits()

    def timeout_keep_alive_handler(self) -> None:
        """Ends a connection that had no request for a while."""
        if self._write_deadline is None and self.transport.get_write_buffer_size():
            self.transport.abort()  # nor has its client taken the end of the last answer
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answers 400 and closes; nothing after invalid bytes can be understood."""
        self._refuse(Failure(400, msg, "invalid_http"))

    def _feed(self, data: bytes) -> None:
        """Raises HttpParserError for what is no HTTP, and for a head or trailers without an end."""
        while data:
            self._goes_on = False
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
        self._open_bytes = 0 if self._goes_on else self._open_bytes + len(data)
        if self._open_bytes > MAX_HEAD_BYTES:
            raise httptools.HttpParserError("a head or trailers without an end")

    def _head_without_offer(self) -> bytes:
        """The head that was read last, so that what follows is read as HTTP. Raises HttpParserError."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise httptools.HttpParserError("this is no proxy")
        version = self.parser.get_http_version().encode("ascii")
        lines = [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([b"%b %b HTTP/%b" % (method, self.url, version), *lines, b"", b""])

    def _end_invalid(self) -> None:
        """Ends the connection after invalid bytes; what came whole before them is answered first."""
        last = self._here[-1][0] if self._here else self.cycle
        if last is not None and not last.response_complete and not last.more_body:
            last.keep_alive = False
            self.flow.pause_reading()
        else:
            self._here.clear()
            self.send_400_response(INVALID)

    def _take_authority(self) -> None:
        """A target in absolute form, as proxies get it, names the host itself (RFC 9112, section 3.2.2)."""
        scheme, separator, rest = self.url.partition(b"://")
        if not separator or scheme.lower() not in (b"http", b"https"):
            raise ValueError("a target that is neither a path nor an address")
        authority, slash, path = rest.partition(b"/")
        self.url = slash + path or b"/"
        self.headers[:] = [header for header in self.headers if header[0] != b"host"] + [(b"host", authority)]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begins a request once all that came with its head was read, or turns it away."""
        if self._feeding:
            self._here.append((cycle, app))
            return
        gate, path = self._shared.gate, cycle.scope["path"]
        # What browsers do not ask for again is served, and their question before a page's request.
        served = path in ALWAYS_SERVED or path.startswith(OPEN_FILES) or is_preflight(_scope(cycle))
        if not served:
            try:
                gate.require(path, self._waited_seconds, header(_scope(cycle), b"x-request-timeout"))
            except OverloadedError as error:
                self._turn_away(cycle, error)
                return
        passage = cycle.scope["state"][PASSAGE] = Passage(gate, path)
        if not cycle.more_body:
            passage.begin()
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self._ended(passage))

    def _ended(self, passage: Passage) -> Callable[[asyncio.Task[None]], None]:
        def end(task: asyncio.Task[None]) -> None:
            self.tasks.discard(task)
            passage.end()

        return end

    def _turn_away(self, cycle: RequestResponseCycle, error: OverloadedError) -> None:
        """Answers 429; the connection goes on where the whole request is here."""
        keeps = cycle.keep_alive and not cycle.more_body and not self.pipeline
        failure = failure_of(error)
        request_id = self._shared.turned_away(_scope(cycle), failure.status, error.reason)
        marks = self._shared.marks.of(_scope(cycle), request_id)
        self.transport.write(failure_bytes(failure, cycle.scope["path"], marks, close=not keeps))
        cycle.response_started = cycle.response_complete = True
        cycle.keep_alive = keeps
        if keeps:
            self.on_response_complete()
        else:  # closed at once, a client that still sends might never see the answer
            self._shared.waits(self)
            self._head_deadline = self.loop.call_later(LINGER_SECONDS, self.transport.close)
            if cycle.waiting_for_100_continue or not cycle.more_body:
                self.transport.close()

    def _departed(self) -> None:
        departure: Departure = self.cycle.scope["state"][DEPARTURE]
        departure.happened()

    def _refuse(self, failure: Failure) -> None:
        unanswered = self.cycle is None or self.cycle.response_complete or not self.cycle.response_started
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._departed()
        if unanswered and not self.transport.is_closing():
            # In the shape of the path, where the head was whole and what came of the body was not.
            path = "" if self.cycle is None or self.cycle.response_complete else self.cycle.scope["path"]
            request_id = self._shared.refused(self.client, failure.status)
            marks = self._shared.marks.of_none(request_id)
            self.transport.write(failure_bytes(failure, path, marks, close=True))
        self.transport.close()
        self._bound_closing()

    def _note_who_waits(self) -> None:
        cycle = self.cycle
        request_is_here = cycle is not None and not cycle.more_body and not self._in_head
        if request_is_here and not cycle.response_complete and not self.flow.write_paused:
            self._shared.waits_no_more(self)

    def _expect_head(self) -> None:
        self._head_deadline = self.loop.call_later(self._limits.head_seconds, self._end_late_head)

    def _cancel_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _end_late_head(self) -> None:
        if self._in_head:
            late = f"the request's head did not arrive within {self._limits.head_seconds:g} s"
            self._refuse(Failure(400, f"{late} (setting head_timeout_seconds)", "incomplete_head"))
        else:
            self.transport.close()

    def _bound_closing(self) -> None:
        """A transport that closes waits without end for its client to take what is left."""
        if self.transport.is_closing() and self._write_deadline is None:
            self._expect_progress()

    def _expect_progress(self) -> None:
        self._untaken_bytes = self.transport.get_write_buffer_size()
        self._write_deadline = self.loop.call_later(self._limits.write_seconds, self._end_without_progress)

    def _cancel_write_deadline(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def _end_without_progress(self) -> None:
        taken = self._untaken_bytes - self.transport.get_write_buffer_size()
        if taken < min(PROGRESS_BYTES, self._untaken_bytes):
            self.transport.abort()
        else:
            self._expect_progress()


def _scope(cycle: RequestResponseCycle) -> Scope:
    return cast(Scope, cycle.scope)


def failure_bytes(failure: Failure, path: str, marks: RawHeaders, *, close: bool) -> bytes:
    """A whole answer in the shape of errors below a path. marks: headers that every answer bears."""
    status, body = failure.rendered(path)
    headers = {
        "content-type": "application/json",
        "content-length": len(body),
        **{name.decode("ascii"): value.decode("latin-1") for name, value in marks},
        **dict(failure.headers),
        **({"connection": "close"} if close else {}),
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
