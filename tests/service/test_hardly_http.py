"""What is hardly HTTP is answered in the one shape, too."""

import contextlib
import json
import socket

import httpx
import pytest

from tercet.service.wire.heads import MAX_HEAD_BYTES


@pytest.mark.parametrize(
    "sent",
    [
        b"BREW /search HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[::bad/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS",
        b"\r\n\r\nnot http at all\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"X-A: b\r\n" * 500 + b"\r\n",
    ],
)
def test_what_is_hardly_http_is_answered_in_the_one_shape(server: str, sent: bytes) -> None:
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        while b"\r\n\r\n" not in received or len(received.split(b"\r\n\r\n", 1)[1]) < 10:
            part = connection.recv(65536)
            if not part:
                break
            received += part
    head, body = received.split(b"\r\n\r\n", 1)
    status = int(head.split(b" ")[1])
    assert b"content-type: application/json" in head.lower()
    if status != 200:
        assert status < 500
        assert set(json.loads(body)["error"]) == {"type", "message", "param", "code"}


def answered(server: str, sent: bytes, packet_bytes: int = 1 << 20) -> bytes:
    """All that the server sends until it closes the connection."""
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), packet_bytes):
            connection.sendall(sent[start : start + packet_bytes])
        received = b""
        while part := connection.recv(65536):
            received += part
    return received


def test_even_what_is_no_http_has_a_request_id(server: str) -> None:
    head = answered(server, b"hello\r\n\r\n").split(b"\r\n\r\n", 1)[0]
    assert b"x-request-id: " in head


@pytest.mark.parametrize("head", [b"GET /", b"GET / HTTP/1.1\r\nX-A: "])
def test_a_head_without_end_is_refused(server: str, head: bytes) -> None:
    received = answered(server, head.ljust(MAX_HEAD_BYTES + 1, b"a"))
    assert received.startswith(b"HTTP/1.1 400 ")
    error = json.loads(received.split(b"\r\n\r\n", 1)[1])["error"]
    assert error["code"] == "invalid_http"
    assert "headers exceed 65536 bytes" in error["message"]


@pytest.mark.parametrize("packet_bytes", [1 << 20, 40_000])
@pytest.mark.parametrize(("value_bytes", "status"), [(MAX_HEAD_BYTES - 100, 200), (MAX_HEAD_BYTES, 400)])
def test_the_limit_of_heads_is_that_of_whole_ones_too(
    server: str, value_bytes: int, status: int, packet_bytes: int
) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-A: " + b"a" * value_bytes
    received = answered(server, head + b"\r\n\r\n", packet_bytes)
    assert received.startswith(b"HTTP/1.1 %d " % status)
    assert (b"headers exceed 65536 bytes" in received) == (status == 400)


def test_trailers_without_end_are_refused(server: str) -> None:
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    received = b""
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head)
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                connection.sendall(b"X-A: b\r\n" * 1000)
            while part := connection.recv(65536):
                received += part
    assert len(received) < 2000  # it ended, long before all was taken


def test_many_large_requests_on_one_connection_are_no_endless_head(server: str) -> None:
    body = json.dumps({"query": "tea", "inputs": ["tea " * 40_000]}).encode()
    request = (
        b"POST /rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    )
    request += f"{len(body)}\r\n\r\n".encode() + body
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    received = answered(server, request * 3 + last)
    assert received.count(b"HTTP/1.1 200 OK") == 4


@pytest.mark.parametrize("packet_bytes", [1, 7, 10_000])
def test_an_offer_of_another_protocol_is_declined(server: str, packet_bytes: int) -> None:
    body = b'{"inputs": "tea", "outputs": ["sparse"]}'
    head = (
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nContent-Type: application/json\r\n"
        b"Content-Length: 40\r\n\r\n"
    )
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert len(body) == 40
    received = answered(server, head + body + last, packet_bytes)
    assert received.count(b"HTTP/1.1 200 OK") == 2


def test_a_bad_request_leaves_the_answer_to_the_one_before_it(server: str) -> None:
    received = answered(server, b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\nBAD\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 200 OK")


def test_head_answers_like_get_without_a_body(server: str) -> None:
    with httpx.Client(base_url=server) as client:
        for path in ("/health", "/ready", "/collections", "/collections/none"):
            head, got = client.head(path), client.get(path)
            assert head.status_code == got.status_code
            assert head.content == b""
            assert head.headers["content-length"] == got.headers["content-length"]
