"""Clients that say that they send no more, and wait for the answer."""

import json
import socket
import time
from typing import Any

import httpx

TEA = json.dumps({"inputs": "tea", "outputs": ["dense"]}).encode()
EMBED = ("POST /embed HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(TEA)}")


def rest(client: Any) -> bytes:
    """All that still comes."""
    parts = []
    while part := client.socket.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def test_a_client_that_ends_its_half_gets_every_answer(make_server: Any, connect: Any, held: Any) -> None:
    with make_server(encoder=held) as url, httpx.Client(base_url=url) as other:
        held.gate.clear()
        client = connect(url)
        client.send(*EMBED, body=TEA)
        client.send("GET /health HTTP/1.1")
        while "tercet_queue_tokens 3.0" not in other.get("/metrics").text:
            time.sleep(0.01)
        client.socket.shutdown(socket.SHUT_WR)
        time.sleep(0.3)  # longer than it takes to look whether the client has left
        assert "tercet_queue_tokens 3.0" in other.get("/metrics").text
        held.gate.set()
        received = rest(client)
    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert received.count(b"HTTP/1.1 200 OK") == 2


def test_half_a_request_gets_none(server: str, connect: Any) -> None:
    body = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nab"
    for content in (b"GET /health HTTP/1.1\r\nHost: loc", body):
        client = connect(server)
        client.socket.sendall(content)
        client.socket.shutdown(socket.SHUT_WR)
        assert rest(client) == b""


def test_another_version_is_refused(server: str, connect: Any) -> None:
    client = connect(server)
    client.socket.sendall(b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n")
    answer = client.answer()
    assert (answer.status, answer.code) == (505, "http_version_not_supported")
    assert b"this is HTTP/2.0; send HTTP/1.1" in answer.body
    assert client.is_closed()
