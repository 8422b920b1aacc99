"""Collections with windows over HTTP: created, described, searched, explained."""

import json
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.document_windows import encoded_texts
from tercet.models.texts.windows import WindowCutter
from tercet.models.tokenizer import Tokenizer
from tercet.service.search import explanations

TEXT = "the train leaves a station " * 10 + "green leaf black steam"


@pytest.fixture
def long(data: Path, tiny: Any, tmp_path: Path) -> str:
    """A document of several windows, whose last words occur nowhere else, and a short one."""
    source = tmp_path / "long.jsonl"
    documents = [
        {"id": "story", "title": "hot tea", "text": TEXT},
        {"id": "note", "text": "water"},
    ]
    source.write_text("\n".join(map(json.dumps, documents)))
    build_collection(LocalDocuments(tiny), data / "collections", "long", source, window=WindowSettings(16, 4))
    return "long"


async def hits(client: httpx.AsyncClient, collection: str, **body: Any) -> dict[str, dict[str, Any]]:
    response = await client.post("/search", json={"collection": collection, "query": "green leaf", **body})
    assert response.status_code == 200, response.text
    return {hit["id"]: hit for hit in response.json()["hits"]}


async def test_a_hit_shows_its_best_window(client: httpx.AsyncClient, long: str) -> None:
    found = await hits(client, long)
    assert found["note"]["window"] == {"index": 0, "start": 0, "end": 5}
    window = found["story"]["window"]
    assert window["index"] > 2
    passage = TEXT[window["start"] : window["end"]]
    assert passage.endswith("green leaf black steam")
    assert found["story"]["text"] == TEXT
    assert all("window" not in hit for hit in (await hits(client, "demo")).values())


async def test_an_explanation_shows_the_windows(client: httpx.AsyncClient, long: str, tiny: Any) -> None:
    tokenizer: Tokenizer = tiny.tokenizer
    cutter = WindowCutter.of(tokenizer, 16, 4)
    texts = [part.text for part in encoded_texts(Document("story", TEXT, "hot tea"), cutter)]
    explanation = (await hits(client, long, explain=True))["story"]["explanation"]
    assert {term["token"] for term in explanation["terms"]} == {"green", "leaf"}
    for term in explanation["terms"]:
        assert term["window"] == next(place for place, text in enumerate(texts) if term["token"] in text)
    alignment = explanation["alignment"]
    (window,) = {aligned["window"] for aligned in alignment}
    tokens = tokenizer.token_strings(tokenizer.tokenize([texts[window]]).token_ids[1:])
    for aligned in alignment:
        assert aligned["document_token"] == tokens[aligned["document_position"]]
    assert [aligned["document_token"] for aligned in alignment[:2]] == ["green", "leaf"]
    for hit in (await hits(client, "demo", explain=True)).values():
        assert all("window" not in part for parts in hit["explanation"].values() for part in parts)


async def test_the_windows_of_all_hits_are_bounded_in_explanations(
    client: httpx.AsyncClient, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three token vectors times the windows of two hits; one hit alone is explained."""
    monkeypatch.setattr(explanations, "MAX_ALIGNED", 10)
    body = {"collection": long, "query": "green leaf", "explain": True}
    refused = await client.post("/search", json={**body, "top_k": 2})
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "explain"
    assert "windows of 2 hits with 3 tokens" in refused.json()["error"]["message"]
    assert (await client.post("/search", json={**body, "top_k": 1})).status_code == 200


@pytest.mark.slow
async def test_every_page_of_a_book_can_be_found(
    client: httpx.AsyncClient, data: Path, tiny: Any, tmp_path: Path
) -> None:
    """300 pages of some 2,000 characters, each with a sentence of its own; few candidates, among other books.

    A sentence is of three letters, which no other page has all of; the rest of the pages is the same.
    """
    sentences = [" ".join(letters) for letters in islice(combinations("abcdefghijklmn", 3), 300)]
    filler = "the train leaves station " * 79
    source = tmp_path / "books.jsonl"
    books = [{"id": "book", "text": "\n\n".join(f"{filler}{sentence}" for sentence in sentences)}]
    books += [{"id": f"other {place}", "text": "hot tea water " * 50} for place in range(30)]
    source.write_text("\n".join(map(json.dumps, books)))
    build_collection(
        LocalDocuments(tiny), data / "collections", "books", source, window=WindowSettings(32, 8)
    )
    for page in (299, 0, 150, 298):
        body = {"query": sentences[page], "top_k": 1, "candidates": {"dense": 2, "sparse": 2}}
        book = (await hits(client, "books", **body))["book"]
        window, text = book["window"], book["text"]
        assert sentences[page] in text[window["start"] : window["end"]]
        assert page * 1980 < window["end"] <= len(text)


@pytest.mark.parametrize(("asked", "overlap"), [({}, 4), ({"overlap": None}, 4), ({"overlap": 0}, 0)])
async def test_windows_are_set_at_creation(
    client: httpx.AsyncClient, asked: dict[str, Any], overlap: int
) -> None:
    created = await client.put("/collections/mine", json={"window": {"tokens": 16, **asked}})
    assert created.status_code == 201, created.text
    assert created.json()["window"] == {"tokens": 16, "overlap": overlap}
    assert (await client.get("/collections/mine")).json() == created.json()
    assert (await client.get("/collections/demo")).json()["window"] is None


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        ({}, {"tokens": 32, "overlap": 8}),
        ({"window": None}, {"tokens": 32, "overlap": 8}),
        ({"window": False}, None),
    ],
)
async def test_windows_are_as_long_as_the_encoder_reads_unless_there_shall_be_none(
    client: httpx.AsyncClient, asked: dict[str, Any], window: Any
) -> None:
    created = await client.put("/collections/mine", json=asked)
    assert (created.status_code, created.json()["window"]) == (201, window)
    text = "tea " * 40
    put = await client.put("/collections/mine/documents", json={"documents": [{"id": "a", "text": text}]})
    assert put.json().get("truncated") == (None if window else 1)


@pytest.mark.parametrize(
    ("window", "param", "part"),
    [
        ({}, "window.tokens", "is missing"),
        ({"tokens": 7}, "window.tokens", "is 7; use at least 8"),
        ({"tokens": 16, "overlap": 13}, "window.overlap", "use an integer from 0 to 12"),
        ({"tokens": 16, "overlap": -1}, "window.overlap", "is -1; use at least 0"),
        ({"tokens": 16, "stride": 8}, "window.stride", "no such field"),
        (
            {"tokens": 64},
            "window.tokens",
            "window.tokens is 64; this encoder takes at most 32: use 32 or less, or an encoder that takes",
        ),
        (
            {"tokens": 8, "overlap": 6},
            "window.overlap",
            "window.overlap is 6; windows of 8 tokens have room for 6",
        ),
        (16, "window", ""),
        (True, "window", ""),
        ("none", "window", ""),
    ],
)
async def test_other_windows_are_refused(
    client: httpx.AsyncClient, window: Any, param: str | None, part: str
) -> None:
    response = await client.put("/collections/mine", json={"window": window})
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["param"] == param
    assert part.lower() in error["message"].lower()
    assert (await client.get("/collections/mine")).status_code == 404
