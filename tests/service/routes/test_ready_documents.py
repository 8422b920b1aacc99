"""Documents with ready representations, in windows, and of encoders that lack a side."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tests.service.routes.test_document_routes import DEMO, error_of, found, listed, put


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
