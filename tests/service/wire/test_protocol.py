"""Clients that send or take nothing, or too slowly, and what is no HTTP."""

import json
import socket
import time
from typing import Any

import httpx
import pytest

from tercet.service.wire.protocol import HttpProtocol

pytestmark = pytest.mark.slow

EMBED = ("POST /embed HTTP/1.1", "Content-Type: application/json")
TEA = json.dumps({"inputs": "tea", "outputs": ["dense"]}).encode()
LARGE = json.dumps({"inputs": ["tea " * 28] * 1000, "outputs": ["colbert"]}).encode()
LARGE_BYTES = 1_000_000  # at least, of the answer to that


@pytest.fixture
def small_buffers(monkeypatch: Any) -> None:
    """The kernel takes little of an answer ahead of its client."""
    connection_made = HttpProtocol.connection_made

    def made(protocol: HttpProtocol, transport: Any) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        connection_made(protocol, transport)

    monkeypatch.setattr(HttpProtocol, "connection_made", made)


def drip(client: Any, content: bytes, seconds: float = 0.1) -> bool:
    """Whether a server takes these bytes, sent one by one."""
    for byte in content:
        time.sleep(seconds)
        try:
            client.socket.sendall(bytes([byte]))
        except ConnectionError:
            return False
    return True


def test_heads_that_do_not_arrive_in_time_end_their_connections(make_server: Any, connect: Any) -> None:
    with make_server(head_timeout_seconds=1) as url:
        second = connect(url)
        second.send("GET /health HTTP/1.1")
        assert second.answer().status == 200
        silent, half, dripped = (connect(url) for _ in range(3))
        half.socket.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        assert not drip(dripped, b"GET /health HTTP/1.1\r\n" * 10)
        assert not drip(second, b"GET /health HTTP/1.1\r\n" * 10)
        for client in (half, dripped, second):
            answer = client.answer()
            assert (answer.status, answer.code) == (400, "incomplete_head")
            assert answer.headers["x-request-id"]
            assert client.is_closed()
        assert silent.is_closed()


def test_a_connection_without_requests_ends_after_a_while(make_server: Any, connect: Any) -> None:
    with make_server(head_timeout_seconds=0.5, idle_timeout_seconds=3) as url:
        client = connect(url)
        for _ in range(2):
            client.send("GET /health HTTP/1.1")
            assert client.answer().status == 200
            time.sleep(0.7)  # longer than a head may take
        assert client.is_closed()


def test_idle_connections_make_room_for_new_ones_and_work_goes_on(
    make_app: Any, serve: Any, connect: Any, held: Any
) -> None:
    app = make_app(encoder=held, max_connections=4)
    with serve(app) as url:
        worker, old = connect(url), connect(url)
        held.gate.clear()
        worker.send(*EMBED, f"Content-Length: {len(TEA)}", body=TEA)
        while app.state.runtime.pending_tokens() < 3:  # until then it is as idle as others
            time.sleep(0.01)
        dripped = connect(url)
        dripped.send(*EMBED, "Content-Length: 1000", body=TEA)
        idle = [connect(url) for _ in range(20)]
        assert httpx.get(f"{url}/health").status_code == 200
        for client in (old, dripped, *idle[:-4]):
            assert client.is_closed()
        held.gate.set()
        assert worker.answer().status == 200


def test_where_all_connections_are_in_work_a_new_one_is_429(
    make_app: Any, serve: Any, connect: Any, held: Any
) -> None:
    app = make_app(encoder=held, max_connections=2)
    with serve(app) as url:
        held.gate.clear()
        workers = [connect(url) for _ in range(2)]
        for client in workers:
            client.send(*EMBED, f"Content-Length: {len(TEA)}", body=TEA)
        while app.state.runtime.pending_tokens() < 6:
            time.sleep(0.01)
        refused = connect(url)
        answer = refused.answer()
        assert (answer.status, answer.code) == (429, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert refused.is_closed()
        held.gate.set()
        assert [client.answer().status for client in workers] == [200, 200]


@pytest.mark.usefixtures("small_buffers")
@pytest.mark.parametrize("end", [(), ("Connection: close",)])
def test_an_answer_that_nobody_takes_ends_its_connection(
    make_server: Any, connect: Any, end: tuple[str, ...]
) -> None:
    with make_server(write_timeout_seconds=0.5, max_request_tokens=40_000, max_wait_seconds=600) as url:
        clients = [connect(url, receive_bytes=4096) for _ in range(3)]
        for client in clients:
            client.send(*EMBED, *end, f"Content-Length: {len(LARGE)}", body=LARGE)
        with httpx.Client() as others:
            while 'route="/embed",status="200"} 3.0' not in others.get(f"{url}/metrics").text:
                time.sleep(0.05)
        for client in clients:
            assert len(received(client)) < LARGE_BYTES


@pytest.mark.usefixtures("small_buffers")
def test_a_slow_client_that_takes_its_answer_gets_it_whole(make_server: Any, connect: Any) -> None:
    with make_server(write_timeout_seconds=1.5, max_request_tokens=40_000) as url:
        client = connect(url, receive_bytes=32_768)
        client.send(*EMBED, "Connection: close", f"Content-Length: {len(LARGE)}", body=LARGE)
        started = time.monotonic()
        assert len(received(client, pause_seconds=0.08)) > LARGE_BYTES
        assert time.monotonic() - started > 1.5


@pytest.mark.parametrize(
    ("path", "status", "fields"),
    [("/embed", 400, {"error"}), ("/tei/embed", 422, {"error", "error_type"})],
)
def test_a_broken_body_is_answered_in_the_shape_of_its_path(
    make_server: Any, connect: Any, path: str, status: int, fields: set[str]
) -> None:
    with make_server() as url:
        client = connect(url)
        head = (f"POST {path} HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked")
        client.send(*head, body=b"ffffffffffffffffffff\r\n")
        answer = client.answer()
        assert (answer.status, set(json.loads(answer.body))) == (status, fields)
        assert client.is_closed()


@pytest.mark.usefixtures("small_buffers")
def test_clients_that_send_or_read_slowly_are_no_work(make_server: Any, connect: Any) -> None:
    """Else a dozen of them would have all others turned away at the wire."""
    with make_server(max_request_tokens=40_000, max_wait_seconds=600) as url:
        sending = connect(url)
        sending.send(*EMBED, "Content-Length: 100")
        clients = [connect(url, receive_bytes=4096) for _ in range(2)]
        for client in clients:
            client.send(*EMBED, f"Content-Length: {len(LARGE)}", body=LARGE)
        for client in clients:
            assert client.socket.recv(12) == b"HTTP/1.1 200"
        metrics = httpx.get(f"{url}/metrics").text
        assert "tercet_requests_in_progress 4.0" in metrics
        assert "tercet_requests_let_in 1.0" in metrics  # the one that asks
        for client in (sending, *clients):
            client.socket.close()


def received(client: Any, pause_seconds: float = 0.0) -> bytes:
    """All that a client gets, in parts with pauses."""
    parts = []
    while True:
        time.sleep(pause_seconds)
        try:
            part = client.socket.recv(65536)
        except ConnectionError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


@pytest.mark.usefixtures("small_buffers")
def test_requests_whose_answers_nobody_takes_end_their_connection(make_server: Any, connect: Any) -> None:
    with make_server(write_timeout_seconds=0.5) as url:
        client = connect(url, receive_bytes=4096)
        # Their heads are long, so that there are not thousands of them to be parsed in each packet.
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"x" * 8000 + b"\r\n\r\n"
        with pytest.raises(ConnectionError):
            client.socket.sendall(request * 10_000)


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: -1",),
        ("Content-Length: five",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: xchunked",),
    ],
)
def test_heads_that_two_servers_might_read_differently_are_refused(
    server: str, connect: Any, headers: tuple[str, ...]
) -> None:
    client = connect(server)
    smuggled = b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client.send("POST /embed HTTP/1.1", *headers, body=b"0\r\n\r\n" + smuggled)
    answer = client.answer()
    assert (answer.status, answer.code) == (400, "invalid_http")
    assert answer.headers["connection"] == "close"
    assert client.is_closed()  # without an answer to what was hidden in the body
