"""Collections and documents over HTTP."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.models.encoder import EncoderInfo, encode


async def test_create_describe_list_delete(client: httpx.AsyncClient, tiny: Any) -> None:
    body = {"dense_kind": "flat", "token_codec": "float16", "lexical": "idf", "fields": {"year": "integer"}}
    body |= {"title": "내 문서"}
    created = await client.put("/collections/mine", json=body)
    assert created.status_code == 201
    assert created.json() == {
        "name": "mine",
        "snapshot": None,
        "documents": 0,
        "model": "tiny",
        "adapter": None,
        "fingerprint": tiny.info.fingerprint,
        "dense_dimension": 8,
        "colbert_dimension": 4,
        "vocabulary_size": tiny.info.vocabulary_size,
        **body,
        "dense_memory_bytes": None,
        "token_pooling": 1,
        "bm25": False,
        "bm25_language": None,
        "window": {"tokens": 32, "overlap": 8},
        "partitioned": False,
        "defaults": None,
    }
    assert (await client.get("/collections/mine")).json() == created.json()
    again = await client.put("/collections/mine", json=body)
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "collection_exists"
    listed = (await client.get("/collections")).json()["collections"]
    assert [(each["name"], each["documents"]) for each in listed] == [("demo", 5), ("mine", 0)]
    deleted = await client.delete("/collections/mine")
    assert deleted.status_code == 204
    assert deleted.content == b""
    assert (await client.get("/collections/mine")).status_code == 404
    assert (await client.delete("/collections/mine")).status_code == 404


async def test_a_collection_that_was_written_exists(client: httpx.AsyncClient) -> None:
    written = await client.put(
        "/collections/demo/documents", json={"documents": [{"id": "x", "text": "tea"}]}
    )
    assert written.status_code == 200
    again = await client.put("/collections/demo")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "collection_exists")


@pytest.mark.parametrize(
    "options", [{}, {"json": {}}, {"json": None}, {"json": {"dense_kind": None, "fields": None}}]
)
async def test_all_settings_are_optional(client: httpx.AsyncClient, options: dict[str, Any]) -> None:
    created = await client.put("/collections/plain", **options)
    assert created.status_code == 201
    assert (created.json()["dense_kind"], created.json()["token_codec"]) == ("auto", "int8")
    assert created.json()["lexical"] == "plain"


async def test_the_encoder_recommends_what_is_not_chosen(make_client: Any, tiny: Any) -> None:
    class Advising(type(tiny)):  # type: ignore[misc]  # a fixture's class
        @property
        def info(self) -> EncoderInfo:
            return replace(super().info, lexical="idf")

    async with make_client(encoder=Advising()) as client:
        assert (await client.get("/info")).json()["encoder"]["lexical"] == "idf"
        for body, lexical in (({}, "idf"), ({"lexical": None}, "idf"), ({"lexical": "plain"}, "plain")):
            created = await client.put("/collections/mine", json=body)
            assert created.json()["lexical"] == lexical
            assert (await client.get("/collections/mine")).json()["lexical"] == lexical
            await client.delete("/collections/mine")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"dense_kind": "annoy"}, "dense_kind"),
        ({"dense_memory_bytes": 0}, "dense_memory_bytes"),
        ({"token_codec": 8}, "token_codec"),
        ({"token_codec": "sign"}, "token_codec"),  # of the tiny encoder's 4 values
        ({"token_pooling": 5}, "token_pooling"),
        ({"lexical": "bm25"}, "lexical"),
        ({"fields": {"year": "date"}}, "fields.year"),
        ({"fields": {"a\nb": "integer"}}, "fields"),
        ({"title": "a\nb"}, "title"),
        ({"title": "a" * 201}, "title"),
        ({"fields": {f"f{n}": "integer" for n in range(101)}}, "fields"),
        ({"codec": "int8"}, "codec"),
    ],
)
async def test_wrong_settings_are_422(client: httpx.AsyncClient, body: dict[str, Any], param: str) -> None:
    response = await client.put("/collections/wrong", json=body)
    assert response.status_code == 422
    assert response.json()["error"]["param"] == param


async def test_tokens_that_are_alike_may_share_a_vector(client: httpx.AsyncClient) -> None:
    kept = []
    for name, factor in (("whole", 1), ("pooled", 3)):
        created = await client.put(f"/collections/{name}", json={"token_pooling": factor})
        assert created.json()["token_pooling"] == factor
        text = "one two three four five six seven"
        written = await client.put(
            f"/collections/{name}/documents", json={"documents": [{"id": "a", "text": text}]}
        )
        assert written.status_code == 200, written.json()
        got = await client.get(f"/collections/{name}/documents/a", params={"representations": "true"})
        kept.append(len(got.json()["representations"]["colbert"]))
        explained = await client.post("/search", json={"collection": name, "query": "two", "explain": True})
        (hit,) = explained.json()["hits"]
        tokens = [pair["document_token"] for pair in hit["explanation"]["alignment"]]
        assert (tokens[0] is None) == (factor > 1), "a vector that tokens share is of none of them"
    assert kept[1] == -(-kept[0] // 3)


@pytest.mark.parametrize("name", ["Demo", "-a", "a" * 65, "a.b", "%20", "a%00", "é"])
async def test_wrong_names_are_422(client: httpx.AsyncClient, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        response = await client.request(method, f"/collections/{name}")
        assert response.status_code == 422
        assert response.json()["error"]["param"] == "name"


@pytest.mark.parametrize(
    ("document_id", "title"), [("tea", "green tea"), ("steam/engine", "steam"), ("leaf", None)]
)
async def test_a_document_by_its_id(client: httpx.AsyncClient, document_id: str, title: str | None) -> None:
    for escaped in (document_id, quote(document_id, safe="")):
        response = await client.get(f"/collections/demo/documents/{escaped}")
        assert response.status_code == 200
        assert set(response.json()) == {"id", "title", "text", "metadata"}
        assert (response.json()["id"], response.json()["title"]) == (document_id, title)


async def test_an_id_may_hold_any_character(make_client: Any, data: Path, tiny: Any) -> None:
    ids = ["new\nline", "\n", "end\n", "a//b", "%2F", "한글", " ", "\0"]
    documents = [Document(id, "tea") for id in ids]
    collection = Collection.open(data / "collections", "demo")
    with collection.writer() as writer:
        writer.add(documents, encode(tiny, ["tea"] * len(ids)))
        writer.publish()
    async with make_client() as client:
        for id in ids:
            response = await client.get(f"/collections/demo/documents/{quote(id, safe='')}")
            assert response.status_code == 200, id
            assert response.json()["id"] == id


async def test_an_empty_collection_has_nothing_to_search_yet(client: httpx.AsyncClient) -> None:
    await client.put("/collections/empty")
    response = await client.post("/search", json={"collection": "empty", "query": "tea"})
    assert response.status_code in (200, 404)
    assert (await client.get("/collections/empty/documents/x")).status_code == 404


async def test_defaults_are_stored_used_and_removed(client: httpx.AsyncClient) -> None:
    async def search() -> dict[str, Any]:
        answer: dict[str, Any] = (
            await client.post("/search", json={"collection": "demo", "query": "tea"})
        ).json()
        return {part: answer[part] for part in ("weights", "candidates")}

    usual, path = await search(), "/collections/demo/defaults"
    wanted = {"weights": {"dense": 1, "sparse": 0.25, "colbert": 2}, "candidates": {"dense": 50}}
    stored = await client.put(path, json=wanted)
    expected = {"weights": wanted["weights"], "candidates": {"dense": 50, "sparse": 200}}
    assert (stored.status_code, stored.json()["defaults"]) == (200, expected)
    assert await search() == expected
    for wrong, param in (
        ({"weights": {"bm25": 1}}, "weights.bm25"),
        ({"weights": {"dense": 0, "sparse": 0, "colbert": 0}}, "weights"),
        ({"weights": "sum", "candidates": {"dense": 0}}, "candidates.dense"),
        ({"candidates": {"dense": 5}}, "weights"),
    ):
        refused = await client.put(path, json=wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, param)
    assert (await client.delete(path)).json()["defaults"] is None
    assert await search() == usual
    assert (await client.put("/collections/none/defaults", json=wanted)).status_code == 404
