"""Streams of requests as clients may send them, whole and broken, and a model of what each must get."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from uvicorn.config import Config

from tercet.service.edge.entrance import CLAIM
from tercet.service.http.asgi import Receive, Scope, Send
from tercet.service.wire.connections import Connections
from tercet.service.wire.protocol import HttpProtocol

WORDS = (b"", b"tea", b"hot water", b"\r\n\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"x" * 3000)
BROKEN = (
    (b"GARBAGE\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
    (b"GET / HTTP/1.1\nHost: localhost\n\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHo st: localhost\r\n\r\n", 400),
    (b"GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\nabc", 400),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n", 400),
)
NO_TCP, _OTHER_END = socket.socketpair()
ANSWER_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request gets. echo: what the application says of it, None of an error; ends: whether it is the
    connection's last.
    """

    status: int
    echo: tuple[str, str, str] | None
    ends: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """What one client sends, in packets, and what it must get.

    half_closes: whether it says that this is all.
    """

    packets: Sequence[bytes]
    half_closes: bool
    answers: Sequence[Answer]


def draw_stream(rng: random.Random) -> Stream:
    """A stream of up to six requests; some are broken, some end their connection, the last may be cut off."""
    sent, answers = [], list[Answer]()
    for number in range(rng.randint(1, 6)):
        if rng.random() < 0.08:
            content, status = rng.choice(BROKEN)
            sent.append(content)
            answers.append(Answer(status, None, True))
        else:
            content, answer = _request(rng, number)
            sent.append(content)
            answers.append(answer)
    ended = next((place for place, answer in enumerate(answers) if answer.ends), len(answers) - 1)
    answers = answers[: ended + 1]
    content = b"".join(sent)
    if rng.random() < 0.15 and ended == len(sent) - 1 and answers[-1].status == 200:
        content = content[: -rng.randint(1, len(sent[-1]))]
        answers = answers[:-1]
    return Stream(list(_packets(content, rng)), rng.random() < 0.5, answers)


def _request(rng: random.Random, number: int) -> tuple[bytes, Answer]:
    method = rng.choice(("GET", "POST", "POST", "HEAD", "PUT"))
    path = f"/{rng.choice(('', 'slow', 'pieces'))}{number}"
    version = "1.0" if rng.random() < 0.05 else "1.1"
    closes = version == "1.0" or rng.random() < 0.05
    body = b"" if method in ("GET", "HEAD") else b"".join(rng.choices(WORDS, k=rng.randint(0, 4)))
    target = f"http://localhost{path}" if rng.random() < 0.05 else path
    lines = [f"{method} {target} HTTP/{version}", "Host: localhost"]
    if closes and version == "1.1":
        lines.append(rng.choice(("Connection: close", "connection: keep-alive, Close")))
    if rng.random() < 0.05:
        lines += ["Connection: Upgrade", "Upgrade: h2c"]
    if body and rng.random() < 0.1:
        lines.append("Expect: 100-continue")
    content = body
    if body and version == "1.1" and rng.random() < 0.5:
        lines.append("Transfer-Encoding: chunked")
        content = _in_chunks(body, rng)
    elif body or rng.random() < 0.2:
        lines.append(f"Content-Length: {len(body)}")
    if rng.random() < 0.05:
        lines[0] = "\r\n" + lines[0]
    head = "\r\n".join([*lines, "", ""]).encode()
    return head + content, Answer(200, (method, path, body.hex()), closes)


def _in_chunks(body: bytes, rng: random.Random) -> bytes:
    parts, left = [], body
    while left:
        size = rng.randint(1, len(left))
        extension = rng.choice((b"", b"", b";name=value"))
        parts.append(b"%x%b\r\n%b\r\n" % (size, extension, left[:size]))
        left = left[size:]
    return b"".join([*parts, b"0\r\n", rng.choice((b"", b"", b"X-Sum: 1\r\n")), b"\r\n"])


def _packets(content: bytes, rng: random.Random) -> Iterator[bytes]:
    most = rng.choice((1 << 20, 1 << 20, 50, 2000))
    while content:
        size = rng.randint(1, min(most, len(content)))
        yield content[:size]
        content = content[size:]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that tells which request it was given; some answers come late, some in pieces."""
    scope["state"][CLAIM].end()
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    path: str = scope["path"]
    if path.startswith("/slow"):
        for _ in range(5):
            await asyncio.sleep(0)
    content = json.dumps([scope["method"], path, body.hex()]).encode()
    in_pieces = path.startswith("/pieces")
    headers = [] if in_pieces else [(b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    pieces = [content[:5], content[5:]] if in_pieces else [content]
    for piece in pieces:
        await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": piece, "more_body": piece is not pieces[-1]})


class Wire(asyncio.Transport):
    """A transport in memory: keeps what was written, and ends its connection in the next turn of the loop."""

    def __init__(self, protocol: HttpProtocol) -> None:
        super().__init__()
        self.written = bytearray()
        self.reading = True
        self.ended = False  # whether the other side was told that no more comes
        self.closing = False
        self._protocol = protocol

    def write(self, data: Any) -> None:
        assert not self.ended
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closing:
            self.closing = self.ended = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    async def until_read(self) -> None:
        """Waits while nothing is read."""
        while not self.reading and not self.closing:  # noqa: ASYNC110 - a turn of the loop is what is waited for
            await asyncio.sleep(0)

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return NO_TCP if name == "socket" else default


@cache
def _config() -> Config:
    config = Config(echo)
    config.load()
    return config


async def answers_to(stream: Stream, connections: Connections) -> list[Answer]:
    """What a connection answers to a stream."""
    protocol = HttpProtocol(_config(), connections, {})
    wire = Wire(protocol)
    protocol.connection_made(wire)
    for packet in stream.packets:
        await wire.until_read()
        if wire.closing:
            break
        protocol.data_received(packet)
        if len(packet) % 2:
            await asyncio.sleep(0)
    if stream.half_closes:
        await wire.until_read()
        if not wire.closing and not protocol.eof_received():
            wire.close()
    quiet_turns, seen = 0, -1
    while quiet_turns < 12:
        await asyncio.sleep(0)
        quiet_turns = quiet_turns + 1 if len(wire.written) == seen else 0
        seen = len(wire.written)
    answers = list(_answers(bytes(wire.written), [answer.echo for answer in stream.answers]))
    assert wire.ended == (stream.half_closes or any(answer.ends for answer in answers))
    wire.close()
    await asyncio.sleep(0)
    return answers


def _answers(content: bytes, requests: Sequence[tuple[str, str, str] | None]) -> Iterator[Answer]:
    """Reads answers as a client does, which knows whether it has asked for a body."""
    waiting = list(requests)
    while content:
        head = ANSWER_HEAD.match(content)
        assert head, content
        content = content[head.end() :]
        status = int(head[1])
        if status == 100:
            continue
        request = waiting.pop(0)
        headers = dict(line.split(b": ", 1) for line in head[2].splitlines())
        body = b""
        if request is not None and request[0] == "HEAD":
            pass
        elif headers.get(b"transfer-encoding") == b"chunked":
            while (size := int(content[: content.index(b"\r\n")], 16)) > 0:
                start = content.index(b"\r\n") + 2
                body += content[start : start + size]
                content = content[start + size + 2 :]
            content = content[content.index(b"\r\n\r\n") + 4 :]
        else:
            length = int(headers.get(b"content-length", len(content)))
            body, content = content[:length], content[length:]
        ends = headers.get(b"connection") == b"close"
        told = tuple(json.loads(body)) if body and status == 200 else None
        if request is not None and request[0] == "HEAD" and status == 200:
            told = request
        yield Answer(status, told, ends)  # type: ignore[arg-type]  # three strings, as the application writes
