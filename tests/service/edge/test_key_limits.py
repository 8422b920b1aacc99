"""What one key may take of a server."""

import re
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tercet.service.edge import allowance
from tercet.service.edge.ledger import ClientLimits, Ledger
from tercet.service.exceptions import OverloadedError

WRITER = {"Authorization": "Bearer write-key"}
READER = {"Authorization": "Bearer read-key"}
KEYS = {"api_keys": "write-key", "read_keys": "read-key"}
TEA = {"inputs": "tea", "outputs": ["dense"]}


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "overloaded"
    assert int(answer.headers["Retry-After"]) >= 1
    return str(answer.json()["error"]["message"])


async def test_requests_a_second_are_counted_for_each_key(make_client: Any) -> None:
    async with make_client(**KEYS, key_requests_per_second=0.01) as client:
        assert (await client.post("/embed", json=TEA, headers=READER)).status_code == 200
        told = refusal(await client.post("/embed", json=TEA, headers=READER))
        # A hundred seconds, less those that this test has taken.
        waits = r"limit is 0\.01 \(setting key_requests_per_second\): try again in (100|\d\d) s"
        assert re.search(waits, told), told
        assert (await client.post("/embed", json=TEA, headers=WRITER)).status_code == 200
        assert (await client.get("/health", headers=READER)).status_code == 200


def test_of_a_pause_no_more_than_a_second_is_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(allowance, "time", SimpleNamespace(monotonic=lambda: now[0]))
    book = Ledger(ClientLimits(10, 1 << 20, key_requests_per_second=2))
    for seconds in (0.0, 3600.0):
        now[0] += seconds
        for _ in range(2):
            book.begin("key", is_key=True).end()
        with pytest.raises(OverloadedError, match="limit is 2"):
            book.begin("key", is_key=True)


async def test_bytes_a_second_are_paid_back_by_the_requests_after(make_client: Any) -> None:
    async with make_client(**KEYS, key_bytes_per_second=10) as client:
        padded = {**TEA, "inputs": ["tea"] * 700}
        assert (await client.post("/embed", json=padded, headers=READER)).status_code == 200
        told = refusal(await client.post("/embed", json=TEA, headers=READER))
        assert "limit is 10 (setting key_bytes_per_second)" in told
        assert (await client.post("/embed", json=TEA, headers=WRITER)).status_code == 200


def test_requests_in_work_are_counted_until_they_are_answered(
    make_server: Any, connect: Any, held: Any
) -> None:
    head = ("POST /embed HTTP/1.1", "Content-Type: application/json", "Authorization: Bearer read-key")
    body = b'{"inputs": "tea", "outputs": ["dense"]}'
    with make_server(**KEYS, encoder=held, max_key_requests=1) as url:
        held.gate.clear()
        first, second = connect(url), connect(url)
        first.send(*head, f"Content-Length: {len(body)}", body=body)
        with httpx.Client(base_url=url, headers=WRITER) as other:
            while "tercet_queue_tokens 3.0" not in other.get("/metrics").text:
                pass
            second.send(*head, f"Content-Length: {len(body)}", body=body)
            answer = second.answer()
            assert (answer.status, answer.code) == (429, "overloaded")
            assert b"limit is 1 (setting max_key_requests)" in answer.body
            held.gate.set()
            assert first.answer().status == 200
            first.send(*head, f"Content-Length: {len(body)}", body=body)
            assert first.answer().status == 200
            assert 'tercet_refused_total{reason="key"} 1.0' in other.get("/metrics").text
