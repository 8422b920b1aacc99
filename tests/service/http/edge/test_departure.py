"""Clients that leave, and servers that end."""

import threading
import time
from typing import Any

import httpx
import pytest


def test_texts_of_a_client_that_left_are_not_encoded(make_server: Any, held: Any) -> None:
    with make_server(encoder=held) as url, httpx.Client(base_url=url) as client:
        held.gate.clear()
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.post("/embed", json={"inputs": ["tea"] * 5}, timeout=0.3)
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
