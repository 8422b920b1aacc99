"""Aliases of several collections over HTTP: searched and read as one collection, and not written."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.models.encoder import encode
from tercet.service.collections.registry import CollectionRegistry

FIELDS = {"year": "integer", "kind": "keyword"}
SETTINGS = {"lexical": "idf", "bm25": True, "fields": FIELDS}
WORDS = ["tea", "hot water", "black tea leaf", "train on rail", "green tea", "rail", "hot leaf", "water"]
DOCUMENTS = [
    {
        "id": f"d{number:02d}",
        "text": f"{WORDS[number % 8]} {WORDS[number // 3 % 8]}",
        "metadata": {"year": 2000 + number % 5, "kind": ["drink", "road"][number % 2]},
    }
    for number in range(24)
]
SEARCHES: list[dict[str, Any]] = [
    {"query": "hot tea", "explain": True, "highlight": True},
    {"query": "tea leaf", "weights": {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0.5}, "fusion": "rrf"},
    {"query": "water", "filter": {"gte": {"year": 2002}}, "facets": {"kind": 5}, "group_by": "kind"},
    {"query": {"id": "d03"}},
    {"query": {"like": ["d01", "d04"], "unlike": ["d03"]}},
    {"query": "tea", "boosts": [{"filter": {"eq": {"kind": "drink"}}, "add": 0.5}], "explain": True},
    {"queries": ["tea", "rail"], "offset": 3},
]


@pytest.fixture
async def client(make_client: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Of one with `one` of all documents, and `all`, an alias of `right` and `left`, which share them."""
    async with make_client() as client:
        for name, documents in (
            ("one", DOCUMENTS),
            ("left", DOCUMENTS[::3]),
            ("right", [each for place, each in enumerate(DOCUMENTS) if place % 3]),
        ):
            assert (await client.put(f"/collections/{name}", json=SETTINGS)).status_code == 201
            put = await client.put(f"/collections/{name}/documents", json={"documents": documents})
            assert put.status_code == 200, put.text
        made = await client.put("/aliases/all", json={"collections": ["right", "left"]})
        assert made.json() == {"alias": "all", "collection": None, "collections": ["right", "left"]}
        yield client


def without_collections(found: Any) -> Any:
    """An answer but for what tells the collections and the time."""
    told = {"collection", "snapshot", "took_ms", "next"}
    if isinstance(found, dict):
        return {name: without_collections(each) for name, each in found.items() if name not in told}
    return [without_collections(each) for each in found] if isinstance(found, list) else found


async def asked(client: httpx.AsyncClient, name: str, **body: Any) -> Any:
    answer = await client.post("/search", json={"collection": name, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("body", SEARCHES, ids=lambda body: str(next(iter(body.values())))[:20])
async def test_a_search_of_several_is_that_of_one(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    one, several = await asked(client, "one", **body), await asked(client, "all", **body)
    assert without_collections(one) == without_collections(several)
    assert several["collection"] == "all"
    assert several["snapshot"] == "left:000000.1,right:000000.1"
    for result in several.get("results", [several]):
        for hit in result["hits"]:
            place = int(hit["id"][1:])
            assert hit["collection"] == ("right" if place % 3 else "left")


async def test_pages_of_several_are_those_of_one(client: httpx.AsyncClient) -> None:
    whole = (await asked(client, "one", query="tea", top_k=100))["hits"]
    found: list[Any] = []
    first = await asked(client, "all", query="tea", top_k=5)
    page = first["hits"]
    while page:
        found += page
        after = {name: page[-1][name] for name in ("id", "score", "collection")}
        more = await asked(
            client, "all", query="tea", top_k=5, search_after=after, snapshot=first["snapshot"]
        )
        page = more["hits"]
    assert without_collections(found) == without_collections(whole)


async def test_all_else_that_is_read_is_that_of_one(client: httpx.AsyncClient) -> None:
    body = {"query": "hot tea", "inputs": ["tea", "rail"]}
    ranked = [
        (await client.post("/rerank", json={"collection": name, **body})).json() for name in ("one", "all")
    ]
    assert ranked[0] == ranked[1]
    condition = {"filter": {"eq": {"kind": "road"}}}
    counts = [
        (await client.post(f"/collections/{name}/documents/count", json=condition)).json()
        for name in ("one", "all")
    ]
    assert counts == [{"count": 12}, {"count": 12}]
    ids = {"ids": ["d05", "none", "d03"]}
    got = [
        (await client.post(f"/collections/{name}/documents/get", json=ids)).json() for name in ("one", "all")
    ]
    assert got[0] == without_collections(got[1])
    assert [each["collection"] for each in got[1]["documents"]] == ["right", "left"]
    document = (await client.get("/collections/all/documents/d03?representations=true")).json()
    assert document["collection"] == "left"
    assert "dense" in document["representations"]
    missing = await client.get("/collections/all/documents/none")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "document_not_found")
    shown = (await client.get("/collections/all")).json()
    alone = (await client.get("/collections/one")).json()
    assert shown["collections"] == ["right", "left"]
    assert {**shown, "name": "one", "snapshot": None} == {**alone, "collections": ["right", "left"]}


@pytest.mark.parametrize("order", ["", "&order_by=year", "&order_by=kind&order=desc"])
async def test_lists_of_several_are_those_of_one(client: httpx.AsyncClient, order: str) -> None:
    listed = []
    for name in ("one", "all"):
        found, after = [], None
        while after is not None or not found:
            params = {} if after is None else {"after": after}
            page = await client.get(
                str(httpx.URL(f"/collections/{name}/documents?limit=7{order}").copy_merge_params(params))
            )
            assert page.status_code == 200, page.text
            found += page.json()["documents"]
            after = page.json()["next"]
        listed.append(without_collections(found))
    assert len(listed[0]) == 24
    assert listed[0] == listed[1]
    wrong = await client.get(f"/collections/all/documents?after=d03{order}")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "after")


WRITES = [
    ("PUT", "/collections/all/documents", {"documents": [{"id": "n", "text": "tea"}]}),
    ("PATCH", "/collections/all/documents/d03", {"metadata": {}}),
    ("DELETE", "/collections/all/documents/d03", None),
    ("POST", "/collections/all/documents/delete", {"ids": ["d03"]}),
    ("POST", "/collections/all/documents/update", {"ids": ["d03"], "metadata": {}}),
    ("POST", "/collections/all/fields", {"fields": {"more": "integer"}}),
    ("POST", "/collections/all/merge", None),
    ("POST", "/collections/all/backups", None),
    ("GET", "/collections/all/backups", None),
    ("POST", "/collections/all/backups/x/restore", None),
    ("DELETE", "/collections/all/backups/x", None),
    ("POST", "/collections/all/jobs", {"source": "tea.jsonl"}),
    ("GET", "/collections/all/stats", None),
    ("DELETE", "/collections/all", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=lambda value: str(value)[:40])
async def test_what_goes_to_one_collection_is_refused_by_the_names_of_all(
    client: httpx.AsyncClient, data: Path, method: str, path: str, body: Any
) -> None:
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    answer = await client.request(method, path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (409, "conflict", "alias_of_several")
    assert "alias 'all' means collections 'right' and 'left'" in error["message"]
    assert (await asked(client, "all", query="tea"))["snapshot"] == "left:000000.1,right:000000.1"


async def test_a_write_to_one_of_them_is_seen_and_an_id_in_both_is_told_apart(
    client: httpx.AsyncClient,
) -> None:
    copy = {"documents": [{**DOCUMENTS[3], "text": "tea copy"}]}
    await client.put("/collections/right/documents", json=copy)
    found = await asked(client, "all", query="tea", top_k=100)
    assert found["snapshot"] == "left:000000.1,right:000000.2"
    copies = {hit["collection"]: hit["text"] for hit in found["hits"] if hit["id"] == "d03"}
    assert copies == {"left": DOCUMENTS[3]["text"], "right": "tea copy"}
    for answer in (
        await client.get("/collections/all/documents/d03"),
        await client.post("/search", json={"collection": "all", "query": {"id": "d03"}}),
        await client.post("/search", json={"collection": "all", "query": {"like": ["d03"]}}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "document_ambiguous")
        assert "'d03' is in collections 'left' and 'right'" in answer.json()["error"]["message"]
    like = await asked(client, "all", query={"id": "d03", "collection": "right"}, top_k=100)
    assert like["hits"]
    assert "d03" not in {hit["id"] for hit in like["hits"]}
    explained = await asked(client, "all", query="copy", explain=True, top_k=100)
    terms = {
        hit["collection"]: [term["token"] for term in hit["explanation"]["terms"]]
        for hit in explained["hits"]
        if hit["id"] == "d03"
    }
    alone = await asked(client, "right", query="copy", explain=True, top_k=100)
    (hit,) = [hit for hit in alone["hits"] if hit["id"] == "d03"]
    assert terms["right"] == [term["token"] for term in hit["explanation"]["terms"]]
    got = (await client.post("/collections/all/documents/get", json={"ids": ["d03", "none"]})).json()
    assert [each["collection"] for each in got["documents"]] == ["left", "right"]
    assert got["missing"] == ["none"]
    page = (await client.get("/collections/all/documents?after=%5B%22d03%22,%22left%22%5D&limit=1")).json()
    assert (page["documents"][0]["collection"], page["next"]) == ("right", '["d03","right"]')


async def test_collections_that_are_no_longer_alike_are_refused_when_they_are_searched(
    client: httpx.AsyncClient, data: Path
) -> None:
    await client.put("/aliases/all", json={"collections": ["left", "one"]})
    await client.put("/collections/plain", json={**SETTINGS, "lexical": "plain"})
    refused = await client.put("/aliases/all", json={"collections": ["left", "plain"]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "collections_differ")
    await client.put("/aliases/all", json={"collection": "left"})
    await client.delete("/collections/one")
    await client.put("/collections/one", json=SETTINGS)
    await client.put("/aliases/all", json={"collections": ["left", "one"]})
    assert len((await asked(client, "all", query="tea", top_k=100))["hits"]) == 8
    aliases = data / "collections" / "aliases.json"  # as where the folder was replaced by hand
    kept = aliases.read_text()
    aliases.unlink()
    await client.delete("/collections/one")
    await client.put("/collections/one", json={**SETTINGS, "token_codec": "float16"})
    aliases.write_text(kept)
    for answer in (
        await client.post("/search", json={"collection": "all", "query": "tea"}),
        await client.get("/collections/all"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "collections_differ")
        assert "their token_codec is int8 in the one and float16" in answer.json()["error"]["message"]
    conflict = await client.delete("/collections/left")
    assert conflict.json()["error"]["code"] == "collection_aliased"


async def test_a_key_needs_the_aliass_name_to_use_it_and_all_names_to_make_it(
    make_client: Any, data: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.write_text(
        '{"key": "all", "access": "admin"}\n'
        '{"key": "alias", "access": "read", "collections": ["both"]}\n'
        '{"key": "some", "access": "admin", "collections": ["both", "demo"]}\n'
    )

    def of(key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    async with make_client(of("all"), keys_file=keys) as client:
        shown = (await client.get("/collections/demo")).json()
        body = {name: shown[name] for name in ("lexical", "bm25", "fields", "token_codec")}
        created = await client.put("/collections/other", json={**body, "window": False})
        assert created.status_code == 201, created.text
        names = {"collections": ["demo", "other"]}
        made = await client.put("/aliases/both", json=names, headers=of("some"))
        assert (made.status_code, made.json()["error"]["param"]) == (403, "collections.1")
        assert (await client.put("/aliases/both", json=names)).status_code == 200
        search = {"collection": "both", "query": "tea"}
        assert (await client.post("/search", json=search, headers=of("alias"))).status_code == 200
        search["collection"] = "demo"
        assert (await client.post("/search", json=search, headers=of("alias"))).status_code == 403


async def test_what_is_stored_with_the_first_counts(client: httpx.AsyncClient, data: Path) -> None:
    stored = SearchDefaults(Weights(1, 0.5, 0), CandidateLimits(11, 12), Tuning("000001", 10, 2, 0, 0.5, 0.6))
    Collection.open(data / "collections", "left").store_defaults(stored)
    assert (await asked(client, "all", query="tea"))["weights"]["sparse"] == 1.0
    assert (await client.get("/collections/all")).json()["defaults"] is None
    await client.put("/aliases/all", json={"collections": ["left", "right"]})
    found = await asked(client, "all", query="tea")
    assert (found["weights"]["sparse"], found["candidates"]["dense"]) == (0.5, 11)
    assert (await client.get("/collections/all")).json()["defaults"]["weights"]["sparse"] == 0.5


@pytest.mark.slow
async def test_the_snapshot_of_several_is_made_anew_only_where_one_is_another(
    data: Path, build: Any, tiny: Any
) -> None:
    build(data, tiny, "other")
    root = data / "collections"
    Aliases(root).put("all", "other", "demo")
    registry = CollectionRegistry(root)
    first = registry.snapshot("all")
    snapshots = await asyncio.gather(*(registry.open("all") for _ in range(20)))
    assert {id(snapshot) for snapshot in snapshots} == {id(first)}
    assert first.documents == registry.snapshot("demo").documents + registry.snapshot("other").documents
    with registry.writing("demo") as live:
        live.put([Document("n", "tea")], encode(tiny, ["tea"]))
    later = await registry.open("all")
    assert later is not first
    assert (later.documents, later.version) == (first.documents + 1, "demo:000001.1,other:000001")
    assert registry.snapshot("all") is later
    registry.release_superseded()
    assert await registry.open("all") is later
    Aliases(root).put("all", "demo")
    gone = weakref.ref(later)
    del later
    await registry.open("all")
    registry.release_superseded()
    gc.collect()
    assert gone() is None  # what nobody asks for any more takes no memory
    registry.close()
