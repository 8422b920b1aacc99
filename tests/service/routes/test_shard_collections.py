"""What routers ask of a shard about whole collections."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.catalog.settings import CollectionSettings
from tercet.service.answers.collection_settings import (
    codebook_from,
    codebook_text,
    settings_from,
    settings_record,
)

SHARD = "/shard/collections"


async def settings_of(client: httpx.AsyncClient, name: str = "demo") -> dict[str, Any]:
    """What a shard is given to make a collection like another one."""
    found = (await client.get(f"{SHARD}/{name}")).json()
    return {part: found[part] for part in ("settings", "later_fields", "codebook")}


def named(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {**record, "settings": {**record["settings"], "name": name}}


async def test_a_collection_is_made_like_another_once(client: httpx.AsyncClient) -> None:
    await client.put("/collections/words", json={"bm25": True, "lexical": "idf", "title": "Words"})
    await client.post("/collections/demo/fields", json={"fields": {"place": "keyword"}})
    for source in ("demo", "words"):
        wanted = named(await settings_of(client, source), f"{source}-2")
        for created in (True, False):
            answer = await client.put(f"{SHARD}/{source}-2", json=wanted)
            assert (answer.status_code, answer.json()) == (200, {"created": created, "part": None})
        own, like = [(await client.get(f"/collections/{name}")).json() for name in (source, f"{source}-2")]
        told = {"name", "documents", "snapshot"}
        assert {k: v for k, v in like.items() if k not in told} == {
            k: v for k, v in own.items() if k not in told
        }
    listed = (await client.get(SHARD)).json()["collections"]
    assert [each["settings"]["name"] for each in listed] == ["demo", "demo-2", "words", "words-2"]


def test_a_codebook_goes_along() -> None:
    settings = CollectionSettings("signs", "tiny", "f", 8, 8, 100, token_codec="sign")
    assert settings.codebook is not None
    codebook = codebook_from(codebook_text(settings))
    assert settings_from(settings_record(settings), codebook, "a test") == settings


async def test_one_with_documents_or_of_other_settings_is_a_conflict(client: httpx.AsyncClient) -> None:
    wanted = await settings_of(client)
    taken = await client.put(f"{SHARD}/demo", json=wanted)
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "collection_exists")
    assert (await client.put(f"{SHARD}/new", json=named(wanted, "new"))).json() == {
        "created": True,
        "part": None,
    }
    other = named({**wanted, "settings": {**wanted["settings"], "lexical": "idf"}}, "new")
    refused = await client.put(f"{SHARD}/new", json=other)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "collection_exists")
    await client.put("/aliases/again", json={"collection": "demo"})
    alias = await client.put(f"{SHARD}/again", json=named(wanted, "again"))
    assert (alias.status_code, alias.json()["error"]["code"]) == (409, "collection_exists")


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {}},
        {"settings": {"format_version": 9}},
        {"later_fields": {"x": "colour"}},
        {"codebook": "%"},
        {"codebook": "AAAA"},
    ],
)
async def test_what_makes_no_settings_is_refused(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    answer = await client.put(f"{SHARD}/new", json={**named(await settings_of(client), "new"), **change})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["param"] == "settings"


async def test_a_backup_has_the_id_that_all_shards_have(client: httpx.AsyncClient) -> None:
    path = f"{SHARD}/demo/backups"
    assert (await client.post(f"{path}/20261123t024501-ab12")).json()["id"] == "20261123t024501-ab12"
    for wrong in ("20261123t024501-ab12", "x", "..%2Fx"):
        assert (await client.post(f"{path}/{wrong}")).status_code in (404, 422)


@pytest.mark.parametrize("digest", ["x", "A" * 64, "0" * 63])
async def test_a_digest_is_one(client: httpx.AsyncClient, digest: str) -> None:
    body = {"documents": [{"id": "tea", "text": "tea"}], "idempotency_key": "k"}
    headers = {"Idempotency-Digest": digest}
    answer = await client.put("/collections/demo/documents", json=body, headers=headers)
    assert answer.status_code == 422


async def test_a_digest_tells_a_repeat_instead_of_the_body(client: httpx.AsyncClient) -> None:
    async def put(text: str, digest: str) -> httpx.Response:
        body = {"documents": [{"id": "tea", "text": text}], "idempotency_key": "k"}
        headers = {"Idempotency-Digest": digest}
        return await client.put("/collections/demo/documents", json=body, headers=headers)

    first = await put("green tea", "a" * 64)
    assert (await put("black tea", "a" * 64)).json() == first.json()
    assert (await put("green tea", "b" * 64)).json()["error"]["code"] == "idempotency_key_reused"


async def test_what_is_meant_for_another_part_is_refused(client: httpx.AsyncClient) -> None:
    """A router with an older map neither reads nor writes what it does not know of."""
    own, other = ShardPart("c", 0, 2, ((0, 512),)), ShardPart("c", 0, 3, ((0, 342),))
    wanted = named(await settings_of(client), "part")
    await client.put(f"{SHARD}/part", json={**wanted, "lineage": Lineage.new(part=own).record})
    documents = "/collections/part/documents"
    requests: list[tuple[str, str, Any]] = [
        ("PUT", documents, {"documents": [{"id": "a", "text": "tea"}]}),
        ("GET", f"{documents}/a", None),
        ("POST", f"{documents}/get", {"ids": ["a"]}),
        ("POST", f"{documents}/count", {}),
        ("GET", documents, None),
        ("POST", f"{documents}/update", {"ids": ["a"], "metadata": {}}),
        ("POST", "/search", {"collection": "part", "query": "tea"}),
        ("POST", f"{documents}/delete", {"ids": ["a"]}),
    ]
    for method, path, body in requests:
        refused = await client.request(method, path, json=body, headers={"Tercet-Part": other.tag})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "collection_moved")
        assert refused.headers["retry-after"] == "1"
        answered = await client.request(method, path, json=body, headers={"Tercet-Part": own.tag})
        assert answered.is_success
    no_part = await client.get("/collections/demo/documents", headers={"Tercet-Part": own.tag})
    assert no_part.is_success


async def test_a_shard_that_settles_takes_writes_as_another_part(client: httpx.AsyncClient) -> None:
    own, later = ShardPart("c", 0, 2, ((0, 512),)), ShardPart("c", 0, 3, ((0, 342),))
    wanted = named(await settings_of(client), "part")
    await client.put(f"{SHARD}/part", json={**wanted, "lineage": Lineage.new(part=own).record})
    part = {"number": 0, "of": 3, "buckets": [[0, 342]]}
    taking = await client.post(f"{SHARD}/part/settle", json={"version": 2, "part": part})
    assert (taking.status_code, taking.json()["error"]["code"]) == (409, "collection_busy")
    await client.put(f"{SHARD}/part/fence", json={"version": 2})
    for wrong in ({**part, "buckets": [[3, 2]]}, {**part, "buckets": 3}, {"number": 3, "of": 3}, {}):
        refused = await client.post(f"{SHARD}/part/settle", json={"version": 2, "part": wrong})
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, "part")
    for _ in range(2):
        settled = await client.post(f"{SHARD}/part/settle", json={"version": 2, "part": part})
        assert settled.is_success
    body = {"documents": [{"id": "a", "text": "tea"}]}
    put = await client.put("/collections/part/documents", json=body, headers={"Tercet-Part": later.tag})
    assert put.is_success
    received = await client.post(f"{SHARD}/part/receive", json={"folder": "shards/x-0"})
    assert received.json()["error"]["code"] == "unsupported"
