"""Heads of HTTP/1.1 requests: where one ends, and what llhttp reads in it.

The parser sees one head and nothing of what follows, so that bytes behind a request are never taken for a
part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httptools

from tercet.service.http.asgi import Scope
from tercet.service.http.paths import decoded

MAX_HEAD_BYTES = 64 * 1024  # of a head, or of what comes beside a body
END = b"\r\n\r\n"
VERSIONS = ("1.0", "1.1")
Address = tuple[str, int]
LENGTH = re.compile(rb"[0-9]{1,18}")


class InvalidHeadError(Exception):
    """Bytes that are no head of a request, or one that two servers might read differently."""


class UnknownVersionError(InvalidHeadError):
    """A head of another version of HTTP."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """One head. target: in origin form; headers: with lower-case names; keeps_alive: whether its client may
    send another request after this one; body_bytes: 0 without a body, None for one in chunks.
    """

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    keeps_alive: bool
    body_bytes: int | None

    @property
    def awaits_continue(self) -> bool:
        """Whether its client waits for 100 Continue before it sends the body."""
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers)

    def to_scope(self, client: Address | None, server: Address | None, state: dict[str, Any]) -> Scope:
        """The request as ASGI describes it."""
        path, _, query = self.target.partition(b"#")[0].partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": self.version,
            "method": self.method,
            "path": decoded(path),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self.headers,
            "scheme": "http",
            "client": client,
            "server": server,
            "state": state,
        }


def end_of_head(received: bytearray, looked_at: int) -> int | None:
    """How many bytes the head at the beginning has; None where its end is not there yet.

    looked_at: how many bytes were searched before.

    Raises InvalidHeadError for one that is too long.
    """
    end = received.find(END, max(0, looked_at - len(END) + 1), MAX_HEAD_BYTES)
    if end >= 0:
        return end + len(END)
    if len(received) >= MAX_HEAD_BYTES:
        raise InvalidHeadError
    return None


def parse_head(head: bytes) -> RequestHead:
    """Reads a head, up to its empty line.

    A client may offer another protocol, as Java's does with h2c: the offer is passed over.

    Raises InvalidHeadError, and UnknownVersionError for a version other than 1.0 and 1.1.
    """
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError as error:
        raise InvalidHeadError from error
    version = parser.get_http_version()
    if not reader.complete:
        raise InvalidHeadError
    if version not in VERSIONS:
        raise UnknownVersionError(version)
    method = parser.get_method()
    if method == b"CONNECT":  # this is no proxy
        raise InvalidHeadError
    target, headers = _origin_form(reader.target, reader.headers)
    body_bytes = _body_bytes(headers, version)
    options = b",".join(value for name, value in headers if name == b"connection").lower().split(b",")
    keeps_alive = version == "1.1" and b"close" not in map(bytes.strip, options)
    return RequestHead(method.decode("ascii"), target, version, headers, keeps_alive, body_bytes)


class _Reader:
    """Gathers what the parser reports."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True


def _origin_form(
    target: bytes, headers: list[tuple[bytes, bytes]]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A target in absolute form, as proxies get it, names the host itself (RFC 9112, section 3.2.2)."""
    if not target.isascii():
        raise InvalidHeadError
    if target.startswith(b"/"):
        return target, headers
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise InvalidHeadError
    authority, slash, path = rest.partition(b"/")
    others = [header for header in headers if header[0] != b"host"]
    return slash + path or b"/", [*others, (b"host", authority)]


def _body_bytes(headers: list[tuple[bytes, bytes]], version: str) -> int | None:
    """The body's length as the head announces it; None for chunks."""
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    lengths = [value.strip() for name, value in headers if name == b"content-length"]
    if codings:
        if codings != [b"chunked"] or lengths or version == "1.0":
            raise InvalidHeadError
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not LENGTH.fullmatch(lengths[0]):
        raise InvalidHeadError
    return int(lengths[0])
