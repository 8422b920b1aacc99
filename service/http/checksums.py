"""Checksums of requests and answers between a router and its shards: JSON looks sound when it is damaged.

A request has two, of its method and target and of its body, and its answer has that of its body: in its head,
or where it is sent as it is made, at its end.
"""

from __future__ import annotations

from zlib import crc32

from tercet.service.exceptions import MalformedBodyError
from tercet.service.http.asgi import Scope, header

HEADER = "x-checksum"
AT_END = "end"  # of an answer that is sent as it is made: its checksum are the last bytes
DIGITS = 8
_RAW = HEADER.encode()
_DAMAGED = "the request was damaged on its way: its checksum is another"


def checksum_of(body: bytes) -> str:
    """The header of an answer: the CRC-32 of its body."""
    return f"{crc32(body):0{DIGITS}x}"


def request_checksums(method: str, target: str, body: bytes) -> str:
    """The header of a request. target: path and query, as they are sent."""
    return f"{checksum_of(f'{method} {target}'.encode())} {checksum_of(body)}"


def is_checked(scope: Scope) -> bool:
    """Whether a request has checksums; then its answer has one, too."""
    return header(scope, _RAW) is not None


def require_sound_head(scope: Scope) -> None:
    """Raises MalformedBodyError where the method or target of a request is not what was sent."""
    given = header(scope, _RAW)
    if given is not None:
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        head = b"%s %s" % (scope["method"].encode(), target)
        if given.partition(" ")[0] != checksum_of(head):
            raise MalformedBodyError(_DAMAGED, "malformed")


def require_sound_body(scope: Scope, body: bytes) -> None:
    """Raises MalformedBodyError where its body is not what was sent."""
    given = header(scope, _RAW)
    if given is not None and given.partition(" ")[2] != checksum_of(body):
        raise MalformedBodyError(_DAMAGED, "malformed")


def checksum_line(value: str) -> tuple[bytes, bytes]:
    """The header of an answer, as ASGI has it."""
    return _RAW, value.encode()


class EndingChecksum:
    """That of an answer in pieces, behind the last of them."""

    def __init__(self) -> None:
        self._value = 0

    def go_on(self, body: bytes, *, more: bool) -> bytes:
        """The next piece as it is to be sent. more: whether others come."""
        self._value = crc32(body, self._value)
        return body if more else body + f"{self._value:0{DIGITS}x}".encode()


def sound_answer(body: bytes, given: str | None) -> bytes | None:
    """What was answered, of a body with this header; None where it is not what was sent."""
    if given == AT_END:
        body, given = body[:-DIGITS], body[-DIGITS:].decode("latin-1")
    return body if given in (None, checksum_of(body)) else None
