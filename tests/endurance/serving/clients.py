"""What good clients notice of a thousand idle ones, slow readers, and heads and bodies that drip."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks.serving.server import Server, build, serving

SHARE = 0.9  # of the rate without hostile clients
GOOD_CLIENTS = 4
DOCUMENTS = 60
DOCUMENT_LETTERS = 100_000  # so that an answer is larger than what the kernel takes ahead of a reader
TIMEOUT_SECONDS = 30
LINGER_SECONDS = 5  # how long an answered connection may go on with its body
DRIP_SECONDS = 1.0
FULL = {"idle": 1000, "readers": 200, "heads": 200, "bodies": 200}
QUICK = {"idle": 200, "readers": 20, "heads": 50, "bodies": 50}
LIGHT = json.dumps({"inputs": "how is green tea brewed?", "outputs": ["dense"]})
LARGE = json.dumps({"collection": "long", "query": "a long story", "top_k": DOCUMENTS})
HEAD = (
    "POST {path} HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures of good clients without and with hostile ones, and the bars that were missed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    counts, seconds = (QUICK, 2.0) if quick else (FULL, 8.0)
    timeouts = {f"{what}_timeout_seconds": TIMEOUT_SECONDS for what in ("head", "idle", "body", "write")}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        text = "a long story of tea and trains and bread " * (DOCUMENT_LETTERS // 40)
        build(data, "long", ({"id": str(number), "text": text} for number in range(DOCUMENTS)))
        with serving(data, **timeouts) as server:
            good_rate(server, seconds / 2)  # warms both sides
            alone, cpu_alone = good_rate(server, seconds)
            with Hostile(server, counts) as hostile:
                held = connections(server)
                beside, cpu_beside = good_rate(server, seconds)
                still_held = connections(server)
                ended = hostile.ended_after()
            again, _ = good_rate(server, seconds)
    share = beside / ((alone + again) / 2)
    bound = TIMEOUT_SECONDS * 2 + LINGER_SECONDS
    print(f"{'clients':28} {'requests/s':>10}\n{'good alone':28} {alone:10.0f}")
    print(f"{f'good beside {held} hostile':28} {beside:10.0f}\n{'good alone again':28} {again:10.0f}")
    print(f"share {share:.2f}; connections held {held}, then {still_held}; all ended after {ended:.1f} s")
    missed = []
    if share < SHARE:
        missed.append(f"good clients got {share:.2f} of their rate, less than {SHARE}")
    if still_held < sum(counts.values()) * 0.95:
        missed.append(f"only {still_held} hostile connections were there while it was measured")
    if ended > bound:
        missed.append(f"hostile connections were still open after {bound} s")
    figures = {
        "hostile": counts,
        "timeout_seconds": TIMEOUT_SECONDS,
        "rate_alone": [round(alone, 1), round(again, 1)],
        "rate_beside_hostile": round(beside, 1),
        "share": round(share, 3),
        "cpu_ms_per_request": {"alone": round(cpu_alone, 2), "beside": round(cpu_beside, 2)},
        "connections_held": [held, still_held],
        "all_ended_after_seconds": round(ended, 1),
    }
    return figures, missed


def good_rate(server: Server, seconds: float) -> tuple[float, float]:
    """Requests a second that a few clients get answered, each one at a time, and the CPU-ms of each."""
    cpu_seconds = server.cpu_seconds
    end = time.monotonic() + seconds
    counts = [0] * GOOD_CLIENTS

    def ask(client: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
        while time.monotonic() < end:
            connection.request("POST", "/embed", LIGHT, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            counts[client] += answer.status == http.client.OK
        connection.close()

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(GOOD_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds, 1000 * (server.cpu_seconds - cpu_seconds) / max(1, sum(counts))


def connections(server: Server) -> int:
    """Connections that the server's process holds."""
    return sum(each.status != psutil.CONN_LISTEN for each in server.process.net_connections("tcp"))


class Hostile:
    """Clients that hold their connections as long as the server lets them; they never come again."""

    def __init__(self, server: Server, counts: dict[str, int]) -> None:
        self._server = server
        self._counts = counts
        self._sockets: list[socket.socket] = []
        self._stop = threading.Event()
        self._dripping = threading.Thread(target=self._drip)
        self._drips: list[socket.socket] = []
        self._started = 0.0

    def __enter__(self) -> Hostile:
        for _ in range(self._counts["readers"]):
            self._sockets.append(self._slow_reader())
        self._started = time.monotonic()
        for kind, sent in (
            ("bodies", HEAD.format(path="/embed", length=100_000)),
            ("heads", "GET /health HTTP/1.1\r\n"),
        ):
            for _ in range(self._counts[kind]):
                self._drips.append(self._connect(sent.encode()))
        for _ in range(self._counts["idle"]):
            self._sockets.append(self._connect(b""))
        self._dripping.start()
        while (
            connections(self._server) < sum(self._counts.values()) and self._age_seconds < TIMEOUT_SECONDS / 4
        ):
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._dripping.join()
        for connection in (*self._sockets, *self._drips):
            connection.close()

    def ended_after(self) -> float:
        """Seconds until the server has ended all connections, or the longest that is waited."""
        longest = TIMEOUT_SECONDS * 3 + LINGER_SECONDS
        while connections(self._server) and self._age_seconds < longest:
            time.sleep(0.5)
        return self._age_seconds

    @property
    def _age_seconds(self) -> float:
        return time.monotonic() - self._started

    def _slow_reader(self) -> socket.socket:
        """Asks for a large answer, again where it is refused, and reads its first line alone."""
        request = HEAD.format(path="/search", length=len(LARGE)) + LARGE
        for _ in range(100):
            connection = self._connect(request.encode(), receive_bytes=4096)
            if connection.recv(12) == b"HTTP/1.1 200":
                return connection
            connection.close()
            time.sleep(0.1)
        raise RuntimeError("the server refuses its large answers")

    def _connect(self, sent: bytes, receive_bytes: int | None = None) -> socket.socket:
        address = urlsplit(self._server.url)
        connection = socket.socket()
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(30)
        connection.connect((address.hostname, address.port))
        connection.sendall(sent)
        return connection

    def _drip(self) -> None:
        """Sends a byte on each dripping connection, again and again."""
        open_ones = list(self._drips)
        while not self._stop.wait(DRIP_SECONDS):
            open_ones = [connection for connection in open_ones if _sent(connection)]


def _sent(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"a")  # part of a header, or of a body
    except OSError:
        return False
    return True
