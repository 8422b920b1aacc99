"""HTTP/1.1 on the wire: one request of a connection in work at a time, limits for clients that wait, the
service's shape of errors, and the gate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from uvicorn.config import Config

from tercet.service.edge.entrance import Refusal
from tercet.service.errors import Failure
from tercet.service.http.departure import STATE as DEPARTURE
from tercet.service.http.departure import Departure
from tercet.service.load.gate import PASSAGE
from tercet.service.wire.connections import Connections
from tercet.service.wire.exchange import CONTINUE, Exchange, failure_bytes
from tercet.service.wire.framing import Framing, InvalidBodyError, framing_of
from tercet.service.wire.heads import (
    MAX_HEAD_BYTES,
    InvalidHeadError,
    RequestHead,
    UnknownVersionError,
    end_of_head,
    parse_head,
)
from tercet.service.wire.kernel import address_of, is_reset, waited_seconds
from tercet.service.wire.progress import WriteProgress

AHEAD_BYTES = MAX_HEAD_BYTES  # of requests that wait behind the one in work: then no more of them is read
LINGER_SECONDS = 5.0  # for what a client still sends that has its answer
LINGER_BYTES = 64 << 20
LOOK_SECONDS = 0.1  # how often a half-closed connection is looked at
INVALID = (
    "this is no valid HTTP/1.1 request (a path is ASCII, with other characters percent-encoded), "
    f"or its headers exceed {MAX_HEAD_BYTES} bytes"
)


class HttpProtocol(asyncio.Protocol):
    """One connection, as uvicorn runs it.

    What comes behind a request waits as bytes, unread, until that request is answered. So an answer, an error
    or a departure is always that of the one request in work, and a client gains nothing by sending many.
    """

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app = config.loaded_app
        self._app_state = app_state
        self._idle_seconds = config.timeout_keep_alive
        self._shared = server_state
        self._limits = server_state.limits
        self._loop = _loop or asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._looked_at = 0  # bytes of a head without an end
        self._exchange: Exchange | None = None  # in work
        self._refusal: Refusal | None = None  # its answer, as long as it is held back
        self._framing: Framing = framing_of(0)
        self._begins = False  # whether a request may begin, rather than one be in work or the end have come
        self._half_closed = False
        self._reading = True
        self._writable = asyncio.Event()
        self._in_head = True  # whether a head is expected to end, rather than one to begin
        self._deadline: asyncio.TimerHandle | None = None  # of a head, of a pause, or of the end
        self._linger_bytes = 0  # that may still come behind the last answer
        self._arrived = self._waited_seconds = 0.0

    # What the transport reports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Opens the connection, or ends it where there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")
        self._client = address_of(transport.get_extra_info("peername"))
        self._server = address_of(transport.get_extra_info("sockname"))
        self._progress = WriteProgress(self._transport, self._loop, self._limits.write_seconds)
        self._writable.set()
        self._shared.connections.add(self)
        if self._shared.make_room():
            self._begins = True
            self._shared.waits(self)
            self._expect_head()
        else:
            in_use = f"all {self._limits.connections} connections are in use (setting max_connections)"
            self._refuse(Failure(429, in_use, "overloaded", headers=(("Retry-After", "1"),)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends what was meant for the connection."""
        self._begins = False
        self._received.clear()
        self._shared.connections.discard(self)
        self._shared.waits_no_more(self)
        self._cancel_deadline()
        self._progress.cancel()
        self._writable.set()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            _depart(exchange)

    def data_received(self, data: bytes) -> None:
        """Takes what the client sent."""
        self._waited_seconds = waited_seconds(self._socket)
        self._arrived = time.monotonic() - self._waited_seconds
        if self._begins or self._exchange is not None:
            self._received += data
            self._go_on()
            return
        self._linger_bytes -= len(data)
        if self._linger_bytes < 0:
            self._transport.abort()

    def eof_received(self) -> bool:
        """The client sends no more; whether it may still get the answer to what it has sent."""
        self._half_closed = True
        exchange = self._exchange
        if exchange is None or exchange.arriving:
            if self._received:
                self._loop.call_soon(self._go_on)
            return bool(self._received)
        if not exchange.begun and exchange.scope["http_version"] != "1.0":
            # Most have left. This is no answer, and a client that waits for one passes over it; the system of
            # one that has left refuses it, and then is_reset tells.
            self.write(CONTINUE)
            self._loop.call_later(LOOK_SECONDS, self._look_for_reset, exchange)
        return True

    def pause_writing(self) -> None:
        """Waits for the client to take what was written."""
        self._writable.clear()
        self._shared.waits(self)
        self._progress.expect()

    def resume_writing(self) -> None:
        """Writes on."""
        self._writable.set()
        self._progress.cancel()
        if self._exchange is not None and not self._exchange.arriving:
            self._shared.waits_no_more(self)

    def shutdown(self) -> None:
        """The server ends: closes the connection once its request is answered."""
        exchange = self._exchange
        if exchange is None:
            self._transport.close()
            return
        exchange.keeps_alive = False
        if self._refusal is not None:
            self._turn_away(exchange, self._refusal)

    def abort(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    # What the exchange in work asks for

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Of every answer: the date."""
        return self._shared.default_headers

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        if data and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits while the client takes too little of what was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    def read_on(self) -> None:
        """Reads on where too much of a body had arrived."""
        self._go_on()

    def skip_body(self) -> None:
        """Throws away what is here of a body that nobody reads."""
        exchange, framing = self._exchange, self._framing
        with suppress(InvalidBodyError):  # its connection ends
            while exchange is not None and exchange.arriving:
                framing.take(self._received)
                exchange.add(b"", complete=framing.complete)
                if framing.hungry:
                    break

    def answered(self) -> None:
        """Waits for the next request, or for the client to take the last of the answer."""
        exchange, self._exchange = self._exchange, None
        self._shared.total_requests += 1
        self._shared.waits(self)
        if exchange is None or self._transport.is_closing():
            return
        if not exchange.keeps_alive or exchange.arriving or (self._half_closed and not self._received):
            self._close()
        elif self._received:
            self._begins = True
            self._loop.call_soon(self._go_on)  # others get their turn between two requests of one client
        else:
            self._begins = True
            self._read(on=True)
            self._expect(self._idle_seconds, self._end_idle)

    def break_off(self) -> None:
        """Ends the connection, so that nobody takes a part of an answer for the whole."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and exchange.begun and exchange.scope["http_version"] == "1.0":
            self._transport.abort()
        else:
            self._close()

    # Requests

    def _go_on(self) -> None:
        """Takes the next of what was received: a head, or of the body of the request in work."""
        try:
            if self._begins:
                self._begin_next()
            elif self._exchange is not None and self._exchange.arriving:
                self._take_body(self._exchange)
        except UnknownVersionError as error:
            problem = f"this is HTTP/{error}; send HTTP/1.1"
            self._refuse(Failure(505, problem, "http_version_not_supported"))
        except (InvalidHeadError, InvalidBodyError):
            self._refuse(Failure(400, INVALID, "invalid_http"))
        if self._exchange is not None and not self._exchange.arriving:
            self._read(on=len(self._received) <= AHEAD_BYTES)

    def _begin_next(self) -> None:
        """Begins the request whose head was received, if it has its end.

        Raises InvalidHeadError and InvalidBodyError.
        """
        if self._received.startswith(b"\r\n"):  # some clients send one behind a body
            self._received, self._looked_at = self._received.lstrip(b"\r\n"), 0
        head_bytes = end_of_head(self._received, self._looked_at)
        if head_bytes is None:
            self._looked_at = len(self._received)
            self._read(on=True)
            if self._half_closed:
                self._close()
            elif not self._in_head:
                self._expect_head()
            return
        head = parse_head(bytes(self._received[:head_bytes]))
        del self._received[:head_bytes]
        self._looked_at = 0
        self._cancel_deadline()
        self._begins = self._in_head = False
        self._framing = framing_of(head.body_bytes)
        exchange = self._exchange = self._exchange_of(head)
        self._take_body(exchange)
        self._start(exchange)

    def _exchange_of(self, head: RequestHead) -> Exchange:
        state = {**self._app_state, "arrived": self._arrived, DEPARTURE: Departure()}
        scope = head.to_scope(self._client, self._server, state)
        return Exchange(self, scope, keeps_alive=head.keeps_alive, awaits_continue=head.awaits_continue)

    def _take_body(self, exchange: Exchange) -> None:
        """Raises InvalidBodyError."""
        framing = self._framing
        piece = framing.take(self._received)
        has_room = exchange.add(piece, complete=framing.complete)
        if framing.complete:
            self._shared.waits_no_more(self)
            return
        self._read(on=has_room and framing.hungry)
        if not framing.hungry and has_room:
            self._loop.call_soon(self._go_on)
        elif framing.hungry and self._half_closed:
            self._transport.close()

    def _start(self, exchange: Exchange) -> None:
        """Has the application answer, or turns the request away."""
        entrance, scope = self._shared.entrance, exchange.scope
        refusal = self._refusal = entrance.judge(scope, self._waited_seconds)
        if refusal is not None:
            self._shared.waits(self)
            self._loop.call_later(refusal.seconds, self._turn_away, exchange, refusal)
            return
        passage = scope["state"][PASSAGE] = entrance.passage(scope)
        if not exchange.arriving:
            passage.begin()
        task = self._loop.create_task(exchange.run(self._app))
        self._shared.tasks.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._shared.tasks.discard(task)
            passage.end()

        task.add_done_callback(end)

    def _turn_away(self, exchange: Exchange, refusal: Refusal) -> None:
        """Answers a request that was not let in; the connection goes on where all of it is here."""
        if self._exchange is not exchange:  # its client has left
            return
        self._refusal = None
        request_id = self._shared.turned_away(exchange.scope, refusal.failure.status, refusal.reason)
        marks = self._shared.marks.of(exchange.scope, request_id)
        exchange.answer_at_once(refusal.failure, (*self.default_headers, *marks))
        self.answered()

    def _refuse(self, failure: Failure) -> None:
        """Answers and closes; nothing after such bytes can be understood."""
        self._begins = False
        exchange, self._exchange = self._exchange, None
        if exchange is None or not exchange.begun:
            # In the shape of the path, where the head was whole and what came of the body was not.
            path = "" if exchange is None else exchange.scope["path"]
            request_id = self._shared.refused(self._client, failure.status)
            marks = self._shared.marks.of_none(request_id)
            self.write(failure_bytes(failure, path, (*self.default_headers, *marks), close=True))
        if exchange is not None:
            _depart(exchange)
        self._close()

    def _look_for_reset(self, exchange: Exchange) -> None:
        if self._exchange is not exchange or exchange.begun:
            return
        if is_reset(self._socket):
            self._transport.abort()
        else:
            self._loop.call_later(LOOK_SECONDS, self._look_for_reset, exchange)

    # Time and ends

    def _read(self, *, on: bool) -> None:
        """Reads on, or lets the client wait; who is not read from is not seen to leave."""
        if on == self._reading or self._half_closed or self._transport.is_closing():
            return
        self._reading = on
        if on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _close(self) -> None:
        """Ends the connection once the client has taken the last answer.

        Closed at once, one that still sends might never see that answer.
        """
        self._begins = False
        self._received.clear()
        self._cancel_deadline()
        self._shared.waits(self)
        self._read(on=True)
        if self._half_closed or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()
            self._linger_bytes = LINGER_BYTES
            self._expect(LINGER_SECONDS, self._transport.close)
        if self._transport.get_write_buffer_size() and not self._progress.is_expected:
            self._progress.expect()

    def _expect_head(self) -> None:
        self._in_head = True
        self._expect(self._limits.head_seconds, self._end_late_head)

    def _expect(self, seconds: float, end: Callable[[], None]) -> None:
        self._cancel_deadline()
        self._deadline = self._loop.call_later(seconds, end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_late_head(self) -> None:
        if self._received:
            late = f"the request's head did not arrive within {self._limits.head_seconds:g} s"
            self._refuse(Failure(400, f"{late} (setting head_timeout_seconds)", "incomplete_head"))
        else:
            self._transport.close()

    def _end_idle(self) -> None:
        """Ends a connection that had no request for a while."""
        if self._transport.get_write_buffer_size() and not self._progress.is_expected:
            self._transport.abort()  # nor has its client taken the end of the last answer
        else:
            self._transport.close()


def _depart(exchange: Exchange) -> None:
    """Its client has left before the answer was whole."""
    exchange.leave()
    departure: Departure = exchange.scope["state"][DEPARTURE]
    departure.happened()
