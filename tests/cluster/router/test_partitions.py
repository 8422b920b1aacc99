"""Partitions over shards: the answers of one machine, one shard for each of them, and no id in two."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import tercet
from tercet.cluster.shards.placement import Placement
from tercet.models.encoder import Encoder
from tercet.service.remote.http import HttpTransport
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tests.cluster.router.servers import DEMO, DOCUMENTS, Servers

pytestmark = pytest.mark.slow

WORDS = ("tea", "train", "water", "rail", "green", "steam", "leaf")
TENANTS = [f"tenant-{number}" for number in range(6)]
SETTINGS: dict[str, Any] = {"fields": {"year": "integer"}, "partitioned": True}
NOTES = [
    {
        "id": f"d{row}",
        "text": f"{WORDS[row % 7]} {WORDS[row % 5]} {WORDS[row % 3]}",
        "partition": TENANTS[row % 6],
        "metadata": {"year": 2000 + row % 4},
    }
    for row in range(36)
]


class Counting:
    """The way to a shard, which notes what is asked."""

    def __init__(self, inner: HttpTransport, asked: list[tuple[str, str]]) -> None:
        self._inner = inner
        self.name = inner.name
        self._asked = asked

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        self._asked.append((self.name, request.path))
        return await self._inner.request(request)


def over_three(servers: Servers, asked: list[tuple[str, str]], **settings: Any) -> tuple[str, list[str]]:
    """A router over three shards with the documents of all tenants, and the shards."""
    urls = [servers.start(f"shard-{number}") for number in range(3)]
    router = servers.start_router("router", lambda way: Counting(way, asked), *urls)
    httpx.put(f"{router}{DEMO}", json={**SETTINGS, **settings}).raise_for_status()
    httpx.put(f"{router}{DOCUMENTS}", json={"documents": NOTES}, timeout=60).raise_for_status()
    return router, urls


def shard_of(partition: str) -> int:
    return Placement.evenly(3).shard_of(partition)


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_one_machine_and_three_shards_answer_alike(servers: Servers, tmp_path: Path, tiny: Encoder) -> None:
    weighed: dict[str, Any] = {"lexical": "idf", "bm25": True}
    router, _ = over_three(servers, [], **weighed)
    one = servers.start("one")
    body = {"documents": NOTES[:1], "create": True}
    assert httpx.put(f"{one}/collections/made/documents", json=body).json()["upserted"] == 1
    assert httpx.get(f"{one}/collections/made").json()["partitioned"]
    httpx.put(f"{one}{DEMO}", json={**SETTINGS, **weighed}).raise_for_status()
    httpx.put(f"{one}{DOCUMENTS}", json={"documents": NOTES}, timeout=60).raise_for_status()
    with tercet.open(tmp_path / "embedded", encoder=tercet.Encoder(tiny)) as store:
        notes = store.collection("demo", create=True, **SETTINGS, **weighed)
        notes.put(NOTES)
        for tenant in (*TENANTS, "nobody"):
            search: dict[str, Any] = {
                "query": "green tea",
                "top_k": 20,
                "partition": tenant,
                "filter": {"gte": {"year": 2001}},
                "facets": {"partition": 3},
                "weights": {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0.5},
                "explain": True,
            }
            found = [
                httpx.post(f"{url}/search", json={"collection": "demo", **search}).raise_for_status().json()
                for url in (router, one)
            ]
            for part in ("hits", "facets", "exhausted"):
                assert found[0][part] == found[1][part]
            assert [hit["partition"] for hit in found[0]["hits"]] == [tenant] * len(found[0]["hits"])
            hits = notes.search(**search).hits
            assert [(hit.id, hit.score) for hit in hits] == [
                (hit["id"], hit["score"]) for hit in found[1]["hits"]
            ]
            assert len(hits) == notes.count(search["filter"], partition=tenant)
            counts = [
                httpx.post(f"{url}{DOCUMENTS}/count", json={"partition": tenant}).json()
                for url in (router, one)
            ]
            assert counts[0] == counts[1] == {"count": notes.count(partition=tenant)}
            lists = [
                httpx.get(f"{url}{DOCUMENTS}", params={"partition": tenant, "order_by": "year"}).json()
                for url in (router, one)
            ]
            assert lists[0] == lists[1]
        like = {"collection": "demo", "query": {"like": ["d1"]}, "partition": TENANTS[2]}
        answers = [httpx.post(f"{url}/search", json=like).raise_for_status().json() for url in (router, one)]
        assert answers[0]["hits"] == answers[1]["hits"] != []
    for path in ("/d7", "/d7?representations=true"):
        got = [httpx.get(f"{url}{DOCUMENTS}{path}").json() for url in (router, one)]
        assert got[0]["partition"] == got[1]["partition"] == got[1]["metadata"]["partition"] == TENANTS[1]
    for wrong in ({"partition": ""}, {"partition": 7}, {"partition": "x" * 513}):
        refused = [
            httpx.post(f"{url}/search", json={"collection": "demo", "query": "tea", **wrong})
            for url in (router, one)
        ]
        assert [(each.status_code, each.json()["error"]["param"]) for each in refused] == [
            (422, "partition")
        ] * 2


def test_what_is_of_one_partition_asks_one_shard(servers: Servers) -> None:
    asked: list[tuple[str, str]] = []
    router, urls = over_three(servers, asked, lexical="plain")
    search = {"collection": "demo", "query": "tea", "explain": True, "facets": ["partition"]}
    httpx.post(f"{router}/search", json=search).raise_for_status()
    assert {name for name, _ in asked} == set(urls)
    for tenant in TENANTS:
        within = {"partition": tenant}
        asked.clear()
        page = httpx.post(f"{router}/search", json={**search, **within}).raise_for_status().json()
        assert len(page["hits"]) == 6
        again = {**search, **within, "offset": 3, "snapshot": page["snapshot"]}
        later = httpx.post(f"{router}/search", json=again).raise_for_status().json()
        assert later["hits"] == page["hits"][3:]
        assert httpx.post(f"{router}{DOCUMENTS}/count", json=within).json() == {"count": 6}
        assert len(httpx.get(f"{router}{DOCUMENTS}", params=within).json()["documents"]) == 6
        ids = [hit["id"] for hit in page["hits"]] + ["d0" if tenant != TENANTS[0] else "d1"]
        got = httpx.post(f"{router}{DOCUMENTS}/get", json={"ids": ids, **within}).json()
        assert ([each["id"] for each in got["documents"]], got["missing"]) == (ids[:6], ids[6:])
        for id, status in ((ids[0], 200), (ids[6], 404)):
            assert httpx.get(f"{router}{DOCUMENTS}/{id}", params=within).status_code == status
        change = {"ids": ids, **within, "metadata": {"year": 2}}
        assert httpx.post(f"{router}{DOCUMENTS}/update", json=change).json()["updated"] == 6
        assert httpx.delete(f"{router}{DOCUMENTS}/{ids[6]}", params=within).json()["deleted"] == 0
        change = {**within, "metadata": {"year": 1}}
        assert httpx.post(f"{router}{DOCUMENTS}/update", json=change).json()["updated"] == 6
        delete = {"ids": ids[4:], **within}
        assert httpx.post(f"{router}{DOCUMENTS}/delete", json=delete).json()["deleted"] == 2
        assert httpx.post(f"{router}{DOCUMENTS}/delete", json=within).json()["deleted"] == 4
        # What aliases there are is asked anew once in a while, of the shard that has them.
        assert {name for name, path in asked if path != "/aliases"} == {urls[shard_of(tenant)]}


def test_documents_are_found_by_id_alone(servers: Servers) -> None:
    router, urls = over_three(servers, [])
    for tenant in TENANTS:
        shards = {
            url
            for url in urls
            if httpx.get(f"{url}{DOCUMENTS}", params={"partition": tenant}).json()["documents"]
        }
        assert shards == {urls[shard_of(tenant)]}
    ids = [f"d{row}" for row in range(8)]
    found = httpx.post(f"{router}{DOCUMENTS}/get", json={"ids": [*ids, "gone"]}).json()
    assert [each["id"] for each in found["documents"]] == ids
    assert found["missing"] == ["gone"]
    for id in ids[:6]:
        httpx.patch(f"{router}{DOCUMENTS}/{id}", json={"metadata": {"year": 7}}).raise_for_status()
        assert httpx.get(f"{router}{DOCUMENTS}/{id}").json()["metadata"]["year"] == 7
    assert error_of(httpx.patch(f"{router}{DOCUMENTS}/gone", json={"metadata": {}})) == (
        404,
        "document_not_found",
    )
    assert httpx.get(f"{router}{DOCUMENTS}/gone").status_code == 404
    for url, tenant in zip(urls, TENANTS, strict=False):  # as where a shard started anew amid two puts
        twice = {"documents": [{"id": "twice", "text": "tea", "partition": tenant}]}
        httpx.put(f"{url}{DOCUMENTS}", json=twice, timeout=60).raise_for_status()
    assert httpx.get(f"{router}{DOCUMENTS}/twice").status_code == 200
    assert httpx.delete(f"{router}{DOCUMENTS}/twice").json()["deleted"] == len(urls)
    update = {"ids": [*ids, "gone"], "metadata": {"year": 8}, "idempotency_key": "once"}
    for _ in range(2):
        assert httpx.post(f"{router}{DOCUMENTS}/update", json=update).json()["updated"] == 8
    delete = {"ids": [*ids[:6], "gone"], "idempotency_key": "once more"}
    for _ in range(2):
        assert httpx.post(f"{router}{DOCUMENTS}/delete", json=delete).json()["deleted"] == 6
    assert httpx.delete(f"{router}{DOCUMENTS}/d6").json()["deleted"] == 1
    too_long = {"ids": ["x" * 600]}  # which no document has
    assert httpx.post(f"{router}{DOCUMENTS}/delete", json=too_long).json()["deleted"] == 0
    assert httpx.post(f"{router}{DOCUMENTS}/count", json={}).json() == {"count": 29}


def test_an_id_in_two_collections_of_an_alias_is_told_apart(servers: Servers) -> None:
    """Wherever the other one's document lies."""
    router, _ = over_three(servers, [])
    httpx.put(f"{router}/collections/other", json=SETTINGS).raise_for_status()
    httpx.put(f"{router}/aliases/both", json={"collections": ["demo", "other"]}).raise_for_status()
    for tenant in TENANTS:
        document = {"id": "d0", "text": "tea", "partition": tenant}
        httpx.put(f"{router}/collections/other/documents", json={"documents": [document]}).raise_for_status()
        for answer in (
            httpx.get(f"{router}/collections/both/documents/d0"),
            httpx.post(f"{router}/search", json={"collection": "both", "query": {"id": "d0"}}),
        ):
            assert error_of(answer) == (409, "document_ambiguous")
            assert "'d0' is in collections 'demo' and 'other'" in answer.json()["error"]["message"]
        httpx.delete(f"{router}/collections/other/documents/d0").raise_for_status()
        assert httpx.get(f"{router}/collections/both/documents/d0").json()["collection"] == "demo"


def test_no_id_is_in_two_partitions(servers: Servers) -> None:
    """Neither of writes one after the other, nor of two at the same time through two routers."""
    router, urls = over_three(servers, [])
    second = servers.start("second", shards=",".join(urls))
    first, other = next((one, two) for one in TENANTS for two in TENANTS if shard_of(one) != shard_of(two))

    def put(url: str, id: str, partition: str) -> httpx.Response:
        body = {"documents": [{"id": id, "text": "tea", "partition": partition}]}
        return httpx.put(f"{url}{DOCUMENTS}", json=body, timeout=60)

    assert put(router, "x", first).is_success
    for tenant in TENANTS:
        expected = (200, "") if tenant == first else (409, "partition_conflict")
        answer = put(second, "x", tenant)
        assert (answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]) == expected
    assert httpx.delete(f"{router}{DOCUMENTS}/x").json()["deleted"] == 1
    assert put(router, "x", other).is_success
    same = next(name for name in map("another-{}".format, range(99)) if shard_of(name) == shard_of(other))
    batch = [{"id": "y", "text": "tea", "partition": first}, {"id": "x", "text": "tea", "partition": same}]
    answer = httpx.put(f"{second}{DOCUMENTS}", json={"documents": batch}, timeout=60)
    assert error_of(answer) == (409, "partition_conflict")
    assert put(router, "y", other).is_success, "a conflict on the own shard left a part or a claim behind"
    there = [{"id": "x", "text": "tea", "partition": other}, {"id": "z", "text": "tea", "partition": first}]
    body = {"documents": there, "if_position": "0.0.0"}
    answer = httpx.put(f"{router}{DOCUMENTS}", json=body, timeout=60)
    assert error_of(answer) == (409, "write_incomplete"), "z is new, and x was written before"
    assert httpx.delete(f"{router}{DOCUMENTS}/x").json()["deleted"] == 1
    assert put(router, "x", first).is_success, "claims of a put that was refused have not ended"
    with ThreadPoolExecutor(2) as pool:
        for number in range(20):
            id = f"new-{number}"
            answers = list(pool.map(put, (router, second), (id, id), (first, other)))
            assert {answer.status_code for answer in answers} <= {200, 409}
            there = [httpx.get(f"{url}{DOCUMENTS}/{id}").status_code for url in urls].count(200)
            assert there == [answer.status_code for answer in answers].count(200) <= 1


def test_what_is_no_partition_is_refused(servers: Servers) -> None:
    router, _ = over_three(servers, [])
    one = servers.start("one")
    httpx.put(f"{one}/collections/plain", json={}).raise_for_status()
    for documents in ([{"id": "a", "text": "tea"}], [{"id": "a", "text": "tea", "partition": "é" * 257}]):
        refused = httpx.put(f"{router}{DOCUMENTS}", json={"documents": documents})
        assert error_of(refused) == (422, "invalid_document")
        assert refused.json()["error"]["param"] == "documents.0.partition"
    unlike = {"id": "a", "text": "tea", "partition": "t", "metadata": {"partition": "u"}}
    assert error_of(httpx.put(f"{router}{DOCUMENTS}", json={"documents": [unlike]}))[0] == 422
    search = {"collection": "plain", "query": "tea", "partition": "t"}
    refused = httpx.post(f"{one}/search", json=search)
    assert error_of(refused) == (422, "invalid_filter")
    assert '"partitioned": true' in refused.json()["error"]["message"]
