"""Raw connections to real servers, for clients that no library would be."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

SECONDS = 20.0  # no test waits longer for a server


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of an error, after checking its shape."""
        error = json.loads(self.body)["error"]
        assert set(error) == {"type", "message", "param", "code"}
        return str(error["code"])


class RawClient:
    """A TCP connection to a server, with the kernel's buffers or with small ones."""

    def __init__(self, url: str, receive_bytes: int | None = None) -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(SECONDS)
        self.socket.connect((host, int(port)))
        self._received = b""

    def send(self, *lines: str, body: bytes = b"") -> None:
        """Sends a head of these lines, with a Host, then a body."""
        first, *rest = lines
        head = "\r\n".join([first, "Host: localhost", *rest, "", ""])
        self.socket.sendall(head.encode("latin-1") + body)

    def answer(self) -> Answer:
        """The next answer."""
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers["content-length"])
        while len(self._received) < length:
            self._receive()
        body, self._received = self._received[:length], self._received[length:]
        return Answer(int(first.split(" ")[1]), headers, body)

    def is_closed(self) -> bool:
        """Waits for the server to close the connection; True, or the error of having waited too long."""
        with suppress(ConnectionError):
            assert self._received + self.socket.recv(1) == b""
        return True

    def _receive(self) -> None:
        part = self.socket.recv(1 << 16)
        assert part, f"closed after {self._received!r}"
        self._received += part


Connect = Callable[..., RawClient]
