"""Re-sharding while writers never stop: nothing lost, nothing twice, answers those of one server."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.resharding.errors import ServersError
from tercet.cluster.resharding.live import reshard_live
from tercet.cluster.resharding.mapping import map_collection
from tercet.cluster.resharding.servers import Opening
from tercet.cluster.router.app import create_router_app
from tercet.cluster.shards.map import ShardMap, newest_map, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.cluster.work.executor import ThisProcess
from tercet.index.errors import CollectionBusyError
from tercet.index.verify import verify
from tercet.service.settings.settings import Settings
from tests.cluster.resharding.live_servers import (
    COLLECTION,
    DOCUMENTS,
    NAME,
    Cluster,
    answers_of,
    documents_of,
    wait_for_writes,
    writing,
)
from tests.service.conftest import real_server
from tests.service.polling import REST_SECONDS

pytestmark = pytest.mark.slow


def moved(cluster: Cluster, servers: Sequence[str], opened: Opening | None = None) -> ShardMap:
    shards = [(server,) for server in servers]
    report = reshard_live(cluster.url, ThisProcess(), shards, opened or cluster.opened)
    assert report.map is not None
    assert len(report.folders) == len(report.documents) == len(servers)
    return report.map


def settled(cluster: Cluster, version: int) -> None:
    """The shards of the newest map take writes again, as if a version of it named them once more."""
    found = newest_map(open_store(cluster.url))
    assert found is not None
    cluster.opened([str(place.url) for place in found.shards], NAME).settle(replace(found, version=version))


def version(router: str) -> int:
    lines = httpx.get(f"{router}/metrics").text.splitlines()
    (found,) = [line for line in lines if line.startswith("tercet_shard_map_version")]
    return int(float(found.split()[1]))


def wait_for_version(router: str, wanted: int) -> None:
    while version(router) < wanted:
        time.sleep(REST_SECONDS)


def same(router: str, one: str) -> None:
    """Documents and answers are those of one server."""
    assert documents_of(router) == documents_of(one)
    assert answers_of(router) == answers_of(one)


def test_more_and_fewer_shards_while_writers_never_stop(cluster: Cluster, one: str, tmp_path: Path) -> None:
    cluster.serve_map("a", "b")
    routers = [cluster.router("router"), cluster.router("slow", follow_seconds=1.0)]
    with writing(routers, one) as writers:
        three = [cluster.server(name) for name in ("c", "d", "e")]
        assert moved(cluster, three).version == 3
        wait_for_writes(writers)
        two = [cluster.server(name) for name in ("f", "g")]
        assert moved(cluster, two).version == 4
    for router in routers:
        wait_for_version(router, 4)
        same(router, one)
    for name in ("f", "g"):
        assert verify(tmp_path / name / "collections", NAME) == []


def test_servers_go_on_and_only_what_must_moves(cluster: Cluster, one: str, tmp_path: Path) -> None:
    """Two shards become three, four, and two again, while writers never stop."""
    a, b = cluster.serve_map("a", "b")
    routers = [cluster.router("router"), cluster.router("slow", follow_seconds=1.0)]
    c, d = cluster.server("c"), cluster.server("d")
    key = {"idempotency_key": "again", "documents": [{"id": "keyed", "text": "tea", "metadata": {"year": 1}}]}
    for url in (routers[0], one):
        httpx.put(url + DOCUMENTS, json=key).raise_for_status()
    with writing(routers, one) as writers:
        for version, servers in enumerate(([a, b, c], [d, c, b, a], [b, d]), 3):
            shards = [(server,) for server in servers]
            report = reshard_live(cluster.url, ThisProcess(), shards, cluster.opened)
            assert report.map is not None
            assert report.map.version == version
            assert 0 < report.moved_documents < sum(report.documents)
            assert report.moved_bytes > 0
            found = dict(zip(servers, report.documents, strict=True))
            left = len(documents_of(routers[0]))
            assert sum(found.values()) - 60 <= left <= sum(found.values()) + 60
            wait_for_writes(writers)
    for router in routers:
        wait_for_version(router, 5)
        same(router, one)
    repeated = httpx.put(routers[0] + DOCUMENTS, json=key)
    assert repeated.json()["upserted"] == 1
    for name in ("b", "d"):
        assert verify(tmp_path / name / "collections", NAME) == []
        assert not list((tmp_path / name / "snapshots").glob("receive-*/received"))
    for url in (a, c):  # which have no shard any more
        refused = httpx.put(f"{url}{DOCUMENTS}", json={"documents": [{"id": "x", "text": "tea"}]})
        assert refused.json()["error"]["code"] == "collection_fenced"


def test_a_collection_made_through_a_router_gets_a_map_and_moves(
    cluster: Cluster, one: str, tmp_path: Path, tiny: Any
) -> None:
    cluster.url = (tmp_path / "made").as_uri()
    two = [cluster.server(name) for name in ("a", "b")]
    places = [(url,) for url in two]
    made = create_router_app(Settings(data=tmp_path / "static", shards=tuple(two)), tiny)
    with real_server(made) as router:
        settings = {"fields": {"year": "integer"}, "bm25": True}
        httpx.put(router + COLLECTION, json=settings).raise_for_status()
        documents = {"documents": list(documents_of(one).values())}
        httpx.put(router + DOCUMENTS, json=documents, timeout=60).raise_for_status()
    with pytest.raises(ServersError, match=r"1 of 2, 0 of 2; name all of its shards, in the order"):
        map_collection(cluster.url, NAME, places[::-1], cluster.opened)
    assert map_collection(cluster.url, NAME, places, cluster.opened).version == 1
    assert map_collection(cluster.url, NAME, places, cluster.opened).version == 1
    with pytest.raises(ServersError, match=f"has a map already, of collection '{NAME}'"):
        map_collection(cluster.url, "other", places, cluster.opened)
    router = cluster.router("router")
    with writing([router], one):
        assert moved(cluster, [cluster.server(name) for name in ("c", "d", "e")]).version == 2
    wait_for_version(router, 2)
    same(router, one)


def test_servers_that_cannot_be_moved_between_are_refused(cluster: Cluster) -> None:
    a, b = cluster.serve_map("a", "b")
    c, d = cluster.server("c"), cluster.server("d")
    with pytest.raises(ServersError, match="has a present shard, or follows one"):
        reshard_live(cluster.url, ThisProcess(), [(a,), (c, b)], cluster.opened)
    httpx.put(f"{c}/collections/other", json={}).raise_for_status()
    with pytest.raises(ServersError, match="the new servers have collection 'other'"):
        moved(cluster, [c, d])
    httpx.delete(f"{c}/collections/other").raise_for_status()
    httpx.put(f"{c}{COLLECTION}", json={}).raise_for_status()
    with pytest.raises(CollectionBusyError, match="of its own"):
        moved(cluster, [c, d])
    store = open_store(cluster.url)
    found = newest_map(store)
    assert found is not None
    publish_map(store, NAME, found.shards[::-1], found.placement, found)
    with pytest.raises(ServersError, match="shard 0 is not the part of the collection that version"):
        moved(cluster, [a, b, d])


def test_writes_wait_while_the_shards_refuse_them(cluster: Cluster) -> None:
    """As long as their requests allow; then the answer says when to come again."""
    urls = cluster.serve_map("a", "b")
    router = cluster.router("router")
    shards = cluster.opened(urls, NAME)
    shards.fence(3)
    soon = {"X-Request-Timeout": "0.3"}
    body = {"documents": [{"id": "x", "text": "tea"}]}
    while True:
        refused = httpx.put(router + DOCUMENTS, json=body, headers=soon)
        if refused.json()["error"]["code"] == "collection_fenced":
            break
        assert refused.status_code in (429, 503)  # no shard answered in time, as on a machine that is busy
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    dependent = httpx.put(router + DOCUMENTS, json={**body, "if_position": "0.0"})
    assert dependent.json()["error"]["code"] == "collection_fenced"
    answers: list[httpx.Response] = []

    def write(method: str, path: str, body: Any) -> None:
        answers.append(httpx.request(method, router + path, json=body, timeout=60))

    writes = [
        ("PUT", DOCUMENTS, body),
        ("PATCH", f"{DOCUMENTS}/d0001", {"metadata": {"year": 1}}),
        ("POST", f"{DOCUMENTS}/update", {"ids": ["d0002"], "metadata": {"year": 1}}),
        (
            "POST",
            f"{DOCUMENTS}/update",
            {"filter": {"eq": {"year": 1905}}, "metadata": {"year": 1}, "merge": True},
        ),
        ("POST", f"{DOCUMENTS}/delete", {"ids": ["d0003", "missing"]}),
        ("POST", f"{DOCUMENTS}/delete", {"filter": {"eq": {"year": 1910}}}),
    ]
    threads = [threading.Thread(target=write, args=each) for each in writes]
    for thread in threads:
        thread.start()
    threads[0].join(0.5)
    assert answers == []
    settled(cluster, 3)
    for thread in threads:
        thread.join(30)
    assert [answer.status_code for answer in answers] == [200] * len(writes)
    found = documents_of(router)
    assert {"x"} <= found.keys()
    assert not {"d0003", "d0010"} & found.keys()
    assert [found[f"d000{number}"]["metadata"]["year"] for number in (1, 2, 5)] == [1, 1, 1]


def test_only_what_was_refused_is_written_again(cluster: Cluster) -> None:
    """What others wrote meanwhile to the part that was taken stays."""
    a, b = cluster.serve_map("a", "b")
    router = cluster.router("router")
    ids = {Placement.evenly(2).shard_of(id): id for id in ("x0", "x1", "x2", "x3", "x4", "x5")}
    shard = cluster.opened([b], NAME)
    shard.fence(3)
    answers: list[httpx.Response] = []

    def put() -> None:
        documents = [{"id": id, "text": "first"} for id in ids.values()]
        answers.append(httpx.put(router + DOCUMENTS, json={"documents": documents}, timeout=60))

    writer = threading.Thread(target=put)
    writer.start()
    while httpx.get(f"{a}{DOCUMENTS}/{ids[0]}").status_code != 200:
        time.sleep(REST_SECONDS)
    later = {"documents": [{"id": ids[0], "text": "second"}]}
    httpx.put(router + DOCUMENTS, json=later).raise_for_status()
    settled(cluster, 3)
    writer.join(30)
    assert answers[0].json()["upserted"] == 2
    found = documents_of(router)
    assert [found[ids[shard]]["text"] for shard in (0, 1)] == ["second", "first"]


def test_shards_that_publish_for_a_move_do_not_merge_meanwhile(cluster: Cluster) -> None:
    urls = cluster.serve_map("old0", "old1")
    found = newest_map(open_store(cluster.url))
    assert found is not None
    cluster.opened(urls, NAME).push([place.snapshots for place in found.shards])
    for url in urls:
        with cluster.apps[url].state.runtime.own_collections.writing(NAME) as live:
            assert live._running().upkeep._puts_off()


def test_a_router_over_named_servers_does_not_wait(cluster: Cluster, tmp_path: Path, tiny: Any) -> None:
    """It never learns of others."""
    urls = cluster.serve_map("a", "b")
    app = create_router_app(Settings(data=tmp_path / "static", shards=tuple(urls)), tiny)
    cluster.opened(urls, NAME).fence(3)
    with real_server(app) as router:
        answer = httpx.put(router + DOCUMENTS, json={"documents": [{"id": "x", "text": "tea"}]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "collection_fenced")


def test_a_position_of_other_shards_is_refused(cluster: Cluster) -> None:
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    body = {"documents": [{"id": "x", "text": "tea"}]}
    position = httpx.put(router + DOCUMENTS, json=body).json()["position"]
    moved(cluster, [cluster.server(name) for name in ("c", "d", "e")])
    wait_for_version(router, 3)
    for answer in (
        httpx.put(router + DOCUMENTS, json={**body, "if_position": position}),
        httpx.post(f"{router}{DOCUMENTS}/count", json={"min_position": position}),
    ):
        assert answer.status_code == 422
        assert "is of 2 shards, and now there are 3" in answer.json()["error"]["message"]
    later = httpx.put(router + DOCUMENTS, json=body).json()["position"]
    assert max(map(int, later.split("."))) > max(map(int, position.split(".")))


def test_pages_go_on_at_the_new_shards(cluster: Cluster, one: str) -> None:
    """One of a former snapshot is refused by name; those behind a document miss and repeat nothing."""
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    search = {"collection": NAME, "query": "tea", "top_k": 7, "candidates": {"dense": 40, "sparse": 40}}
    first = httpx.post(f"{router}/search", json=search).json()
    lists: list[dict[str, Any]] = [{}, {"order_by": "year", "order": "desc"}]
    following = [httpx.get(router + DOCUMENTS, params={**each, "limit": 7}).json()["next"] for each in lists]

    moved(cluster, [cluster.server(name) for name in ("c", "d", "e")])
    wait_for_version(router, 3)
    last = {name: first["hits"][-1][name] for name in ("score", "id")}
    hits = [
        httpx.post(f"{url}/search", json={**search, "search_after": last}).json()["hits"]
        for url in (router, one)
    ]
    assert hits[0] == hits[1]
    assert len(hits[0]) == 7
    for each, after in zip(lists, following, strict=True):
        pages = [
            httpx.get(url + DOCUMENTS, params={**each, "limit": 7, "after": after}).json()
            for url in (router, one)
        ]
        assert pages[0] == pages[1]
        assert len(pages[0]["documents"]) == 7
    gone = httpx.post(f"{router}/search", json={**search, "offset": 7, "snapshot": first["snapshot"]})
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "snapshot_gone")


def test_aliases_and_searches_under_way_go_along(cluster: Cluster, one: str) -> None:
    urls = cluster.serve_map("a", "b")
    router = cluster.router("router")
    httpx.put(f"{router}/aliases/now", json={"collections": [NAME]}).raise_for_status()
    moved(cluster, [cluster.server(name) for name in ("c", "d", "e")])
    wait_for_version(router, 3)
    (alias,) = httpx.get(f"{router}/aliases").json()["aliases"]
    assert (alias["alias"], alias["collections"]) == ("now", [NAME])
    same(router, one)
    for url in urls:  # the former ones refuse whatever comes late
        for request in (
            httpx.put(f"{url}{DOCUMENTS}", json={"documents": [{"id": "x", "text": "tea"}]}),
            httpx.post(f"{url}{COLLECTION}/fields", json={"fields": {"kind": "keyword"}}),
        ):
            assert request.json()["error"]["code"] == "collection_fenced"
    httpx.delete(f"{router}/aliases/now").raise_for_status()
    httpx.delete(f"{urls[0]}/aliases/now").raise_for_status()
    assert httpx.delete(f"{urls[0]}{COLLECTION}").json()["error"]["code"] == "collection_fenced"
