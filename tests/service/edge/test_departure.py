"""Clients that leave, and servers that end."""

import json
import threading
import time
from typing import Any

import httpx
import pytest

from tercet.models.representations import Representations
from tests.conftest import HeldEncoder


class NotedEncoder(HeldEncoder):
    """Tells when a batch has reached it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def encode_tokens(self, *given: Any) -> Representations:
        self.reached.set()
        return super().encode_tokens(*given)


@pytest.mark.parametrize("blanks", [0, 1 << 20])
def test_texts_of_a_client_that_left_are_not_encoded(make_server: Any, connect: Any, blanks: int) -> None:
    body = json.dumps({"inputs": ["tea"] * 5}).encode() + b" " * blanks
    head = ("POST /embed HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}")
    encoder = NotedEncoder()
    with make_server(encoder=encoder) as url, httpx.Client(base_url=url) as other:

        def wait_until_queued(tokens: int) -> None:
            while f"tercet_queue_tokens {tokens}.0" not in other.get("/metrics").text:
                time.sleep(0.01)

        encoder.gate.clear()
        for tokens in (15, 30, 30):
            client = connect(url)
            client.send(*head, body=body)
            wait_until_queued(tokens)
            assert encoder.reached.wait(20)  # by the first one's texts, which stay; no others reach it
            client.socket.close()
            wait_until_queued(15)
        encoder.gate.set()
        assert other.post("/embed", json={"inputs": "tea"}).status_code == 200
    assert encoder.texts.count(5) == 1


def test_a_server_that_ends_finishes_what_it_accepted(make_server: Any, held: Any) -> None:
    answers = []
    with make_server(encoder=held) as url:
        held.gate.clear()
        clients = [
            threading.Thread(
                target=lambda: answers.append(httpx.post(f"{url}/embed", json={"inputs": "tea"}))
            )
            for _ in range(4)
        ]
        for client in clients:
            client.start()
        while "tercet_queue_tokens 12.0" not in httpx.get(f"{url}/metrics").text:
            time.sleep(0.01)
        threading.Timer(0.3, held.gate.set).start()
    for client in clients:
        client.join(60)
    assert [answer.status_code for answer in answers] == [200] * 4


@pytest.mark.slow
def test_what_a_server_that_ends_cannot_finish_is_503_in_our_shape(
    make_app: Any, serve: Any, held: Any, caplog: Any
) -> None:
    """A search is not ready; a write may have been made, which its client learns."""
    app = make_app(encoder=held, shutdown_seconds=1)
    answers: dict[str, httpx.Response] = {}
    document = {"documents": [{"id": "late", "text": "hot water"}], "idempotency_key": "once"}
    with serve(app, shutdown_seconds=1) as url:
        held.gate.clear()

        def ask(method: str, path: str, body: Any) -> None:
            answers[path] = httpx.request(method, f"{url}{path}", json=body, timeout=30)

        asked = [
            threading.Thread(target=ask, args=arguments)
            for arguments in [
                ("POST", "/search", {"collection": "demo", "query": "tea"}),
                ("PUT", "/collections/demo/documents", document),
            ]
        ]
        for each in asked:
            each.start()
        while "tercet_queue_tokens 7.0" not in httpx.get(f"{url}/metrics").text:
            time.sleep(0.01)

        def release() -> None:
            """Lets the encoder go on, for the server to end, once nobody waits for it."""
            for each in asked:
                each.join(15)
            held.gate.set()

        threading.Thread(target=release).start()
    for each in asked:
        each.join(30)
    errors = {path: (answer.status_code, answer.json()["error"]["code"]) for path, answer in answers.items()}
    assert errors == {"/search": (503, "not_ready"), "/collections/demo/documents": (503, "write_unknown")}
    assert all(answer.headers["x-request-id"] for answer in answers.values())
    assert not [each for each in caplog.records if each.exc_info]
