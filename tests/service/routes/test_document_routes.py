"""Documents over HTTP: each write is on the disk when it is answered, and the next search finds it."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.index.errors import StorageFullError, WriteOverloadedError
from tercet.index.live.collection import LiveCollection
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tests.service.polling import pause

DEMO = "/collections/demo/documents"
WRITER = {"Authorization": "Bearer writer"}


def error_of(response: httpx.Response) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    return error


async def put(client: httpx.AsyncClient, *documents: dict[str, Any], **options: Any) -> dict[str, Any]:
    response = await client.put(DEMO, json={"documents": documents, **options})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def found(client: httpx.AsyncClient, query: str, **options: Any) -> dict[str, float]:
    """Ids and scores of the hits."""
    response = await client.post("/search", json={"collection": "demo", "query": query, **options})
    assert response.status_code == 200, response.text
    return {hit["id"]: hit["score"] for hit in response.json()["hits"]}


async def listed(client: httpx.AsyncClient, **parameters: Any) -> list[str]:
    """Ids of all pages."""
    ids: list[str] = []
    while True:
        response = await client.get(DEMO, params=parameters)
        assert response.status_code == 200, response.text
        ids += [document["id"] for document in response.json()["documents"]]
        parameters["after"] = response.json()["next"]
        if parameters["after"] is None:
            return ids


async def test_a_put_makes_the_collection_where_it_is_to(make_client: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    lines = ({"key": key, "access": key} for key in ("write", "admin"))
    keys.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    path, body = "/collections/new/documents", {"documents": [{"id": "a", "text": "hot tea"}]}
    async with make_client(keys_file=keys) as client:

        async def answer_to(key: str, **more: Any) -> tuple[int, Any]:
            header = {"Authorization": f"Bearer {key}"}
            answer = await client.put(path, json={**body, **more}, headers=header)
            return answer.status_code, answer.json()

        assert (await answer_to("admin"))[0] == (await answer_to("admin", create=False))[0] == 404
        status, refused = await answer_to("write", create=True)
        assert (status, refused["error"]["code"]) == (403, "admin_key_required")
        assert (await answer_to("admin"))[0] == 404, "nothing was made"
        assert (await answer_to("admin", create=True))[0] == 200
        status, again = await answer_to("write", create=True)
        assert (status, again["upserted"]) == (200, 1)


async def test_a_write_is_read_at_once(client: httpx.AsyncClient) -> None:
    """Each text has two special tokens beside its words."""
    answer = await put(
        client, {"id": "new", "text": "green water"}, {"id": "tea", "title": "hot", "text": "rail"}
    )
    assert answer == {"upserted": 2, "position": 1, "usage": {"tokens": 8}}
    got = (await client.get(f"{DEMO}/tea")).json()
    assert got == {"id": "tea", "title": "hot", "text": "rail", "metadata": {}}
    hits = await found(client, "green water")
    assert max(hits, key=hits.__getitem__) == "new"
    assert len(hits) == 6
    assert (await client.get("/collections/demo")).json()["documents"] == 6
    assert 'tercet_documents{collection="demo"} 6.0' in (await client.get("/metrics")).text
    assert (await client.delete(f"{DEMO}/new")).json() == {"deleted": 1, "position": 2}
    assert "new" not in await found(client, "green water")
    assert (await client.get(f"{DEMO}/new")).status_code == 404


async def test_written_documents_score_as_built_ones(
    make_client: Any, data: Path, tiny: Any, build: Any
) -> None:
    """The documents of `demo`, built, and written to an empty collection."""
    build(data, tiny, "built", "idf", bm25=True)
    async with make_client() as client:
        settings = {"lexical": "idf", "bm25": True, "fields": {"year": "integer", "kind": "keyword"}}
        await client.put("/collections/written", json=settings)
        documents = (await client.get("/collections/built/documents")).json()["documents"]
        for document in documents:
            response = await client.put("/collections/written/documents", json={"documents": [document]})
            assert response.status_code == 200, response.text
        hits = []
        for name in ("built", "written"):
            body = {
                "collection": name,
                "query": "hot tea",
                "weights": {"bm25": 1},
                "filter": {"exists": "kind"},
            }
            answer = (await client.post("/search", json=body)).json()
            hits.append([(hit["id"], hit["scores"]) for hit in answer["hits"]])
        assert hits[0] == hits[1]
        assert len(hits[0]) == 3


async def test_a_batch_is_written_whole_or_not_at_all(client: httpx.AsyncClient) -> None:
    good = {"id": "good", "text": "tea"}
    for bad, param, code in (
        ({"id": "good", "text": "water"}, "documents.1.id", "duplicate_document"),
        (
            {"id": "x", "text": "tea", "metadata": {"year": "old"}},
            "documents.1.metadata.year",
            "invalid_document",
        ),
        ({"id": "x" * 600, "text": "tea"}, "documents.1.id", "invalid_value"),
        ({"id": "é" * 500, "text": "tea"}, "documents.1.id", "invalid_document"),
        ({"id": "", "text": "tea"}, "documents.1.id", "invalid_value"),
        ({"id": "x"}, "documents.1.text", "missing_field"),
        ({"id": "x", "text": None}, "documents.1.text", "invalid_value"),
        ({"id": "x", "text": "tea", "colour": "red"}, "documents.1.colour", "unknown_field"),
        ({"id": "x", "text": "t" * 200_001}, "documents.1.text", "too_many_characters"),
        ({"id": "x", "text": "tea", "title": "t" * 200_001}, "documents.1.title", "too_many_characters"),
    ):
        response = await client.put(DEMO, json={"documents": [good, bad]})
        assert response.status_code == 422, response.text
        assert (error_of(response)["param"], error_of(response)["code"]) == (param, code)
    assert "'good'" in error_of(await client.put(DEMO, json={"documents": [good, good]}))["message"]
    assert (await client.get(f"{DEMO}/good")).status_code == 404
    assert (await put(client, good))["position"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"documents": []},
        {"documents": {"id": "x", "text": "x"}},
        {"documents": [{"id": "x", "text": "x"}], "if_position": -1},
        {"documents": [{"id": "x", "text": "x"}], "if_position": 2**63},
        {"documents": [{"id": "x", "text": "x"}], "idempotency_key": ""},
        {"documents": [{"id": "x", "text": "x"}], "idempotency_key": "é" * 200},
        {"documents": [{"id": 5.5, "text": "x"}]},
        {"documents": [{"id": True, "text": "x"}]},
        {"documents": [{"id": "x", "text": "x", "metadata": [1]}]},
    ],
)
async def test_bad_bodies_are_422(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    response = await client.put(DEMO, json=body)
    assert response.status_code == 422, response.text
    assert await listed(client) == ["black", "leaf", "rail", "steam/engine", "tea"]


async def test_any_id_works_in_a_path(client: httpx.AsyncClient) -> None:
    ids = [
        "a b",
        "a/b/c",
        "new\nline",
        "\n",
        "%2F",
        "한글",
        "?",
        "#",
        "delete",
        "..",
        ".",
        "a//b",
        "x/delete",
    ]
    await put(client, *({"id": id, "text": "tea"} for id in ids))
    for position, id in enumerate(ids, 2):
        path = f"{DEMO}/{quote(id, safe='')}"
        if id in ("..", "."):
            path = path.replace(".", "%2E")
        assert (await client.get(path)).json()["id"] == id
        patched = await client.patch(path, json={"metadata": {"seen": id}})
        assert patched.json() == {"position": 2 * position - 2}, patched.text
        assert (await client.get(path)).json()["metadata"] == {"seen": id}
        assert (await client.delete(path)).json() == {"deleted": 1, "position": 2 * position - 1}
    assert len(await listed(client)) == 5


async def test_deleting_what_is_not_there_is_no_error(client: httpx.AsyncClient) -> None:
    for id in ("none", "x" * 600, "%20"):
        assert (await client.delete(f"{DEMO}/{id}")).json() == {"deleted": 0, "position": 0}
    body = {"ids": ["tea", "none", "tea", "", "x" * 600]}
    assert (await client.post(f"{DEMO}/delete", json=body)).json() == {"deleted": 1, "position": 1}
    assert (await client.post(f"{DEMO}/delete", json=body)).json() == {"deleted": 0, "position": 1}


async def test_documents_are_deleted_by_filter(client: httpx.AsyncClient) -> None:
    body = {"filter": {"lt": {"year": 1900}}}
    assert (await client.post(f"{DEMO}/delete", json=body)).json() == {"deleted": 2, "position": 1}
    assert await listed(client) == ["black", "leaf", "tea"]
    for wrong, param in (
        ({}, "ids"),
        ({"ids": ["a"], "filter": {"exists": "year"}}, "ids"),
        ({"filter": {"near": {}}}, "filter"),
        ({"ids": []}, "ids"),
        ({"filter": {"exists": "colour"}}, "filter"),
    ):
        response = await client.post(f"{DEMO}/delete", json=wrong)
        assert response.status_code == 422, response.text
        assert error_of(response)["param"] == param
    assert len(await listed(client)) == 3


async def test_documents_are_counted(client: httpx.AsyncClient) -> None:
    async def count(body: Any) -> int:
        response = await client.post(f"{DEMO}/count", json=body)
        assert response.status_code == 200, response.text
        return int(response.json()["count"])

    assert (await client.post(f"{DEMO}/count")).json() == {"count": 5}
    assert [
        await count({}),
        await count({"filter": None}),
        await count({"filter": {"lt": {"year": 1900}}}),
    ] == [5, 5, 2]
    await put(client, {"id": "new", "text": "tea", "metadata": {"year": 1850}}, {"id": "tea", "text": "tea"})
    await client.post(f"{DEMO}/delete", json={"ids": ["rail"]})
    assert [await count({}), await count({"filter": {"lt": {"year": 1900}}})] == [5, 2]
    for wrong in ({"near": {}}, {"exists": "colour"}, 5):
        response = await client.post(f"{DEMO}/count", json={"filter": wrong})
        assert (response.status_code, error_of(response)["param"]) == (422, "filter")
    assert (await client.post("/collections/none/documents/count", json={})).status_code == 404


async def test_several_documents_are_given_by_their_ids(client: httpx.AsyncClient) -> None:
    ids = ["steam/engine", "none", "tea", "", "tea", "none", "x" * 600]
    got = (await client.post(f"{DEMO}/get", json={"ids": ids})).json()
    assert [document["id"] for document in got["documents"]] == ["steam/engine", "tea"]
    assert got["documents"][1] == (await client.get(f"{DEMO}/tea")).json()
    assert got["missing"] == ["none", "", "x" * 600]
    assert (await client.post(f"{DEMO}/get", json={"ids": ["none"]})).json() == {
        "documents": [],
        "missing": ["none"],
    }
    many = [f"n{number}" for number in range(1001)]
    assert len((await client.post(f"{DEMO}/get", json={"ids": many[:1000]})).json()["missing"]) == 1000
    for wrong in ([], many, [5.5], None):
        response = await client.post(f"{DEMO}/get", json={"ids": wrong})
        assert response.status_code in (413, 422), response.text
        assert str(error_of(response)["param"]).startswith("ids")


async def test_an_id_that_is_a_whole_number_is_its_digits(client: httpx.AsyncClient) -> None:
    await put(client, {"id": 7, "text": "seven"}, {"id": 8.0, "text": "eight"})
    assert (await client.get(f"{DEMO}/7")).json()["text"] == "seven"
    got = (await client.post(f"{DEMO}/get", json={"ids": [8, "7", 7.0]})).json()
    assert [document["text"] for document in got["documents"]] == ["eight", "seven"]  # each once
    twice = await client.put(DEMO, json={"documents": [{"id": 9, "text": "x"}, {"id": "9", "text": "y"}]})
    assert error_of(twice)["code"] == "duplicate_document"
    assert (await client.post(f"{DEMO}/delete", json={"ids": [7]})).json()["deleted"] == 1
    for wrong in (7.5, True, 1e300, float(2**53 + 2)):
        refused = await client.put(DEMO, json={"documents": [{"id": wrong, "text": "x"}]})
        assert (refused.status_code, error_of(refused)["param"]) == (422, "documents.0.id")


@pytest.mark.slow
async def test_pages_have_every_document_once(client: httpx.AsyncClient) -> None:
    await put(client, *({"id": f"{n:03d}", "text": "tea", "metadata": {"year": n}} for n in range(0, 250)))
    names = ["black", "leaf", "rail", "steam/engine", "tea"]
    numbers = [f"{n:03d}" for n in range(250)]
    for limit in (1, 7, 100, 101, 255, 1000):
        assert await listed(client, limit=limit) == numbers + names
    assert await listed(client) == numbers + names
    old = json.dumps({"gte": {"year": 245}})
    assert await listed(client, limit=3, filter=old) == [*numbers[245:], "rail", "steam/engine", "tea"]
    page = (await client.get(DEMO, params={"limit": 5, "after": "249"})).json()
    assert [document["id"] for document in page["documents"]] == names
    assert page["next"] is None
    assert (await client.get(DEMO, params={"after": "tea"})).json() == {"documents": [], "next": None}
    for wrong, param in (
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"after": ""}, "after"),
        ({"after": "x" * 600}, "after"),
        ({"filter": "{"}, "filter"),
        ({"filter": "{}"}, "filter"),
        ({"filter": '{"exists": "colour"}'}, "filter"),
    ):
        response = await client.get(DEMO, params=wrong)
        assert response.status_code == 422, response.text
        assert error_of(response)["param"] == param


async def test_a_patch_replaces_metadata_alone(client: httpx.AsyncClient) -> None:
    before = await found(client, "hot tea")
    changed = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": 1999, "note": "x"}})
    assert changed.json() == {"position": 1}
    got = (await client.get(f"{DEMO}/tea")).json()
    assert (got["title"], got["metadata"]) == ("green tea", {"year": 1999, "note": "x"})
    assert await found(client, "hot tea") == before
    assert await found(client, "hot tea", filter={"eq": {"year": 1999}}) == {"tea": before["tea"]}
    missing = await client.patch(f"{DEMO}/none", json={"metadata": {}})
    assert (missing.status_code, error_of(missing)["code"]) == (404, "document_not_found")
    assert (await client.patch(f"{DEMO}/{'x' * 600}", json={"metadata": {}})).status_code == 404
    wrong = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": "old"}})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")
    assert (await client.patch(f"{DEMO}/tea", json={})).status_code == 422


async def test_a_patch_may_be_merged(client: httpx.AsyncClient) -> None:
    await client.patch(f"{DEMO}/tea", json={"metadata": {"year": 1999, "note": "x", "by": {"a": 1, "b": 2}}})
    changes = {
        "year": None,
        "by": {"a": None, "c": {"d": 3, "e": None}},
        "note": {"text": "y"},
        "tags": ["t", None],
    }
    changed = await client.patch(f"{DEMO}/tea", json={"metadata": changes, "merge": True})
    assert changed.json() == {"position": 2}
    got = (await client.get(f"{DEMO}/tea")).json()["metadata"]
    assert got == {"note": {"text": "y"}, "by": {"b": 2, "c": {"d": 3}}, "tags": ["t", None]}
    assert (await client.post(f"{DEMO}/count", json={"filter": {"eq": {"year": 1999}}})).json() == {
        "count": 0
    }
    wrong = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": "old"}, "merge": True})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")
    key = {"metadata": {"n": 1}, "idempotency_key": "m"}
    assert (await client.patch(f"{DEMO}/tea", json={**key, "merge": True})).status_code == 200
    other = await client.patch(f"{DEMO}/tea", json=key)
    assert (other.status_code, error_of(other)["code"]) == (409, "idempotency_key_reused")


async def test_documents_are_changed_by_ids_and_by_filter(client: httpx.AsyncClient) -> None:
    async def change(body: Any) -> Any:
        return (await client.post(f"{DEMO}/update", json=body)).json()

    before = await found(client, "hot tea")
    body = {"ids": ["tea", "none", "", "rail"], "metadata": {"note": "x"}, "merge": True}
    assert await change(body) == {"updated": 2, "position": 1}
    body = {"filter": {"lt": {"year": 1900}}, "metadata": {"year": 1999}}
    assert await change(body) == {"updated": 2, "position": 2}
    assert await change(body) == {"updated": 0, "position": 2}
    several = (await client.post(f"{DEMO}/get", json={"ids": ["tea", "rail"]})).json()["documents"]
    assert several[0]["metadata"]["note"] == "x"
    assert several[1]["metadata"] == {"year": 1999}
    assert await found(client, "hot tea") == before
    keyed = {"ids": ["tea"], "metadata": {}, "idempotency_key": "u"}
    assert await change(keyed) == await change(keyed) == {"updated": 1, "position": 3}
    for wrong, param in (
        ({"metadata": {}}, "ids"),
        ({"ids": ["a"], "filter": {"exists": "year"}, "metadata": {}}, "ids"),
        ({"ids": ["a"]}, "metadata"),
        ({"filter": {"exists": "colour"}, "metadata": {}}, "filter"),
    ):
        response = await client.post(f"{DEMO}/update", json=wrong)
        assert (response.status_code, error_of(response)["param"]) == (422, param)
    wrong = await client.post(f"{DEMO}/update", json={"ids": ["tea"], "metadata": {"year": "old"}})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")


async def test_if_position_refuses_what_was_changed_since(client: httpx.AsyncClient) -> None:
    await put(client, {"id": "tea", "text": "first"}, if_position=0)
    stale = await client.put(DEMO, json={"documents": [{"id": "tea", "text": "second"}], "if_position": 0})
    assert (stale.status_code, error_of(stale)["code"]) == (409, "document_changed")
    late = await client.patch(f"{DEMO}/tea", json={"metadata": {}, "if_position": 0})
    assert late.status_code == 409
    assert (await client.get(f"{DEMO}/tea")).json()["text"] == "first"
    assert (await put(client, {"id": "tea", "text": "third"}, if_position=1))["position"] == 2
    assert (await put(client, {"id": "unknown", "text": "fourth"}, if_position=0))["position"] == 3
    fresh = await client.patch(f"{DEMO}/tea", json={"metadata": {}, "if_position": 2})
    assert fresh.json() == {"position": 4}


async def test_a_repeat_under_a_key_answers_the_same_and_encodes_nothing(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held) as client:
        body = {"documents": [{"id": "new", "text": "green"}], "idempotency_key": "k"}
        first = (await client.put(DEMO, json=body)).json()
        batches = len(held.texts)
        assert (await client.delete(f"{DEMO}/new")).json()["position"] == 2
        repeat = await client.put(DEMO, json=dict(reversed(body.items())))
        assert repeat.json() == first == {"upserted": 1, "position": 1, "usage": {"tokens": 3}}
        assert (await client.put(DEMO, json={**body, "if_position": None})).json() == first
        by_header = {"documents": body["documents"]}
        headers = {"Idempotency-Key": "k"}
        assert (await client.put(DEMO, json=by_header, headers=headers)).json() == first
        assert len(held.texts) == batches
        assert (await client.get(f"{DEMO}/new")).status_code == 404
        for method, path, other in (
            ("PUT", DEMO, {"documents": [{"id": "new", "text": "other"}], "idempotency_key": "k"}),
            ("PUT", DEMO, {**body, "if_position": 5}),
            ("POST", f"{DEMO}/delete", {"ids": ["tea"], "idempotency_key": "k"}),
            ("PATCH", f"{DEMO}/tea", {"metadata": {}, "idempotency_key": "k"}),
        ):
            response = await client.request(method, path, json=other)
            assert (response.status_code, error_of(response)["code"]) == (409, "idempotency_key_reused")
        reused = await client.delete(f"{DEMO}/tea", headers=headers)
        assert error_of(reused)["code"] == "idempotency_key_reused"
        differing = await client.put(DEMO, json=body, headers={"Idempotency-Key": "other"})
        assert (differing.status_code, error_of(differing)["param"]) == (422, "idempotency_key")


async def test_every_write_takes_a_key(client: httpx.AsyncClient) -> None:
    one = {"Idempotency-Key": "one"}
    for _ in range(2):
        assert (await client.delete(f"{DEMO}/tea", headers=one)).json() == {"deleted": 1, "position": 1}
        body = {"ids": ["leaf", "none"], "idempotency_key": "two"}
        assert (await client.post(f"{DEMO}/delete", json=body)).json() == {"deleted": 1, "position": 2}
        change = {"metadata": {"a": 1}, "idempotency_key": "three"}
        assert (await client.patch(f"{DEMO}/rail", json=change)).json() == {"position": 3}
    other = await client.delete(f"{DEMO}/rail", headers=one)
    assert error_of(other)["code"] == "idempotency_key_reused"


async def test_read_keys_write_nothing(make_client: Any) -> None:
    async with make_client(api_keys="writer", read_keys="reader") as client:
        for method, path, body in (
            ("PUT", DEMO, {"documents": [{"id": "x", "text": "tea"}]}),
            ("PATCH", f"{DEMO}/tea", {"metadata": {}}),
            ("DELETE", f"{DEMO}/tea", None),
            ("POST", f"{DEMO}/delete", {"ids": ["tea"]}),
        ):
            refused = await client.request(
                method, path, json=body, headers={"Authorization": "Bearer reader"}
            )
            assert (refused.status_code, error_of(refused)["code"]) == (403, "read_only_key")
            assert (await client.request(method, path, json=body, headers=WRITER)).status_code in (200, 404)
        reader = {"Authorization": "Bearer reader"}
        assert (await client.get(DEMO, headers=reader)).status_code == 200
        assert (await client.get(f"{DEMO}/rail", headers=reader)).status_code == 200


async def test_limits_are_413_with_the_number(make_client: Any) -> None:
    """Texts are cut at 32 tokens each."""
    async with make_client(max_write_documents=3, max_write_tokens=95) as client:
        many = [{"id": str(n), "text": "tea"} for n in range(4)]
        for response in (
            await client.put(DEMO, json={"documents": many}),
            await client.post(f"{DEMO}/delete", json={"ids": ["a", "b", "c", "d"]}),
        ):
            assert response.status_code == 413
            assert "4 items; the limit is 3 (setting max_write_documents)" in error_of(response)["message"]
        long = [{"id": str(n), "text": "tea " * 40} for n in range(3)]
        refused = await client.put(DEMO, json={"documents": long})
        assert refused.status_code == 413
        assert (
            "has 96 tokens and this server takes at most 95 at once (setting max_write_tokens)"
            in (error_of(refused)["message"])
        )
        assert (await put(client, *long[:2]))["truncated"] == 2
        limits = (await client.get("/info")).json()["limits"]
        assert (limits["write_documents"], limits["write_tokens"]) == (3, 95)


async def test_storage_that_fails_is_told_and_searches_go_on(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(client, {"id": "first", "text": "tea"})
    for error, status, code in (
        (StorageFullError("/secret is full"), 507, "storage_full"),
        (WriteOverloadedError("memory is full"), 429, "overloaded"),
    ):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(LiveCollection, "put", fail)
            response = await client.put(DEMO, json={"documents": [{"id": "second", "text": "tea"}]})
            assert (response.status_code, error_of(response)["code"]) == (status, code)
            assert ("Retry-After" in response.headers) == (status == 429)
            assert "secret" not in response.text
            assert "first" in await found(client, "tea")
    assert 'tercet_refused_total{reason="writes"} 1.0' in (await client.get("/metrics")).text
    assert (await put(client, {"id": "second", "text": "tea"}))["position"] == 2


async def test_a_collection_that_another_writes_is_busy(client: httpx.AsyncClient, data: Path) -> None:
    with Collection.open(data / "collections", "demo").writer():
        response = await client.put(DEMO, json={"documents": [{"id": "x", "text": "tea"}]})
        assert (response.status_code, error_of(response)["code"]) == (409, "collection_busy")
        assert len(await found(client, "tea")) == 5
    assert (await put(client, {"id": "x", "text": "tea"}))["position"] == 1


async def test_an_unknown_collection_is_404(client: httpx.AsyncClient) -> None:
    body = {"documents": [{"id": "x", "text": "tea"}]}
    for method, path, content in (
        ("PUT", "", body),
        ("GET", "", None),
        ("GET", "/x", None),
        ("DELETE", "/x", None),
        ("PATCH", "/x", {"metadata": {}}),
        ("POST", "/delete", {"ids": ["x"]}),
    ):
        response = await client.request(method, f"/collections/none/documents{path}", json=content)
        assert (response.status_code, error_of(response)["code"]) == (404, "collection_not_found")


async def test_another_encoder_than_the_collections_is_409(
    make_client: Any, data: Path, build: Any, tiny: Any
) -> None:
    build(data, type(tiny)(seed=1), "foreign")
    async with make_client() as client:
        path = "/collections/foreign/documents"
        refused = await client.put(path, json={"documents": [{"id": "x", "text": "tea"}]})
        assert (refused.status_code, error_of(refused)["code"]) == (409, "fingerprint_mismatch")
        # What needs no encoder goes on.
        assert (await client.patch(f"{path}/tea", json={"metadata": {}})).json() == {"position": 1}
        assert (await client.delete(f"{path}/tea")).json() == {"deleted": 1, "position": 2}


async def test_documents_of_a_collection_with_an_adapter_are_encoded_with_it(
    make_client: Any, data: Path, build: Any, tiny: Any
) -> None:
    async with make_client() as client:
        await client.put("/collections/lawful", json={"adapter": "law"})
        path = "/collections/lawful/documents"
        await client.put(path, json={"documents": [{"id": "x", "text": "hot tea"}]})
        answer = await client.post("/search", json={"collection": "lawful", "query": "hot tea"})
        (hit,) = answer.json()["hits"]
        assert hit["scores"]["dense"] == pytest.approx(1, abs=1e-3)


async def test_an_alias_is_written_as_its_collection(client: httpx.AsyncClient) -> None:
    await client.put("/aliases/second", json={"collection": "demo"})
    path = "/collections/second/documents"
    body = {"documents": [{"id": "x", "text": "tea"}], "idempotency_key": "k"}
    assert (await client.put(path, json=body)).json()["position"] == 1
    assert (await client.put(path, json=body)).json()["position"] == 1
    assert (await client.patch(f"{path}/x", json={"metadata": {"a": 1}})).json() == {"position": 2}
    assert (await client.get(f"{path}/x")).json() == (await client.get(f"{DEMO}/x")).json()
    assert (await client.get("/collections/second")).json()["documents"] == 6
    refused = await client.delete("/collections/demo")
    assert (refused.status_code, error_of(refused)["code"]) == (409, "collection_aliased")
    assert (await client.delete(f"{path}/x")).json() == {"deleted": 1, "position": 3}
    assert len(await listed(client)) == 5


async def test_a_deleted_collection_is_gone_with_its_ledger(client: httpx.AsyncClient, data: Path) -> None:
    await put(client, {"id": "x", "text": "tea"})
    assert (await client.delete("/collections/demo")).status_code == 204
    assert not (data / "collections" / "demo").exists()
    assert (await client.get(f"{DEMO}/x")).status_code == 404
    assert (await client.put("/collections/demo")).status_code == 201
    assert (await put(client, {"id": "y", "text": "tea"}))["position"] == 1
    assert await listed(client) == ["y"]


async def test_writes_last_beyond_the_server(make_client: Any) -> None:
    async with make_client() as client:
        await put(client, {"id": "x", "text": "green leaf"})
        await client.delete(f"{DEMO}/tea")
        hits = await found(client, "green leaf")
    async with make_client() as client:
        assert await found(client, "green leaf") == hits
        assert (await client.get("/collections/demo")).json()["documents"] == 5
        assert (await put(client, {"id": "y", "text": "tea"}))["position"] == 3


async def test_a_client_that_leaves_in_the_line_writes_nothing(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held) as client:
        held.gate.clear()
        first = asyncio.create_task(put(client, {"id": "first", "text": "tea"}))
        while "tercet_queue_tokens 3.0" not in (await client.get("/metrics")).text:
            await pause()
        second = asyncio.create_task(put(client, {"id": "second", "text": "tea"}))
        while "tercet_queue_tokens 6.0" not in (await client.get("/metrics")).text:
            await pause()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        held.gate.set()
        assert (await first)["position"] == 1
        assert (await put(client, {"id": "third", "text": "tea"}))["position"] == 2
        assert "second" not in await listed(client)


async def test_a_write_that_has_begun_is_finished_though_its_client_leaves(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()
    write = LiveCollection.put

    def slow(*values: Any, **options: Any) -> Any:
        begun.set()
        assert gate.wait(60)
        return write(*values, **options)

    monkeypatch.setattr(LiveCollection, "put", slow)
    leaving = asyncio.create_task(put(client, {"id": "left", "text": "tea"}))
    while not begun.is_set():
        await pause()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    gate.set()
    while (await client.get(f"{DEMO}/left")).status_code != 200:
        await pause()


async def test_many_writers_at_once_lose_nothing(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(put(client, {"id": f"{n:02d}", "text": "tea", "metadata": {"year": n}}) for n in range(60))
    )
    assert sorted(answer["position"] for answer in answers) == list(range(1, 61))
    assert len(await listed(client)) == 65


def texts_of(answer: dict[str, Any]) -> dict[str, Any]:
    """An item of `/embed`, with the fingerprint that made it, as a document brings it."""
    (item,) = answer["embeddings"]
    return {**item, "fingerprint": answer["fingerprint"]}


@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_ready_representations_are_taken_as_they_are(
    make_client: Any, held: Any, encoding: str
) -> None:
    async with make_client(encoder=held) as client:
        embedded = await client.post("/embed", json={"inputs": "hot tea", "encoding": encoding})
        batches = len(held.texts)
        ready = texts_of(embedded.json())
        answer = await put(client, {"id": "ready", "text": "other words", "representations": ready})
        assert answer == {"upserted": 1, "position": 1, "usage": {"tokens": 0}}
        assert len(held.texts) == batches
        # Of three documents one brings its own; the others are encoded, and each keeps its place.
        mixed = [
            {"id": "other", "text": "rail"},
            {"id": "ready", "text": "", "representations": ready},
            {"id": "plain", "text": "hot tea"},
        ]
        assert (await put(client, *mixed))["usage"] == {"tokens": 7}
        hits = await found(client, "hot tea")
        assert hits["plain"] == hits["ready"] == max(hits.values()) > hits["other"]


@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_what_is_stored_can_be_read_and_put_again(client: httpx.AsyncClient, encoding: str) -> None:
    parameters = {"representations": "true", "encoding": encoding}
    got = (await client.get(f"{DEMO}/tea", params=parameters)).json()
    stored = got["representations"]
    assert stored["position"] == 0
    assert set(stored) == {"fingerprint", "position", "dense", "sparse", "colbert"}
    assert stored["sparse"]["tokens"] == ["tea", "water", "hot", "brew", "green"]
    await put(client, {**got, "id": "copy"})
    copied = (await client.get(f"{DEMO}/copy", params=parameters)).json()
    assert copied["representations"]["position"] == 1
    assert copied["representations"]["dense"] == stored["dense"]
    hits = await found(client, "brew tea with water")
    assert hits["copy"] == pytest.approx(hits["tea"], abs=1e-5)


@pytest.mark.parametrize(
    ("change", "param", "status"),
    [
        ({"dense": [1.0, 0.0]}, ".dense", 422),
        ({"dense": [1.0] * 8}, ".dense", 422),
        ({"dense": None}, ".dense", 422),
        ({"sparse": {"token_ids": [5, 5], "weights": [1, 1]}}, ".sparse.token_ids", 422),
        ({"sparse": {"token_ids": [54], "weights": [1]}}, ".sparse.token_ids", 422),
        ({"sparse": {"token_ids": [5], "weights": []}}, ".sparse", 422),
        ({"colbert": [[1.0, 0.0, 0.0, 0.0], [1.0]]}, ".colbert.1", 422),
        ({"colbert": [[1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]]}, ".colbert", 422),
        ({"colbert": None}, ".colbert", 422),
        ({"dense": {"data": "AAAA", "shape": [8]}}, ".dense", 422),
        ({"windows": [{"start": 0, "end": 1}]}, ".dense", 422),
        ({"fingerprint": "other"}, None, 409),
    ],
)
async def test_ready_representations_are_checked(
    client: httpx.AsyncClient, change: dict[str, Any], param: str | None, status: int
) -> None:
    ready = texts_of((await client.post("/embed", json={"inputs": "hot tea"})).json())
    document = {"id": "x", "text": "tea", "representations": {**ready, **change}}
    response = await client.put(DEMO, json={"documents": [{"id": "y", "text": "tea"}, document]})
    assert response.status_code == status, response.text
    assert error_of(response)["param"] == (param and f"documents.1.representations{param}")
    assert len(await listed(client)) == 5


async def test_long_documents_are_cut_in_windows(
    make_client: Any, data: Path, tiny: Any, tmp_path: Path
) -> None:
    """As a build cuts them: the same hits, scores and windows."""
    text = "the train leaves a station " * 10 + "green leaf black steam"
    story = {"id": "story", "title": "hot tea", "text": text}
    note = {"id": "note", "text": "water"}
    source = tmp_path / "long.jsonl"
    source.write_text("\n".join(map(json.dumps, (story, note))))
    build_collection(
        LocalDocuments(tiny), data / "collections", "built", source, window=WindowSettings(16, 4)
    )
    async with make_client() as client:
        await client.put("/collections/written", json={"window": {"tokens": 16, "overlap": 4}})
        path = "/collections/written/documents"
        assert (await client.put(path, json={"documents": [story, note]})).status_code == 200
        body = {"query": "green leaf", "explain": True}
        answers = [
            (await client.post("/search", json={**body, "collection": name})).json()["hits"]
            for name in ("built", "written")
        ]
        assert answers[0] == answers[1]
        parameters = {"representations": "true"}
        got = (await client.get(f"{path}/story", params=parameters)).json()
        windows = got["representations"]["windows"]
        assert [windows[0]["start"], windows[-1]["end"]] == [0, len(text)]
        # Both windows and a whole text can be brought along.
        assert (await client.put(path, json={"documents": [{**got, "id": "copy"}]})).status_code == 200
        copied = (await client.get(f"{path}/copy", params=parameters)).json()
        assert [window["start"] for window in copied["representations"]["windows"]] == [
            window["start"] for window in windows
        ]
        whole = texts_of((await client.post("/embed", json={"inputs": "tea"})).json())
        document = {"id": "whole", "text": "tea", "representations": whole}
        assert (await client.put(path, json={"documents": [document]})).status_code == 200
        again = (await client.get(f"{path}/whole", params=parameters)).json()["representations"]
        np.testing.assert_allclose(again["colbert"], whole["colbert"], atol=0.01)
        assert "windows" not in again
        windows[0]["end"] = len(text) + 1
        outside = await client.put(path, json={"documents": [got]})
        assert (outside.status_code, error_of(outside)["code"]) == (422, "invalid_document")


async def test_windows_belong_to_collections_with_them(client: httpx.AsyncClient) -> None:
    ready = texts_of((await client.post("/embed", json={"inputs": "hot tea"})).json())
    fingerprint = ready.pop("fingerprint")
    windows = [{**ready, "start": 0, "end": 3}]
    document = {"id": "x", "text": "tea", "representations": {"fingerprint": fingerprint, "windows": windows}}
    response = await client.put(DEMO, json={"documents": [document]})
    assert (response.status_code, error_of(response)["param"]) == (
        422,
        "documents.0.representations.windows.0",
    )


async def test_a_collection_without_token_vectors_needs_none(client: httpx.AsyncClient) -> None:
    await client.put("/collections/small", json={"token_codec": "none"})
    path = "/collections/small/documents"
    ready = texts_of((await client.post("/embed", json={"inputs": "hot tea"})).json())
    documents = [
        {"id": "plain", "text": "hot tea"},
        {"id": "with", "text": "", "representations": ready},
        {"id": "without", "text": "", "representations": {**ready, "colbert": None}},
    ]
    assert (await client.put(path, json={"documents": documents})).status_code == 200
    got = (await client.get(f"{path}/with", params={"representations": "true"})).json()
    assert "colbert" not in got["representations"]
    answer = await client.post("/search", json={"collection": "small", "query": "hot tea"})
    assert len({hit["score"] for hit in answer.json()["hits"]}) == 1


async def test_metrics_tell_of_writes(client: httpx.AsyncClient) -> None:
    await put(client, {"id": "x", "text": "tea"}, {"id": "y", "text": "tea"})
    await client.patch(f"{DEMO}/x", json={"metadata": {}})
    await client.post(f"{DEMO}/delete", json={"ids": ["x", "y", "z"]})
    text = (await client.get("/metrics")).text
    for kind in ("put", "patch", "delete"):
        assert f'tercet_writes_total{{kind="{kind}"}} 1.0' in text
    assert "tercet_documents_written_total 3.0" in text
    assert "tercet_documents_deleted_total 2.0" in text
    assert 'tercet_write_seconds_count{stage="encode"} 1.0' in text
    for stage in ("log", "apply"):
        assert f'tercet_write_seconds_count{{stage="{stage}"}} 3.0' in text
    assert 'tercet_ledger_entries{collection="demo"} 3.0' in text
    assert 'tercet_segments{collection="demo"} 1.0' in text
    assert 'tercet_deleted_share{collection="demo"} 0.0' in text
    assert "tercet_flush_seconds_count 0.0" in text


async def test_statistics_tell_what_a_collection_holds(make_client: Any) -> None:
    async with make_client() as client:
        before = (await client.get("/collections/demo/stats")).json()
        assert before["bytes"].pop("dense") > 0
        assert {key: value for key, value in before.items() if key != "bytes"} == {
            "name": "demo",
            "documents": 5,
            "deleted": 0,
            "segments": 1,
            "unpublished": {"documents": 0, "bytes": 0},
            "ledger": {"entries": 0, "bytes": 0},
            "position": 0,
            "published_position": 0,
            "flushing": False,
            "merging": False,
        }
        await put(client, {"id": "x", "text": "tea"}, {"id": "tea", "text": "tea"})
        after = (await client.get("/collections/demo/stats")).json()
        assert (after["documents"], after["deleted"]) == (6, 1)
        assert (after["position"], after["published_position"]) == (1, 0)
        assert (after["unpublished"]["documents"], after["ledger"]["entries"]) == (2, 1)
        assert after["unpublished"]["bytes"] > 0
        assert (await client.get("/collections/none/stats")).status_code == 404
        text = (await client.get("/metrics")).text
        assert 'tercet_deleted_share{collection="demo"} 0.2' in text
    async with make_client(flush_seconds=0.01) as client:
        # A flush is counted once all of it is done, a moment after its documents are published.
        while "tercet_documents_flushed_total 2.0" not in (await client.get("/metrics")).text:
            await pause()
        text = (await client.get("/metrics")).text
        after = (await client.get("/collections/demo/stats")).json()
        assert (after["documents"], after["segments"], after["unpublished"]["documents"]) == (6, 2, 0)
        assert after["published_position"] == 1
        assert "tercet_flush_seconds_count 1.0" in text
        assert (await client.get("/collections/demo")).json()["snapshot"] == "000002"


async def test_memory_for_writes_is_bounded(make_client: Any) -> None:
    async with make_client(unpublished_documents=2) as client:
        many = [{"id": str(n), "text": "tea"} for n in range(3)]
        refused = await client.put(DEMO, json={"documents": many})
        assert (refused.status_code, error_of(refused)["code"]) == (413, "request_too_large")
        assert (await put(client, *many[:2]))["position"] == 1
