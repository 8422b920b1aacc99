"""Documents written through a router: read as from one server, repeated, and waited for."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.models.encoder import Encoder
from tests.cluster.router.conftest import refusal_of
from tests.cluster.router.servers import (
    CLIENT,
    COLLECTION,
    DEMO,
    DOCUMENTS,
    WORDS,
    Servers,
    count,
    error_of,
    ids_in,
    put,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[list[str]]:
    """The URLs of a single server, and of routers over one, two and three shards, all with no documents."""
    started = Servers(tmp_path_factory.mktemp("alike"), tiny)
    one = started.start("one")
    assert CLIENT.put(f"{one}{DEMO}", json=COLLECTION).status_code == 201
    yield [one, *(started.over(shards, f"over{shards}")[0] for shards in (1, 2, 3))]
    started.close()


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
