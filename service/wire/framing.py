"""Where the body of a request ends (RFC 9112, section 6): after its length, or after its last chunk."""

from __future__ import annotations

import re
from typing import Protocol

from tercet.service.wire.heads import MAX_HEAD_BYTES

CHUNKS = 256  # read at a time, after which others get their turn
LINE_END = b"\r\n"
SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")


class InvalidBodyError(Exception):
    """Bytes that are no chunks."""


class Framing(Protocol):
    """One body on its way. complete: whether all of it was taken; hungry: whether more has to be received
    for the next of it.
    """

    complete: bool
    hungry: bool

    def take(self, received: bytearray) -> bytes:
        """Takes what there is of the body from the beginning of what was received.

        Raises InvalidBodyError.
        """
        ...


class Counted:
    """A body of a known length."""

    def __init__(self, body_bytes: int) -> None:
        self._left_bytes = body_bytes
        self.complete = body_bytes == 0
        self.hungry = True

    def take(self, received: bytearray) -> bytes:
        """Takes what there is of it."""
        piece = bytes(received[: self._left_bytes])
        del received[: len(piece)]
        self._left_bytes -= len(piece)
        self.complete = self._left_bytes == 0
        return piece


class Chunked:
    """A body in chunks. Trailers are checked and passed over: nobody here reads them."""

    def __init__(self) -> None:
        self.complete = False
        self.hungry = True
        self._left_bytes = 0  # of the chunk
        self._in_chunk = False  # whether its line end is still to come
        self._in_trailers = False
        self._trailer_bytes = 0

    def take(self, received: bytearray) -> bytes:
        """Takes what there is of some chunks. Raises InvalidBodyError."""
        pieces: list[bytes] = []
        position, self.hungry = 0, True
        for _ in range(CHUNKS):
            if self._left_bytes:
                piece = bytes(received[position : position + self._left_bytes])
                pieces.append(piece)
                position += len(piece)
                self._left_bytes -= len(piece)
            end = -1 if self._left_bytes else received.find(LINE_END, position, position + MAX_HEAD_BYTES)
            if end < 0:
                if not self._left_bytes and len(received) - position >= MAX_HEAD_BYTES:
                    raise InvalidBodyError
                break
            self._read_line(bytes(received[position:end]))
            position = end + len(LINE_END)
            if self.complete:
                break
        else:
            self.hungry = False
        del received[:position]
        return b"".join(pieces)

    def _read_line(self, line: bytes) -> None:
        """The end of a chunk, the size of the next one, or a trailer."""
        if self._in_chunk:
            if line:
                raise InvalidBodyError
            self._in_chunk = False
        elif self._in_trailers:
            self._trailer_bytes += len(line) + len(LINE_END)
            if self._trailer_bytes > MAX_HEAD_BYTES or (line and not TRAILER.fullmatch(line)):
                raise InvalidBodyError
            self.complete = not line
        else:
            size = SIZE_LINE.fullmatch(line)
            if size is None:
                raise InvalidBodyError
            self._left_bytes = int(size[1], 16)
            self._in_chunk = self._left_bytes > 0
            self._in_trailers = not self._in_chunk


def framing_of(body_bytes: int | None) -> Framing:
    """The framing of a body. body_bytes: as `RequestHead` has it."""
    return Chunked() if body_bytes is None else Counted(body_bytes)
