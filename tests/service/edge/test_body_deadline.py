"""Bodies that do not arrive."""

import time
from typing import Any

import pytest

HEAD = ("POST /embed HTTP/1.1", "Content-Type: application/json")


@pytest.mark.slow
def test_a_body_that_stops_or_drips_is_400_and_its_connection_ends(make_server: Any, connect: Any) -> None:
    with make_server(body_timeout_seconds=0.5) as url:
        stopped, dripped, chunked = (connect(url) for _ in range(3))
        stopped.send(*HEAD, "Content-Length: 100", body=b'{"inp')
        dripped.send(*HEAD, "Content-Length: 100")
        chunked.send(*HEAD, "Transfer-Encoding: chunked", body=b"1\r\n{\r\n")
        for _ in range(8):
            time.sleep(0.1)
            dripped.socket.sendall(b" ")
        for client in (stopped, dripped, chunked):
            answer = client.answer()
            assert (answer.status, answer.code) == (400, "incomplete_body")
            assert answer.headers["connection"] == "close"


def test_a_client_that_leaves_amid_its_body_is_no_failure(
    make_server: Any, connect: Any, caplog: Any
) -> None:
    with make_server() as url:
        for _ in range(3):
            client = connect(url)
            client.send(*HEAD, "Content-Length: 100", body=b'{"inp')
            client.socket.close()
        client = connect(url)
        client.send("GET /metrics HTTP/1.1")
        while 'route="/embed",status="499"} 3.0' not in client.answer().body.decode():
            client.send("GET /metrics HTTP/1.1")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
