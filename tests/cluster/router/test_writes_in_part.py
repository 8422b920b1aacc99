"""Writes of which some shards take their parts and others do not: told, repeated and completed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.service.exceptions import CallFailedError
from tercet.service.remote.http import HttpTransport
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tests.cluster.router.servers import (
    CLIENT,
    COLLECTION,
    DEMO,
    DOCUMENTS,
    Servers,
    count,
    error_of,
    ids_in,
    put,
)
from tests.conftest import TinyEncoder
from tests.service.polling import REST_SECONDS

pytestmark = pytest.mark.slow


def test_a_change_that_one_shard_refuses_and_no_other_has_documents_for_is_refused(servers: Servers) -> None:
    url, _ = servers.over(2)
    metadata = {"year": 2001}
    documents = [{"id": id, "text": "tea", "metadata": metadata} for id in ids_in(0, 2, 2)]
    assert CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents}).status_code == 200
    change = {"filter": {"exists": "year"}, "metadata": {"year": "old"}}
    assert error_of(CLIENT.post(f"{url}{DOCUMENTS}/update", json=change)) == (422, "invalid_document")
    put(url, ids_in(1, 2))
    assert error_of(CLIENT.post(f"{url}{DOCUMENTS}/update", json=change)) == (422, "invalid_document")
    kept = CLIENT.get(f"{url}{DOCUMENTS}/{documents[0]['id']}").json()
    assert kept["metadata"] == metadata
    first, other = ids_in(0, 2, 2)  # as keys, which the first shard is asked to note
    for key, year, said in ((first, "old", 422), (first, 2002, 200), (first, 2003, 409), (other, 2003, 200)):
        keyed = {**change, "metadata": {"year": year}, "idempotency_key": key}
        assert CLIENT.post(f"{url}{DOCUMENTS}/update", json=keyed).status_code == said


class Noisy(TinyEncoder):
    """Two passes over one text differ in the last bits."""

    def encode_tokens(
        self, batch: TokenBatch, outputs: tuple[Output, ...] = OUTPUTS, adapters: Any = None
    ) -> Representations:
        found = super().encode_tokens(batch, outputs, adapters)
        if found.dense is not None:
            found.dense[:] *= np.float32(1 + np.random.default_rng().integers(1, 99) * 1e-6)
        return found


def test_a_repeat_under_its_key_changes_nothing(servers: Servers) -> None:
    shards = [servers.start(f"shard{number}") for number in range(2)]
    url = servers.start("router", encoder=Noisy(), shards=",".join(shards))
    assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
    ids = [*ids_in(0, 2, 2), *ids_in(1, 2)]
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", "", {"documents": [{"id": id, "text": "green tea"} for id in ids]}),
        ("POST", "/update", {"ids": ids, "metadata": {"year": 3}}),
        ("POST", "/update", {"filter": {"eq": {"year": 3}}, "metadata": {"kind": "a"}, "merge": True}),
        ("PATCH", f"/{ids[0]}", {"metadata": {"year": 4}}),
        ("POST", "/delete", {"ids": ids[:2]}),
        ("POST", "/delete", {"filter": {"eq": {"kind": "a"}}}),
    ]
    for number, (method, path, body) in enumerate(requests):
        keyed = {**body, "idempotency_key": f"열쇠 {number}"}
        first, again = (CLIENT.request(method, f"{url}{DOCUMENTS}{path}", json=keyed) for _ in range(2))
        assert first.status_code == 200, first.text
        assert again.json() == first.json()
        other = {**keyed, "metadata": {"year": 9}} if "metadata" in body else keyed
        if "documents" in body:
            other = {**keyed, "documents": [{"id": id, "text": "black tea"} for id in ids]}
        if "ids" in body:
            other = {**other, "ids": body["ids"][::-1]}
        if other != keyed:
            refused = CLIENT.request(method, f"{url}{DOCUMENTS}{path}", json=other)
            assert error_of(refused) == (409, "idempotency_key_reused")
    assert count(url) == 0


@pytest.mark.parametrize("home", [0, 1], ids=["known by the first", "known by the second"])
def test_a_key_of_another_write_is_refused_before_any_shard_writes(servers: Servers, home: int) -> None:
    url, _ = servers.over(2)
    (key,) = ids_in(home, 2)
    (here,), there = ids_in(0, 2), ids_in(1, 2, 2)
    assert put(url, here, idempotency_key=key).status_code == 200
    others = [lambda: put(url, [here, *there], idempotency_key=key)]
    others.append(lambda: put(url, there, idempotency_key=key))
    for other in others:
        assert error_of(other()) == (409, "idempotency_key_reused")
    assert count(url) == 1
    assert put(url, here, idempotency_key=key).json()["upserted"] == 1

    raced = f"{key}-raced"
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda id: put(url, id, idempotency_key=raced), there))
    assert sorted(each.status_code for each in answers) == [200, 409]
    assert count(url) == 2


def test_a_lost_shard_is_named_and_a_repeat_completes_the_write(servers: Servers) -> None:
    url, shards = servers.over(3)
    ids = [id for shard in range(3) for id in ids_in(shard, 3, 2)]
    servers.stop("router-1")
    (key,) = ids_in(0, 3)
    half = put(url, ids, idempotency_key=key)
    assert error_of(half) == (503, "write_incomplete")
    message = half.json()["error"]["message"]
    assert "of 4 documents at position 1.0.1" in message
    assert f"{shards[0]}, {shards[2]} took theirs" in message
    assert f"{shards[1]}: cannot be reached" in message
    assert put(url, ids_in(0, 3)).json()["position"] == "2.0.1"  # what the others have is written on
    alone = put(url, ids_in(1, 3))
    assert error_of(alone) == (503, "shard_unavailable")
    assert shards[1] in alone.text
    assert error_of(CLIENT.get(f"{url}{DOCUMENTS}"))[0] == 503
    port = int(shards[1].rpartition(":")[2])
    servers.start("router-1", port)
    while (done := put(url, ids, idempotency_key=key)).status_code == 503:  # before it is asked again
        time.sleep(REST_SECONDS)
    assert (done.json()["upserted"], done.json()["position"]) == (6, "2.1.1")
    assert count(url) == 6
    assert [count(each) for each in shards] == [2, 2, 2]


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_shard_that_does_not_answer_ends_no_write_to_another(servers: Servers, silent: str) -> None:
    shard = servers.start("shard")
    assert CLIENT.put(f"{shard}{DEMO}", json=COLLECTION).status_code == 201
    url = servers.start("router", shards=f"{shard},{silent}")
    headers = {"X-Request-Timeout": "4"}
    (here,), (there,) = ids_in(0, 2), ids_in(1, 2)
    keys = iter(ids_in(0, 2, 3))  # that the shard knows which answers

    def written(*ids: str) -> httpx.Response:
        body = {"documents": [{"id": id, "text": "tea"} for id in ids], "idempotency_key": next(keys)}
        return CLIENT.put(f"{url}{DOCUMENTS}", json=body, headers=headers)

    assert written(here).json()["position"] == "1.0"
    half = written(here, there)
    assert error_of(half) == (503, "write_incomplete")
    assert f"{silent}: " in half.text
    alone = written(there)
    assert error_of(alone) in [(503, "write_unknown"), (503, "shard_unavailable")]
    assert silent in alone.text


class Forgetful:
    """A way to a shard on which the answers to some writes are lost."""

    def __init__(self, inner: HttpTransport, lost: list[str]) -> None:
        self._inner = inner
        self._lost = lost
        self.name = inner.name

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        answer = await self._inner.request(request)
        written = request.method == "PUT" and request.path.endswith("/documents")
        if written and self.name in self._lost:
            self._lost.remove(self.name)
            raise CallFailedError("broken", "ended the connection")
        return answer


def test_a_write_whose_answer_is_lost_is_unknown_until_it_is_repeated(servers: Servers) -> None:
    shards = [servers.start(f"shard{number}") for number in range(2)]
    lost: list[str] = []
    url = servers.start_router("router", lambda inner: Forgetful(inner, lost), *shards)
    assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
    (here,), (there,), (a, b) = ids_in(0, 2), ids_in(1, 2), ids_in(0, 2, 2)
    lost.append(shards[0])
    unknown = put(url, here, idempotency_key=a)
    assert error_of(unknown) == (503, "write_unknown")
    assert "repeat it with the same idempotency_key" in unknown.text
    assert put(url, here, idempotency_key=a).json()["position"] == "1.0"
    lost.append(shards[1])
    half = put(url, [here, there], idempotency_key=b)
    assert error_of(half) == (503, "write_incomplete")
    assert put(url, [here, there], idempotency_key=b).json()["position"] == "2.1"
    assert [count(each) for each in shards] == [1, 1]


def test_a_collection_that_was_half_made_or_half_removed_is_completed(servers: Servers) -> None:
    url, shards = servers.over(2)
    ports = [int(each.rpartition(":")[2]) for each in shards]
    assert put(url, [*ids_in(0, 2), *ids_in(1, 2)]).status_code == 200
    servers.stop("router-0")
    other = servers.start("other", shards=",".join(shards))
    assert error_of(CLIENT.put(f"{other}/collections/new"))[0] == 503
    assert CLIENT.get(f"{shards[1]}/collections/new").status_code == 404  # taken back
    assert error_of(CLIENT.delete(f"{other}{DEMO}"))[0] == 503
    assert CLIENT.get(f"{shards[1]}{DEMO}").status_code == 404  # gone there, and listed still
    servers.start("router-0", ports[0])
    fresh = servers.start("fresh", shards=",".join(shards))
    assert [each["name"] for each in CLIENT.get(f"{shards[0]}/collections").json()["collections"]] == ["demo"]
    assert error_of(CLIENT.put(f"{fresh}{DEMO}", json=COLLECTION)) == (409, "collection_exists")
    assert CLIENT.delete(f"{fresh}{DEMO}").status_code == 204
    assert error_of(CLIENT.delete(f"{fresh}{DEMO}")) == (404, "collection_not_found")
    assert CLIENT.put(f"{shards[1]}{DEMO}", json=COLLECTION).status_code == 201  # as one that was cut short
    assert CLIENT.put(f"{fresh}{DEMO}", json=COLLECTION).status_code == 201
    assert count(fresh) == 0
    assert put(fresh, ids_in(0, 2)).json()["position"] == "1.0"


def test_a_part_that_a_shard_would_not_take_is_refused_before_anything_is_written(servers: Servers) -> None:
    shards = [servers.start("shard0"), servers.start("shard1", max_body_bytes=2**20)]
    url = servers.start("router", shards=",".join(shards))
    assert CLIENT.put(f"{url}{DEMO}", json={"window": False}).status_code == 201
    ids = [*ids_in(0, 2, 20), *ids_in(1, 2, 20)]
    documents = [{"id": id, "text": "tea " + "x" * 60_000} for id in ids]
    refused = CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents})
    assert error_of(refused) == (413, "request_too_large")
    assert shards[1] in refused.text
    assert "max_body_bytes" in refused.text
    assert count(url) == 0
