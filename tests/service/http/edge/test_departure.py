"""Clients that leave, and servers that end."""

import json
import threading
import time
from typing import Any

import httpx
import pytest

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("blanks", [0, 1 << 20])
def test_texts_of_a_client_that_left_are_not_encoded(make_server: Any, held: Any, blanks: int) -> None:
    body = json.dumps({"inputs": ["tea"] * 5}).encode() + b" " * blanks
    with make_server(encoder=held) as url, httpx.Client(base_url=url) as client:
        held.gate.clear()
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.post("/embed", content=body, headers=JSON, timeout=0.3)
        # The first one's batch is in the encoder already; those of the others never reach it.
        while "tercet_queue_tokens 15.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        held.gate.set()
        assert client.post("/embed", json={"inputs": "tea"}).status_code == 200
    assert held.texts.count(5) == 1


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
        client.join(10)
    assert [answer.status_code for answer in answers] == [200] * 4


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
        threading.Timer(3, held.gate.set).start()
    for each in asked:
        each.join(30)
    errors = {path: (answer.status_code, answer.json()["error"]["code"]) for path, answer in answers.items()}
    assert errors == {"/search": (503, "not_ready"), "/collections/demo/documents": (503, "write_unknown")}
    assert all(answer.headers["x-request-id"] for answer in answers.values())
    assert not [each for each in caplog.records if each.exc_info]
