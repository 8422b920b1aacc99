"""One request after another over a connection, with bytes of one's own, as no client library sends them."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tercet.service.http.codings import Decoder
from tercet.service.http.error_shapes import SHAPES, Shape, shape_of


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A connection that is opened again where the server ended it."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        """seconds: the longest wait for an answer or the connection's end."""
        self._address = host, port
        self._seconds = seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, sent: bytes, *, whole: bool, has_body: bool) -> Answer | None:
        """The answer, or None where the connection ended without one.

        whole: whether the request leaves the connection fit for another; has_body: whether its answer may
        have one. Raises TimeoutError.
        """
        async with asyncio.timeout(self._seconds):
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self._address, limit=1 << 20)
            reader, writer = self._streams
            answer = None
            with suppress(ConnectionError):  # refused before all was sent: the answer may be here
                writer.write(sent)
                await writer.drain()
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                answer = await _answer(reader, has_body)
        if answer is None or not whole or answer.headers.get("connection", "").lower() == "close":
            await self.close()
        return answer

    async def close(self) -> None:
        """Ends the connection; the next exchange opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _answer(reader: asyncio.StreamReader, has_body: bool) -> Answer:
    status = 100
    while status < 200:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        status = int(first.split(" ")[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if not has_body or status in (204, 304):
        return Answer(status, headers, b"")
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers["content-length"]))
    return Answer(status, headers, body)


def fault_of(answer: Answer, path: str | None, *, has_body: bool = True) -> str | None:
    """What is wrong with an answer: a failure of the server, or an error that has not the shape of its path.

    path: None where it is not known what the server understood; then any of the shapes is right.
    """
    if answer.status >= 500:
        return f"{answer.status}: {answer.body[:300]!r}"
    if "x-request-id" not in answer.headers:
        return f"{answer.status} without X-Request-Id"
    if answer.status < 400 or not has_body:
        return None
    if answer.headers.get("content-type") != "application/json":
        return f"{answer.status} of type {answer.headers.get('content-type')}"
    coding = answer.headers.get("content-encoding")
    body = answer.body if coding is None else Decoder(coding).decode(answer.body, 1 << 20)
    try:
        value: Any = json.loads(body)
    except ValueError:
        value = None
    shapes = [*SHAPES.values(), None] if path is None else [shape_of(path)]
    return (
        None
        if any(_has_shape(value, shape) for shape in shapes)
        else f"{answer.status} of another shape: {body[:300]!r}"
    )


def _has_shape(value: Any, shape: Shape | None) -> bool:
    """Whether it is an error of another service, which are objects of texts, or has the one shape."""
    if shape is None:
        return _has_error_shape(value)
    names = set(shape(400, "", "")[1])
    return (
        isinstance(value, dict)
        and set(value) == names
        and all(isinstance(text, str) and text for text in value.values())
    )


def _has_error_shape(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"error"}:
        return False
    error = value["error"]
    return (
        isinstance(error, dict)
        and set(error) == {"type", "message", "param", "code"}
        and all(isinstance(error[name], str) and error[name] for name in ("type", "message", "code"))
        and (error["param"] is None or isinstance(error["param"], str))
    )
