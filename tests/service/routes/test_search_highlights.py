"""`"highlight": true` of `POST /search`: offsets into what the hit has, with BM25 and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.models.encoder import encode
from tercet.service.schemas.search_answers import SearchResponse


@pytest.fixture
def words(data: Path, tiny: Any) -> str:
    """A collection with BM25; its name."""
    root = data / "collections"
    found = Collection.open(root, "demo").settings
    named = {name: getattr(found, name) for name in found.__dataclass_fields__}
    collection = Collection.create(root, "words", type(found)(**{**named, "name": "words", "bm25": True}))
    documents = [
        Document("a", "🍵 The Café brews teas.", "Tea brewing"),
        Document("b", "Trains leave."),
        Document("c", "서울의 녹차는 맛있다"),
    ]
    with collection.writer() as writer:
        writer.add(documents, encode(tiny, [each.encoded_text for each in documents]))
        writer.publish()
    return "words"


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"highlight": True, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def parts(hit: dict[str, Any], name: str, field: str) -> list[str]:
    return [hit[field][each["start"] : each["end"]] for each in hit[name]]


async def test_words_are_found_as_bm25_reads_them(client: httpx.AsyncClient, words: str) -> None:
    for query, expected in (
        ("cafe tea brew", {"a": (["Café", "brews", "teas"], ["Tea", "brewing"])}),
        ("서울 녹차", {"c": (["서울", "녹차"], [])}),
    ):
        answer = await ask(client, collection=words, query=query, weights={"bm25": 1})
        SearchResponse.model_validate(answer)
        assert len(answer["hits"]) == 3
        for hit in answer["hits"]:
            text, title = expected.get(hit["id"], ([], []))
            assert parts(hit, "highlights", "text") == text
            assert parts(hit, "title_highlights", "title") == title


async def test_offsets_are_there_without_the_text(client: httpx.AsyncClient, words: str) -> None:
    options = {"collection": words, "query": "tea"}
    whole = (await ask(client, **options))["hits"]
    bare = (await ask(client, **options, include=["scores"]))["hits"]
    assert [hit["highlights"] for hit in bare] == [hit["highlights"] for hit in whole]
    assert not {"text", "title"} & bare[0].keys()
    several = await ask(client, collection=words, queries=["tea", "trains"])
    assert several["results"][0]["hits"] == whole
    assert parts(several["results"][1]["hits"][0], "highlights", "text") == ["Trains"]


async def test_a_collection_without_bm25_has_them_too(client: httpx.AsyncClient) -> None:
    hits = (await ask(client, collection="demo", query="how is Tea made"))["hits"]
    (tea,) = (hit for hit in hits if hit["id"] == "tea")
    assert "tea" in parts(tea, "highlights", "text")
    embedded = await client.post("/embed", json={"inputs": "tea", "input_type": "query"})
    (tea,) = (
        hit
        for hit in (await ask(client, collection="demo", query=embedded.json()["embeddings"][0]))["hits"]
        if hit["id"] == "tea"
    )
    assert "tea" in parts(tea, "highlights", "text")


async def test_they_are_left_out_where_nobody_asks(client: httpx.AsyncClient) -> None:
    response = await client.post("/search", json={"collection": "demo", "query": "tea", "highlight": None})
    assert not {"highlights", "title_highlights"} & response.json()["hits"][0].keys()
    response = await client.post("/search", json={"collection": "demo", "query": "tea", "highlight": 1})
    assert response.status_code == 422
    assert response.json()["error"]["param"] == "highlight"
