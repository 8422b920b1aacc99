"""Answers that come before the request's body has arrived."""

import time
from typing import Any

import pytest

from tercet.service.wire import protocol

REFUSED = {"/embed": 401, "/nowhere": 401, "/health": 405}


@pytest.fixture
def short(monkeypatch: Any) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.5)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("path", REFUSED)
def test_a_dripped_body_does_not_keep_a_connection_that_was_answered(
    make_server: Any, connect: Any, path: str
) -> None:
    with make_server(api_keys="key") as url:
        client = connect(url)
        client.send(f"POST {path} HTTP/1.1", "Content-Length: 1000000", body=b" ")
        answer = client.answer()
        assert answer.status == REFUSED[path]
        assert answer.headers["connection"] == "close"
        ended = None
        for _ in range(100):
            time.sleep(0.1)
            try:
                client.socket.sendall(b" ")
            except ConnectionError as error:
                ended = error
                break
        assert ended is not None


def test_a_client_that_sends_all_before_it_reads_sees_its_answer(
    monkeypatch: Any, make_server: Any, connect: Any
) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 60)  # it has to take all of it in that time
    size = 20 << 20  # more than the kernel's buffers hold
    with make_server(max_body_bytes=1000) as url:
        client = connect(url)
        head = ("POST /embed HTTP/1.1", "Content-Type: application/json", f"Content-Length: {size}")
        client.send(*head, body=b" " * size)
        answer = client.answer()
        assert (answer.status, answer.code) == (413, "request_too_large")
        assert client.is_closed()


def test_more_than_is_reasonable_is_not_taken(monkeypatch: Any, make_server: Any, connect: Any) -> None:
    monkeypatch.setattr(protocol, "LINGER_BYTES", 1 << 20)
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 60)
    with make_server(api_keys="key") as url:
        client = connect(url)
        client.send("POST /embed HTTP/1.1", f"Content-Length: {1 << 40}")
        assert client.answer().status == 401
        with pytest.raises(ConnectionError):
            client.socket.sendall(b" " * (100 << 20))


def test_a_body_that_has_arrived_leaves_the_connection_open(make_server: Any, connect: Any) -> None:
    with make_server(api_keys="key") as url:
        client = connect(url)
        for _ in range(3):
            client.send("POST /embed HTTP/1.1", "Content-Length: 5", body=b"bytes")
            answer = client.answer()
            assert answer.status == 401
            assert "connection" not in answer.headers


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_who_asks_before_sending_is_not_asked_for_a_refused_body(make_server: Any, connect: Any) -> None:
    with make_server(api_keys="key") as url:
        client = connect(url)
        client.send("POST /embed HTTP/1.1", "Expect: 100-continue", "Content-Length: 1000")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (401, "close")
        assert client.is_closed()
