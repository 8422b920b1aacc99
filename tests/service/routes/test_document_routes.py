"""Documents over HTTP: each write is on the disk when it is answered, and the next search finds it."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.service.polling import pause

DEMO = "/collections/demo/documents"


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


async def test_many_writers_at_once_lose_nothing(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(put(client, {"id": f"{n:02d}", "text": "tea", "metadata": {"year": n}}) for n in range(60))
    )
    assert sorted(answer["position"] for answer in answers) == list(range(1, 61))
    assert len(await listed(client)) == 65


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
