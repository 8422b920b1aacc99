"""Collections and requests with other encoders than the server's own, over HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.checkpoint import ENGLISH, MULTILINGUAL
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tests.service.polling import pause

pytestmark = pytest.mark.slow

DOCUMENTS = [
    {"id": "steam", "text": "Steam moves the engine of a train."},
    {"id": "tea", "text": "Green tea is brewed with hot water."},
]
QUERY = "how is tea made?"


def documents(folder: Path) -> Path:
    source = folder / "documents.jsonl"
    source.write_text("\n".join(map(json.dumps, DOCUMENTS)), "utf-8")
    return source


@pytest.fixture
def english(data: Path, tmp_path: Path) -> str:
    """A collection of the embedded checkpoint, beside those of the tiny one."""
    encoder = load_encoder(ENGLISH, threads=1)
    build_collection(LocalDocuments(encoder), data / "collections", "english", documents(tmp_path))
    return "english"


def error_of(response: httpx.Response) -> tuple[int, Any, Any]:
    error = response.json()["error"]
    return response.status_code, error["param"], error["code"]


async def test_one_server_searches_and_writes_collections_of_several_encoders(
    client: httpx.AsyncClient, english: str
) -> None:
    for collection, first in ((english, "tea"), ("demo", "black"), (english, "tea")):
        answer = await client.post(
            "/search", json={"collection": collection, "query": QUERY, "explain": True}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["hits"][0]["id"] == first
    path = f"/collections/{english}/documents"
    written = await client.put(path, json={"documents": [{"id": "rail", "text": "Rails carry trains."}]})
    assert written.status_code == 200, written.text
    found = await client.get(f"{path}/rail", params={"representations": True})
    assert len(found.json()["representations"]["dense"]) == 384
    metrics = (await client.get("/metrics")).text
    for name in ("tiny", ENGLISH):
        assert f'tercet_batch_texts_count{{model="{name}"}}' in metrics
        assert f'tercet_encoder_queue_tokens{{model="{name}"}} 0.0' in metrics


async def test_ready_representations_are_checked_against_the_collections_encoder(
    client: httpx.AsyncClient, english: str
) -> None:
    """The server's own has 8 values, and 48 token ids."""
    ready = {"dense": [0.0] * 383 + [1.0], "sparse": {"token_ids": [29_000], "weights": [1.0]}}
    body = {"query": ready, "weights": {"colbert": 0}}
    right = await client.post("/search", json={"collection": english, **body})
    assert right.status_code == 200, right.text
    wrong = await client.post("/search", json={"collection": "demo", **body})
    assert error_of(wrong) == (422, "query.dense", "invalid_value")


async def test_a_request_names_its_model(client: httpx.AsyncClient, tiny: Any) -> None:
    own = (await client.post("/embed", json={"inputs": "tea"})).json()
    assert own["model"] == "tiny"
    for model in ("tiny", tiny.info.fingerprint):
        assert (await client.post("/embed", json={"inputs": "tea", "model": model})).json() == own
    other = (await client.post("/embed", json={"inputs": "tea", "model": ENGLISH})).json()
    embedded = load_encoder(ENGLISH, threads=1)
    assert (other["model"], other["fingerprint"]) == (ENGLISH, embedded.info.fingerprint)
    dense = encode(embedded, ["tea"]).dense
    assert dense is not None
    assert np.allclose(other["embeddings"][0]["dense"], dense[0], atol=1e-5)
    compatible = (await client.post("/v1/embeddings", json={"input": "tea", "model": ENGLISH})).json()
    assert compatible["model"] == ENGLISH
    assert np.allclose(compatible["data"][0]["embedding"], dense[0], atol=1e-5)
    unknown = await client.post("/embed", json={"inputs": "tea", "model": "/etc"})
    assert error_of(unknown) == (404, "model", "model_not_found")
    listed = [each["id"] for each in (await client.get("/v1/models")).json()["data"]]
    assert listed[0] == "tiny"
    assert {ENGLISH, MULTILINGUAL} <= set(listed)


async def test_reranking_is_by_the_model_that_is_named_or_the_collections(
    client: httpx.AsyncClient, english: str
) -> None:
    texts = [document["text"] for document in DOCUMENTS]
    body = {"query": QUERY, "inputs": texts}
    named = await client.post("/rerank", json={**body, "model": ENGLISH})
    assert named.json()["results"][0]["index"] == 1
    of_collection = await client.post("/rerank", json={**body, "collection": english})
    assert of_collection.json()["results"][0]["scores"] != (named.json()["results"][0]["scores"])  # its idf
    both = await client.post("/rerank", json={**body, "collection": english, "model": ENGLISH})
    assert both.json()["results"] == of_collection.json()["results"]
    other = await client.post("/rerank", json={**body, "collection": english, "model": MULTILINGUAL})
    assert error_of(other) == (409, None, "fingerprint_mismatch")
    for path in ("/jina/v1/rerank", "/v2/rerank"):
        ranked = (
            await client.post(path, json={"query": QUERY, "documents": texts, "model": ENGLISH})
        ).json()["results"]
        assert ranked[0]["score"] == pytest.approx(named.json()["results"][0]["score"], abs=1e-4)


async def test_a_collection_is_created_for_the_encoder_that_is_named(client: httpx.AsyncClient) -> None:
    made = await client.put("/collections/new", json={"model": ENGLISH})
    assert (made.status_code, made.json()["model"], made.json()["dense_dimension"]) == (201, ENGLISH, 384)
    written = await client.put("/collections/new/documents", json={"documents": DOCUMENTS})
    assert written.status_code == 200, written.text
    found = await client.post("/search", json={"collection": "new", "query": QUERY})
    assert found.json()["hits"][0]["id"] == "tea"
    unknown = await client.put("/collections/none", json={"model": "BAAI/bge-m3"})
    assert error_of(unknown) == (404, "model", "model_not_found")


async def test_a_job_builds_with_the_encoder_that_is_named(make_client: Any, data: Path) -> None:
    """The revision of the server's own checkpoint is not that of another."""
    (data / "sources").mkdir()
    documents(data / "sources")
    path = "/collections/built/jobs"
    async with make_client(revision="v1") as client:
        job = await client.post(path, json={"source": "documents.jsonl", "model": ENGLISH})
        assert job.status_code == 202, job.text
        while (state := (await client.get(f"/jobs/{job.json()['id']}")).json())["finished_at"] is None:
            await pause()
        assert state["state"] == "succeeded", state
        assert (await client.get("/collections/built")).json()["model"] == ENGLISH
        other = await client.post(path, json={"source": "documents.jsonl", "model": MULTILINGUAL})
        assert error_of(other) == (409, None, "fingerprint_mismatch")


async def test_an_encoder_that_is_gone_is_503_until_it_is_back(
    make_client: Any, data: Path, tmp_path: Path, embedded_checkpoint: Path
) -> None:
    own = shutil.copytree(embedded_checkpoint, tmp_path / "ours")
    encoder = load_encoder(str(own), threads=1)
    build_collection(LocalDocuments(encoder), data / "collections", "ours", documents(tmp_path))
    assert Collection.open(data / "collections", "ours").settings.checkpoint == str(own)
    away = own.rename(tmp_path / "away")
    body = {"collection": "ours", "query": QUERY}
    async with make_client() as client:
        gone = await client.post("/search", json=body)
        assert error_of(gone) == (503, None, "encoder_unavailable")
        assert str(tmp_path) not in gone.text
        away.rename(own)
        assert (await client.post("/search", json=body)).json()["hits"][0]["id"] == "tea"
        assert (await client.post("/embed", json={"inputs": "tea", "model": "ours"})).status_code == 200
