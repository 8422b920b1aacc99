"""One request and its answer, between a connection and the application that answers it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

from tercet.service.errors import Failure
from tercet.service.http.asgi import Application, Message, RawHeaders, Scope

HIGH_WATER_BYTES = 64 * 1024  # of a body that nobody has taken yet: then no more of it is read
UNFIT_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii") for status in HTTPStatus
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BODILESS = {204, 304}

log = logging.getLogger("tercet")


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def default_headers(self) -> Sequence[tuple[bytes, bytes]]:
        """Of every answer."""

    def write(self, data: bytes) -> None:
        """Sends bytes."""

    async def drain(self) -> None:
        """Waits while the client takes too little of what was sent."""

    def read_on(self) -> None:
        """Reads on where too much of a body had arrived."""

    def skip_body(self) -> None:
        """Throws away what is here of a body that nobody reads."""

    def answered(self) -> None:
        """The answer is whole."""

    def break_off(self) -> None:
        """Ends the connection, so that nobody takes a part of an answer for the whole."""


class Exchange:
    """A request on its way in, and its answer on its way out.

    keeps_alive: whether the connection serves another request after it; arriving: whether the body is not
    here yet; left: whether the client has.
    """

    def __init__(self, line: Line, scope: Scope, *, keeps_alive: bool, awaits_continue: bool) -> None:
        self.scope = scope
        self.keeps_alive = keeps_alive
        self.awaits_continue = awaits_continue
        self.arriving = True
        self.left = False
        self.begun = False  # the answer
        self.complete = False
        self._line = line
        self._body = bytearray()
        self._news = asyncio.Event()
        self._head = b""  # of the answer, sent with the first piece of its body
        self._in_chunks = False
        self._left_bytes: int | None = None  # of the answer, where its length was announced

    def add(self, piece: bytes, *, complete: bool) -> bool:
        """Takes a piece of the body; whether there is room for another one."""
        self._body += piece
        self.arriving = not complete
        if piece or complete:
            self._news.set()
        return len(self._body) <= HIGH_WATER_BYTES

    def leave(self) -> None:
        """The client has left."""
        self.left = True
        self._news.set()

    async def run(self, app: Application) -> None:
        """Has the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception:
            log.exception("the application failed")
        finally:
            if not self.complete and not self.left:
                self._line.break_off()

    async def receive(self) -> Message:
        """The next piece of the body, or that there is nothing more to come."""
        if self.awaits_continue:
            self.awaits_continue = False
            self._line.write(CONTINUE)
        if not self._body and self.arriving and not self.left:
            self._line.read_on()
            self._news.clear()
            await self._news.wait()
        if self.left or self.complete:
            return {"type": "http.disconnect"}
        piece, self._body = bytes(self._body), bytearray()
        return {"type": "http.request", "body": piece, "more_body": self.arriving}

    async def send(self, message: Message) -> None:
        """Sends a part of the answer; nothing once the client has left.

        Raises ValueError for a header that is none, and for a body longer or shorter than announced.
        """
        await self._line.drain()
        if self.left:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        piece = b"" if self.scope["method"] == "HEAD" else self._framed(body, more=more)
        self._line.write(self._head + piece if self._head else piece)
        self._head = b""
        if not more:
            self.complete = True
            self._line.answered()

    def answer_at_once(self, failure: Failure, marks: RawHeaders) -> None:
        """Answers with an error, without the application. marks: headers that every answer bears."""
        self._begin_answer()
        self.complete = True
        content = failure_bytes(failure, self.scope["path"], marks, close=not self.keeps_alive)
        if self.scope["method"] == "HEAD":
            content = content[: content.index(b"\r\n\r\n") + 4]
        self._line.write(content)

    def _begin_answer(self) -> None:
        if self.arriving and not self.awaits_continue:
            self._line.skip_body()
        # Who sends on, or waits for 100 Continue, was not asked for the body, and is not now.
        self.keeps_alive &= not self.arriving
        self.begun, self.awaits_continue = True, False

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._begin_answer()
        lines = [STATUS_LINES[status]]
        for name, value in (*self._line.default_headers, *headers):
            if UNFIT_VALUE.search(value):
                raise ValueError(f"the header {name!r} has a value that is none")
            if name == b"content-length":
                self._left_bytes = int(value)
            elif name == b"connection" and b"close" in value.lower():
                self.keeps_alive = False
                continue
            lines += (name, b": ", value, b"\r\n")
        if self._left_bytes is None and status not in BODILESS:
            if self.scope["http_version"] == "1.0":
                self.keeps_alive = False  # such clients know no chunks: the connection's end is the answer's
            elif self.scope["method"] != "HEAD":
                self._in_chunks = True
                lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keeps_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self._head = b"".join(lines)

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self._in_chunks:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        if self._left_bytes is not None:
            self._left_bytes -= len(body)
            if self._left_bytes < 0 or (self._left_bytes and not more):
                raise ValueError("the body has another length than the head of its answer says")
        return body


def failure_bytes(failure: Failure, path: str, marks: RawHeaders, *, close: bool) -> bytes:
    """A whole answer in the shape of errors below a path. marks: headers that every answer bears."""
    status, body = failure.rendered(path)
    headers: Mapping[str, object] = {
        "content-type": "application/json",
        "content-length": len(body),
        **{name.decode("ascii"): value.decode("latin-1") for name, value in marks},
        **dict(failure.headers),
        **({"connection": "close"} if close else {}),
    }
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return STATUS_LINES[status] + "".join([*lines, "\r\n"]).encode("latin-1") + body
