"""Documents written through a router: read as from one server, repeated, and waited for."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.router.app import create_router_app
from tercet.cluster.router.collections import ShardedCollections
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.models.encoder import Encoder
from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.service.app import create_app
from tercet.service.exceptions import CallFailedError
from tercet.service.remote.http import HttpConnections, HttpTransport
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tercet.service.settings.settings import Settings
from tests.cluster.router.conftest import refusal_of
from tests.conftest import TinyEncoder
from tests.service.conftest import real_server
from tests.service.polling import REST_SECONDS

pytestmark = pytest.mark.slow

DEMO = "/collections/demo"
DOCUMENTS = f"{DEMO}/documents"
COLLECTION = {
    "fields": {"year": "integer", "kind": "keyword", "seen": "datetime", "new": "boolean", "price": "number"}
}
CLIENT = httpx.Client(timeout=60)
WORDS = ["tea", "train", "water", "rail", "green", "steam", "leaf", "black"]


class Servers:
    """Shards and routers of one test, each with a folder of its own."""

    def __init__(self, root: Path, encoder: Encoder) -> None:
        self._root = root
        self._encoder = encoder
        self._stack = ExitStack()
        self._running: dict[str, AbstractContextManager[str]] = {}

    def start(self, name: str, port: int = 0, encoder: Encoder | None = None, **settings: Any) -> str:
        """The URL of a server of this name, which has what it had before; with `shards` a router."""
        create = create_router_app if "shards" in settings else create_app
        app = create(Settings(data=self._root / name, port=0, **settings), encoder or self._encoder)
        return self._enter(name, real_server(app, port))

    def start_router(self, name: str, wrap: Callable[[HttpTransport], Any], *urls: str) -> str:
        """A router whose ways to its shards are wrapped."""
        connections = HttpConnections()
        clients = [[ShardClient(wrap(HttpTransport(url, connections)))] for url in urls]
        served = ShardedCollections(Fleet(clients, Loop()), connections).served
        app = create_app(Settings(data=self._root / name, port=0), self._encoder, served=served)
        return self._enter(name, real_server(app))

    def stop(self, name: str) -> None:
        """Ends a server."""
        self._running.pop(name).__exit__(None, None, None)

    def close(self) -> None:
        """Ends all."""
        for name in list(self._running):
            self.stop(name)

    def over(self, shards: int, name: str = "router", **settings: Any) -> tuple[str, list[str]]:
        """A router over so many new shards, with an empty collection; its URL, and those of the shards."""
        urls = [self.start(f"{name}-{number}") for number in range(shards)]
        url = self.start(name, shards=",".join(urls), **settings)
        assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
        return url, urls

    def _enter(self, name: str, server: AbstractContextManager[str]) -> str:
        url = server.__enter__()
        self._running[name] = server
        return url


@pytest.fixture(scope="module", autouse=True)
def connections() -> Iterator[None]:
    """Those of the tests, which end with them."""
    yield
    CLIENT.close()


@pytest.fixture
def servers(tmp_path: Path, tiny: Encoder) -> Iterator[Servers]:
    """Starts servers that end with the test."""
    started = Servers(tmp_path, tiny)
    yield started
    started.close()


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[list[str]]:
    """The URLs of a single server, and of routers over one, two and three shards, all with no documents."""
    started = Servers(tmp_path_factory.mktemp("alike"), tiny)
    one = started.start("one")
    assert CLIENT.put(f"{one}{DEMO}", json=COLLECTION).status_code == 201
    yield [one, *(started.over(shards, f"over{shards}")[0] for shards in (1, 2, 3))]
    started.close()


def put(url: str, ids: list[str] | str, **options: Any) -> httpx.Response:
    documents = [{"id": id, "text": f"green tea {id}"} for id in ([ids] if isinstance(ids, str) else ids)]
    return CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents, **options})


def count(url: str) -> int:
    found: int = CLIENT.post(f"{url}{DOCUMENTS}/count").json()["count"]
    return found


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def ids_in(shard: int, shards: int, number: int = 1) -> list[str]:
    """Some ids that belong to a shard."""
    found = (f"d{each}" for each in range(10_000) if Placement.evenly(shards).shard_of(f"d{each}") == shard)
    return [next(found) for _ in range(number)]


class Operations:
    """Random writes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ids = [f"d{number}" for number in range(30)] + ["a/b c", "이차", "100%", "q?x=1&y"]

    def next(self) -> tuple[str, str, dict[str, Any]]:
        """Method, path below the documents, and body."""
        pick = self._random
        some = pick.sample(self._ids, pick.randint(1, 8))
        year = {"gte": {"year": pick.randint(1990, 2010)}}
        kind = pick.choice(["put", "put", "put", "delete", "filter", "update", "change", "patch"])
        if kind == "put":
            return "PUT", "", {"documents": [self._document(id) for id in some]}
        if kind == "delete":
            return "POST", "/delete", {"ids": [*some, "none", "x" * 600]}
        if kind == "filter":
            return "POST", "/delete", {"filter": {"and": [year, {"eq": {"kind": pick.choice("ab")}}]}}
        change = {
            "metadata": {"kind": pick.choice("abc"), "price": pick.random()},
            "merge": pick.random() < 0.5,
        }
        if kind == "update":
            return "POST", "/update", {"ids": some, **change}
        if kind == "change":
            return "POST", "/update", {"filter": {"not": year}, **change}
        return (
            "PATCH",
            f"/{httpx.URL('http://x').copy_with(path='/' + some[0]).raw_path.decode()[1:]}",
            change,
        )

    def _document(self, id: str) -> dict[str, Any]:
        pick = self._random
        metadata: dict[str, Any] = {"year": pick.randint(1980, 2020), "kind": pick.choice("ab")}
        if pick.random() < 0.5:
            metadata["kind"] = pick.sample("abcde", pick.randint(0, 3))
            metadata["seen"] = f"20{pick.randint(10, 30)}-05-17T09:30:00.{pick.randint(0, 999):03}Z"
            metadata["new"] = pick.random() < 0.5
            metadata["price"] = pick.choice([0, 1.5, -2.0, 1e300])
        text = " ".join(pick.choices(WORDS, k=pick.randint(1, 60)))
        return {"id": id, "text": text, "title": pick.choice(["steam", None]), "metadata": metadata}


def reads(url: str) -> list[Any]:
    """What all routes that read documents answer."""
    found: list[Any] = []
    with httpx.Client(base_url=url, timeout=60) as client:
        for query in ({}, {"filter": '{"exists":"kind"}'}):
            for order in (
                {},
                *({"order_by": by, "order": how} for by in COLLECTION["fields"] for how in ("asc", "desc")),
            ):
                after: dict[str, str] = {}
                while True:
                    page = client.get(DOCUMENTS, params={**query, **order, **after, "limit": 7}).json()
                    found.append(page)
                    if page["next"] is None:
                        break
                    after = {"after": page["next"]}
        ids = [each["id"] for page in found for each in page["documents"]]
        found.append(
            client.post(f"{DOCUMENTS}/get", json={"ids": [*reversed(ids), "none", "y" * 600]}).json()
        )
        trees = [{"exists": "price"}, {"in": {"kind": ["a", "c"]}}, {"lt": {"seen": "2020-01-01"}}]
        found += [client.post(f"{DOCUMENTS}/count", json={"filter": tree}).json() for tree in trees]
        for id in sorted(set(ids))[:5]:
            path = httpx.URL("http://x").copy_with(path=f"{DOCUMENTS}/{id}").raw_path.decode()
            found.append(client.get(path).json())
            for encoding in ("float", "base64"):
                record = client.get(path, params={"representations": True, "encoding": encoding}).json()
                del record["representations"]["position"]
                found.append(record)
        found.append(client.get(f"{DOCUMENTS}/none").json())
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_documents_written_over_shards_are_read_as_from_one_server(alike: list[str], seed: int) -> None:
    operations = Operations(seed)
    for step in range(25):
        method, path, body = operations.next()
        key = {"idempotency_key": f"{seed}.{step}"} if step % 3 else {}
        answers = [CLIENT.request(method, f"{url}{DOCUMENTS}{path}", json={**body, **key}) for url in alike]
        said = [
            {name: value for name, value in each.json().items() if name != "position"} for each in answers
        ]
        assert said[1:] == said[:1] * 3, (method, path, body)
    expected, *others = map(reads, alike)
    assert expected[-1]["error"]["code"] == "document_not_found"
    for found in others:
        assert found == expected


def test_what_is_refused_is_refused_alike(alike: list[str]) -> None:
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", DOCUMENTS, {"documents": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}),
        ("PUT", DOCUMENTS, {"documents": [{"id": "a", "text": "x", "metadata": {"year": "old"}}]}),
        ("PUT", "/collections/none/documents", {"documents": [{"id": "a", "text": "x"}]}),
        ("PATCH", f"{DOCUMENTS}/none", {"metadata": {}}),
        ("PATCH", f"{DOCUMENTS}/{'x' * 600}", {"metadata": {}}),
        ("POST", f"{DOCUMENTS}/delete", {"filter": {"eq": {"undeclared": 1}}}),
        ("POST", f"{DOCUMENTS}/delete", {"filter": {"eq": {"year": "old"}}}),
        ("POST", f"{DOCUMENTS}/update", {"filter": {"eq": {"undeclared": 1}}, "metadata": {}}),
        ("POST", f"{DOCUMENTS}/count", {"filter": {"gt": {"new": True}}}),
        ("PUT", DEMO, {}),
        ("DELETE", "/collections/none", {}),
        ("PUT", "/aliases/demo", {"collection": "demo"}),
        ("PUT", "/aliases/other", {"collection": "none"}),
        ("DELETE", "/aliases/none", {}),
        ("POST", f"{DEMO}/backups/20261123t024501-ab12/restore", {}),
        ("POST", f"{DEMO}/backups/x/restore", {}),
        ("POST", f"{DEMO}/fields", {"fields": {"year": "keyword"}}),
    ]
    for method, path, body in wrong:
        expected, *others = (CLIENT.request(method, f"{url}{path}", json=body or None) for url in alike)
        assert expected.status_code >= 400, expected.text
        for found in others:
            assert (found.status_code, found.json()) == (expected.status_code, refusal_of(expected))
    queries = [{"order_by": "undeclared"}, {"filter": '{"eq":{"undeclared":1}}'}, {"after": "x" * 600}]
    for query in queries:
        expected, *others = (CLIENT.get(f"{url}{DOCUMENTS}", params=query) for url in alike)
        assert expected.status_code == 422
        for found in others:
            assert (found.status_code, found.json()) == (422, expected.json())


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


def test_fields_that_one_shard_refuses_are_declared_in_none(servers: Servers) -> None:
    url, shards = servers.over(2)
    first, second = ids_in(0, 2)[0], ids_in(1, 2)[0]
    documents = [
        {"id": first, "text": "tea", "metadata": {"size": 3}},
        {"id": second, "text": "tea", "metadata": {"size": "large"}},
    ]
    assert CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents}).status_code == 200
    for kind in ("integer", "keyword"):
        refused = CLIENT.post(f"{url}{DEMO}/fields", json={"fields": {"size": kind}})
        assert error_of(refused) == (422, "invalid_document")
        assert refused.json()["error"]["param"] == "fields.size"
        for each in shards:
            assert "size" not in CLIENT.get(f"{each}{DEMO}").json()["fields"]
    assert CLIENT.post(f"{url}{DOCUMENTS}/delete", json={"ids": [second]}).status_code == 200
    declared = CLIENT.post(f"{url}{DEMO}/fields", json={"fields": {"size": "integer"}})
    assert declared.status_code == 200, declared.text
    found = CLIENT.get(f"{url}{DOCUMENTS}", params={"filter": '{"gt":{"size":2}}'}).json()["documents"]
    assert [each["id"] for each in found] == [first]


def test_fields_of_which_one_shard_got_another_type_meanwhile_harm_nobody(servers: Servers) -> None:
    """A document comes between the look whether fields can be declared and their declaration."""
    other, own = ids_in(0, 2)[0], ids_in(1, 2)[0]
    wrong = {"documents": [{"id": own, "text": "tea", "metadata": {"size": "large"}}]}
    urls = [servers.start(f"shard{number}") for number in range(2)]

    class Meanwhile:
        def __init__(self, inner: HttpTransport) -> None:
            self.name = inner.name
            self._inner = inner

        async def request(self, request: RemoteRequest) -> RemoteAnswer:
            asked = request.method, request.path, self.name
            if asked == ("POST", f"{DEMO}/fields", urls[0]) and wrong["documents"]:
                async with httpx.AsyncClient() as client:
                    assert (await client.put(f"{urls[1]}{DOCUMENTS}", json=wrong)).is_success
            return await self._inner.request(request)

    url = servers.start_router("router", Meanwhile, *urls)
    assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
    sized = {"fields": {"size": "integer"}}
    assert error_of(CLIENT.post(f"{url}{DEMO}/fields", json=sized)) == (422, "invalid_document")
    assert ["size" in CLIENT.get(f"{each}{DEMO}").json()["fields"] for each in urls] == [True, False]
    assert "size" not in CLIENT.get(f"{url}{DEMO}").json()["fields"]
    search = {"collection": "demo", "query": "tea"}
    assert len(CLIENT.post(f"{url}/search", json=search).json()["hits"]) == 1
    refused = CLIENT.post(f"{url}/search", json={**search, "filter": {"exists": "size"}})
    assert error_of(refused) == (422, "invalid_filter")
    assert put(url, other).status_code == 200

    wrong["documents"] = []
    body = {"metadata": {"size": 3}, "merge": True}
    assert CLIENT.patch(f"{url}{DOCUMENTS}/{own}", json=body).status_code == 200
    assert CLIENT.post(f"{url}{DEMO}/fields", json=sized).status_code == 200
    found = CLIENT.get(f"{url}{DOCUMENTS}", params={"filter": '{"exists":"size"}'}).json()["documents"]
    assert [each["id"] for each in found] == [own]


def test_of_two_routers_that_declare_a_field_with_two_types_one_does(servers: Servers) -> None:
    """Each has looked whether the field can be declared before the other declares it."""
    urls = [servers.start(f"shard{number}") for number in range(3)]
    looked = {name: threading.Event() for name in ("integer", "keyword")}
    declared = {(name, url): threading.Event() for name in looked for url in urls}
    waits_for = {("integer", urls[2]): ("keyword", urls[2]), ("keyword", urls[1]): ("integer", urls[1])}

    async def happened(event: threading.Event) -> None:
        await asyncio.to_thread(event.wait, 1)

    class Interleaved:
        def __init__(self, inner: HttpTransport, kind: str) -> None:
            self.name, self._inner, self._kind = inner.name, inner, kind

        async def request(self, request: RemoteRequest) -> RemoteAnswer:
            declares = (request.method, request.path) == ("POST", f"{DEMO}/fields")
            if declares:
                looked[self._kind].set()
                for event in looked.values():
                    await happened(event)
                if (self._kind, self.name) in waits_for:
                    await happened(declared[waits_for[self._kind, self.name]])
            answer = await self._inner.request(request)
            if declares:
                declared[self._kind, self.name].set()
            return answer

    def declare(kind: str) -> httpx.Response:
        return CLIENT.post(f"{routers[kind]}{DEMO}/fields", json={"fields": {"size": kind}})

    routers = {kind: servers.start_router(kind, partial(Interleaved, kind=kind), *urls) for kind in looked}
    assert CLIENT.put(f"{routers['integer']}{DEMO}", json=COLLECTION).status_code == 201
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(declare, routers))
    assert sorted(answer.status_code for answer in answers) == [200, 422]
    kind = next(kind for kind, answer in zip(routers, answers, strict=True) if answer.status_code == 200)
    assert [CLIENT.get(f"{each}{DEMO}").json()["fields"].get("size") for each in urls] == [kind] * 3


def test_shards_in_another_order_are_told(servers: Servers) -> None:
    url, shards = servers.over(2)
    ids = [*ids_in(0, 2), *ids_in(1, 2)]
    assert put(url, ids).status_code == 200
    for number, named in enumerate((shards[::-1], shards[:1], [*shards, servers.start("third")])):
        other = servers.start(f"other{number}", shards=",".join(named))
        for answer in (
            put(other, ids),
            CLIENT.get(f"{other}{DOCUMENTS}/{ids[0]}"),
            CLIENT.post(f"{other}/search", json={"collection": "demo", "query": "tea"}),
        ):
            assert error_of(answer) == (503, "shard_failed")
            assert f"{shards[0]} has shard 0 of 2" in answer.text
    assert [count(each) for each in shards] == [1, 1]


def test_a_writing_server_that_lost_its_collection_hides_no_replica(servers: Servers, tmp_path: Path) -> None:
    writer = servers.start("writer")
    port = int(writer.rpartition(":")[2])
    alone = servers.start("alone", shards=writer)
    assert CLIENT.put(f"{alone}{DEMO}", json=COLLECTION).status_code == 201
    assert put(alone, ["a", "b", "c"]).json()["position"] == "1"
    servers.stop("writer")
    with LiveCollection(Collection.open(tmp_path / "writer/collections", "demo")) as live:
        live.flush()
    shutil.copytree(tmp_path / "writer", tmp_path / "replica")
    store = FolderStore(tmp_path / "store")
    push(Collection.open(tmp_path / "replica/collections", "demo"), store, tmp_path / "replica/snapshots")
    replica = servers.start("replica")
    servers.start("writer", port)
    router = servers.start("router", shards=f"{writer}|{replica}")
    assert put(router, "lost").json()["position"] == "2"
    search = {"collection": "demo", "query": "tea"}

    servers.stop("writer")
    shutil.rmtree(tmp_path / "writer")
    servers.start("writer", port)
    fresh = servers.start("fresh", shards=f"{writer}|{replica}")
    for url in (router, fresh):
        answer = CLIENT.post(f"{url}/search", json=search)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["hits"]) == 3
        for refused in (put(url, "d"), CLIENT.put(f"{url}{DEMO}", json=COLLECTION)):
            assert error_of(refused) == (503, "shard_unavailable")
            assert "lost its data" in refused.text
    assert (
        CLIENT.put(f"{writer}{DEMO}", json=COLLECTION).status_code == 201
    )  # by one who does not ask a router
    for url in (router, fresh):
        assert error_of(put(url, "d")) == (503, "shard_unavailable")

    servers.stop("writer")
    pull(tmp_path / "writer/collections", "demo", store, tmp_path / "writer/snapshots")
    servers.start("writer", port)
    assert put(router, ["c", "d"]).status_code == 200
    for given in ({"min_position": "2"}, {"min_position": 2}):
        lost = CLIENT.post(f"{router}{DOCUMENTS}/count", json=given)
        assert error_of(lost) == (409, "position_lost")
    assert error_of(put(router, "a", if_position="2")) == (409, "position_lost")
    assert CLIENT.post(f"{router}{DOCUMENTS}/count", json={"min_position": "1"}).json()["count"] == 4

    assert CLIENT.delete(f"{router}{DEMO}").status_code == 204
    assert error_of(CLIENT.post(f"{router}/search", json=search)) == (404, "collection_not_found")
    assert CLIENT.put(f"{router}{DEMO}", json=COLLECTION).status_code == 201
    assert put(router, "e").status_code == 200


def test_positions_have_a_number_for_each_shard(servers: Servers) -> None:
    url, shards = servers.over(3)
    first = put(url, ids_in(1, 3)).json()
    assert first == {"upserted": 1, "position": "0.1.0", "usage": {"tokens": first["usage"]["tokens"]}}
    both = put(url, [*ids_in(0, 3), *ids_in(1, 3, 2)]).json()
    assert (both["upserted"], both["position"]) == (3, "1.2.0")
    deleted = CLIENT.request("DELETE", f"{url}{DOCUMENTS}/{ids_in(2, 3)[0]}").json()
    assert deleted == {"deleted": 0, "position": "1.2.0"}
    patched = CLIENT.patch(f"{url}{DOCUMENTS}/{ids_in(0, 3)[0]}", json={"metadata": {"year": 3}}).json()
    assert patched == {"position": "2.2.0"}
    assert [count(each) for each in shards] == [1, 2, 0]
    stored = CLIENT.get(f"{url}{DOCUMENTS}/{ids_in(0, 3)[0]}", params={"representations": True}).json()
    assert stored["representations"]["position"] == "2.0.0"
    statistics = CLIENT.get(f"{url}{DEMO}/stats").json()
    assert (statistics["documents"], statistics["position"]) == (3, "2.2.0")


def test_reads_wait_for_a_position(servers: Servers) -> None:
    url, shards = servers.over(2)
    other = servers.start("other", shards=",".join(shards))
    position = put(url, [*ids_in(0, 2), *ids_in(1, 2)]).json()["position"]
    for each in (url, other):  # the second was told of nothing, and asks
        for given in (position, "0.0"):
            body = {"collection": "demo", "query": "tea", "min_position": given}
            assert CLIENT.post(f"{each}/search", json=body).json()["hits"]
            assert CLIENT.get(f"{each}{DOCUMENTS}", params={"min_position": given}).status_code == 200
        ahead = CLIENT.post(f"{each}{DOCUMENTS}/count", json={"min_position": "1.7"})
        assert error_of(ahead) == (409, "position_ahead")
    for wrong in ("1", 1, "1.1.1"):
        refused = CLIENT.post(f"{url}{DOCUMENTS}/count", json={"min_position": wrong})
        assert error_of(refused) == (422, "invalid_value")
        assert refused.json()["error"]["param"] == "min_position"
        assert "now there are 2" in refused.text


def test_a_document_is_held_against_the_number_of_its_shard(servers: Servers) -> None:
    url, _ = servers.over(2)
    (here,), (there,) = ids_in(0, 2), ids_in(1, 2)
    position = put(url, [here, there]).json()["position"]
    later = put(url, there).json()["position"]
    assert put(url, here, if_position=position).status_code == 200
    assert error_of(put(url, there, if_position=position)) == (409, "document_changed")
    half = put(url, [here, there], if_position="2.1")
    assert error_of(half) == (409, "write_incomplete")
    assert "of 1 documents at position 3.2" in half.text
    path = f"{url}{DOCUMENTS}/{there}"
    stored = CLIENT.get(path, params={"representations": True}).json()["representations"]["position"]
    assert (later, stored) == ("1.2", "0.2")
    assert CLIENT.patch(path, json={"metadata": {}, "if_position": stored}).status_code == 200
    assert error_of(CLIENT.patch(path, json={"metadata": {}, "if_position": stored})) == (
        409,
        "document_changed",
    )
    assert error_of(CLIENT.patch(path, json={"metadata": {}, "if_position": 3})) == (422, "invalid_value")


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


def test_aliases_fields_backups_and_merges_are_of_all_shards(servers: Servers) -> None:
    url, shards = servers.over(2)
    ids = [*ids_in(0, 2, 2), *ids_in(1, 2)]
    put(url, ids)
    with httpx.Client(base_url=url, timeout=60) as client:
        assert client.put("/aliases/now", json={"collection": "demo"}).json()["collections"] == ["demo"]
        assert client.post("/collections/now/documents/count").json() == {"count": 3}
        assert error_of(client.delete(DEMO)) == (409, "collection_aliased")
        assert [CLIENT.get(f"{each}/aliases/now").json()["collection"] for each in shards] == ["demo"] * 2
        assert list(client.get("/aliases").json()["aliases"]) == [
            {"alias": "now", "collection": "demo", "collections": ["demo"]}
        ]
        assert client.delete("/aliases/now").status_code == 204
        assert error_of(client.get("/aliases/now")) == (404, "alias_not_found")
        declared = client.post(f"{DEMO}/fields", json={"fields": {"place": "keyword"}}).json()
        assert declared["fields"]["place"] == "keyword"
        update = {"filter": {"not": {"exists": "place"}}, "metadata": {"place": "x"}}
        assert client.post(f"{DOCUMENTS}/update", json=update).json()["updated"] == 3
        made = client.post(f"{DEMO}/backups")
        assert made.status_code == 201, made.text
        backup = made.json()
        assert (backup["documents"], backup["position"]) == (3, "2.2")
        assert [each["id"] for each in client.get(f"{DEMO}/backups").json()["backups"]] == [backup["id"]]
        assert client.post(f"{DOCUMENTS}/delete", json={"ids": ids}).json()["deleted"] == 3
        restored = client.post(f"{DEMO}/backups/{backup['id']}/restore")
        assert (restored.status_code, restored.json()["documents"]) == (200, 3)
        copied = client.post(f"{DEMO}/backups/{backup['id']}/restore", json={"name": "copy"}).json()
        assert (copied["name"], copied["documents"]) == ("copy", 3)
        listed = client.get("/collections").json()["collections"]
        assert [(each["name"], each["documents"]) for each in listed] == [("copy", 3), ("demo", 3)]
        assert client.delete(f"{DEMO}/backups/{backup['id']}").status_code == 204
        assert client.get(f"{DEMO}/backups").json()["backups"] == []
        assert client.post(f"{DEMO}/merge").status_code == 202
        job = client.post(f"{DEMO}/jobs", json={"source": "tea.jsonl"})
        assert error_of(job) == (422, "unsupported")
        assert "--shards" in job.text


def test_another_router_may_make_a_collection_anew(servers: Servers) -> None:
    url, shards = servers.over(2)
    other = servers.start("other", shards=",".join(shards))
    put(url, ids_in(0, 2, 3))
    assert CLIENT.delete(f"{other}{DEMO}").status_code == 204
    assert error_of(put(url, "x")) == (404, "collection_not_found")
    assert CLIENT.put(f"{other}{DEMO}", json={"fields": {"place": "keyword"}}).status_code == 201
    answer = CLIENT.put(
        f"{url}{DOCUMENTS}", json={"documents": [{"id": "y", "text": "tea", "metadata": {"place": "z"}}]}
    )
    assert answer.status_code == 200
    assert CLIENT.get(f"{url}{DOCUMENTS}", params={"order_by": "place"}).json()["documents"][0]["id"] == "y"


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
