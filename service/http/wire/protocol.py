"""HTTP/1.1 on the wire: limits for clients that wait, and one error shape even for what is no HTTP."""

from __future__ import annotations

import asyncio
import uuid
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.errors import Failure
from service.http.wire.connections import Connections

MAX_HEAD_BYTES = 64 * 1024  # of a head, or of trailers, that has no end yet
PROGRESS_BYTES = 16 * 1024  # what a client must take of an answer each time


class HttpProtocol(H11Protocol):
    """Uvicorn's protocol with deadlines for heads and answers, and our answer to what it cannot parse.

    The one on h11, since the parser of the faster one takes the body of a request that offers another
    protocol, as Java's client does with h2c, for that protocol's bytes or for a second request.
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

    def connection_made(self, transport: Any) -> None:  # an asyncio.Transport, which asyncio does not say
        """Opens the connection, or ends it where there are too many."""
        super().connection_made(transport)
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
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes what the client sent; the first byte after an answer begins the next head."""
        if self._head_deadline is None and self.conn.their_state is h11.IDLE:
            self._expect_head()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel_head_deadline()
        self._note_who_waits()

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
        """Answers and closes; nothing after such bytes can be understood."""
        problem = f"this is no valid HTTP/1.1 request, or its headers exceed {MAX_HEAD_BYTES} bytes"
        self._refuse(Failure(400, problem, "invalid_http"))

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: a client may offer another protocol, and a server may go on with this one."""

    def _refuse(self, failure: Failure) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = failure.body
            headers = {
                "content-type": "application/json",
                "content-length": len(body),
                "x-request-id": uuid.uuid4().hex,
                "connection": "close",
                **dict(failure.headers),
            }
            head = [f"HTTP/1.1 {failure.status} {HTTPStatus(failure.status).phrase}"]
            head += [f"{name}: {value}" for name, value in headers.items()]
            self.transport.write("\r\n".join([*head, "", ""]).encode("ascii") + body)
        self.transport.close()
        self._bound_closing()

    def _note_who_waits(self) -> None:
        request_is_here = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if request_is_here and not self.cycle.response_complete and not self.flow.write_paused:
            self._shared.waits_no_more(self)

    def _expect_head(self) -> None:
        self._head_deadline = self.loop.call_later(self._limits.head_seconds, self._end_late_head)

    def _cancel_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _end_late_head(self) -> None:
        begun, _ = self.conn.trailing_data
        if begun:
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
