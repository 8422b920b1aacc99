"""Cohere's routes: vectors, and the order of `/rerank` with a relevance from 0 to 1."""

import base64
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.service.compat.relevance import relevance

TEXTS = ["hot water", "the green tea leaf"]


async def embed(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/v2/embed", json={"model": "tiny", "input_type": "search_document", **body})


async def test_vectors_by_type(client: httpx.AsyncClient, tiny: Any) -> None:
    types = ["float", "base64", "ubinary", "binary", "int8", "uint8"]
    answer = (await embed(client, texts=TEXTS, embedding_types=types)).json()
    expected = encode(tiny, TEXTS).dense
    assert answer["response_type"] == "embeddings_by_type"
    assert answer["texts"] == TEXTS
    assert answer["meta"] == {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 10}}
    found = answer["embeddings"]
    assert list(found) == types
    assert np.array_equal(np.array(found["float"], np.float32), expected)
    packed = [np.frombuffer(base64.b64decode(one), "<f4") for one in found["base64"]]
    assert np.array_equal(packed, expected)
    bits = np.unpackbits(np.array(found["ubinary"], np.uint8), axis=1)[:, : expected.shape[1]]
    assert np.array_equal(bits.astype(bool), expected > 0)
    assert np.array_equal(np.array(found["binary"]) + 128, found["ubinary"])
    largest = np.abs(expected).max(1, keepdims=True)
    np.testing.assert_allclose(np.array(found["int8"]) / 127, expected / largest, atol=0.5 / 127 + 1e-6)
    assert np.array_equal(np.array(found["int8"]) + 128, found["uint8"])


async def test_inputs_of_parts_are_texts(client: httpx.AsyncClient) -> None:
    parts = [{"type": "text", "text": "hot"}, {"type": "text", "text": "water"}]
    mixed = (await embed(client, inputs=[{"content": parts}])).json()
    plain = (await embed(client, texts=["hot\nwater"])).json()
    assert mixed["embeddings"] == plain["embeddings"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "texts"),
        ({"texts": ["tea"], "truncate": "START"}, "START"),
        ({"texts": ["tea"], "embedding_types": ["int4"]}, "embedding_types"),
        ({"texts": ["tea"], "output_dimension": 10_000}, "output_dimension"),
        ({"texts": ["tea"], "output_dimension": 5, "embedding_types": ["binary"]}, "multiple of 8"),
        ({"inputs": [{"content": [{"type": "image_url", "text": "x"}]}]}, "inputs.0.content.0.type"),
    ],
)
async def test_errors_have_coheres_shape(client: httpx.AsyncClient, body: Any, word: str) -> None:
    response = await embed(client, **body)
    assert response.status_code == 422
    assert set(response.json()) == {"message", "code"}
    assert word in response.json()["message"]


async def test_long_texts_are_cut_unless_refused(client: httpx.AsyncClient) -> None:
    long = " ".join(["tea"] * 1000)
    assert (await embed(client, texts=[long])).status_code == 200
    refused = await embed(client, texts=[long], truncate="NONE")
    assert refused.status_code == 422
    assert refused.json()["code"] == "text_too_long"


@pytest.mark.parametrize("version", ["1", "2"])
async def test_reranking_is_that_of_rerank(client: httpx.AsyncClient, version: str) -> None:
    documents = ["black coffee", "green tea", "hot water for tea"]
    own = (await client.post("/rerank", json={"query": "tea", "inputs": documents})).json()["results"]
    body = {"model": "tiny", "query": "tea", "documents": documents, "return_documents": True}
    answer = (await client.post(f"/v{version}/rerank", json=body)).json()
    assert answer["meta"] == {"api_version": {"version": version}, "billed_units": {"search_units": 1}}
    results = answer["results"]
    assert [one["index"] for one in results] == [one["index"] for one in own]
    assert [one["scores"] for one in results] == [one["scores"] for one in own]
    assert [one["relevance_score"] for one in results] == [relevance(one["score"]) for one in own]
    assert results[0]["document"] == {"text": documents[results[0]["index"]]}
    top = (await client.post(f"/v{version}/rerank", json={**body, "top_n": 1})).json()["results"]
    assert top == results[:1]


async def test_documents_may_be_objects(client: httpx.AsyncClient) -> None:
    body = {"query": "tea", "documents": [{"text": "green tea", "title": "a"}, "coffee"]}
    assert (await client.post("/v1/rerank", json=body)).status_code == 200
    body = {"query": "tea", "documents": ["coffee", {"title": "a"}]}
    response = await client.post("/v1/rerank", json=body)
    assert response.status_code == 422
    assert response.json()["message"].startswith("documents.1 has no text")


def test_relevance_grows_and_stays_between_0_and_1() -> None:
    scores = np.linspace(-2, 6, 401)
    relevances = [relevance(score) for score in scores]
    assert all(0 < one < 1 for one in relevances)
    assert np.all(np.diff(relevances) > 0)
    assert relevance(1.0) == 0.5
    assert relevance(1.5) == pytest.approx(1 / (1 + np.exp(-2.0)))


@pytest.mark.parametrize("path", ["/v1/rerank", "/jina/v1/rerank"])
async def test_a_flag_may_be_text(client: httpx.AsyncClient, path: str) -> None:
    """RAGFlow's client for Xinference sends "true"."""
    body = {"query": "tea", "documents": TEXTS}
    for given, repeated in (("true", True), ("false", False), (True, True), (False, False)):
        answer = await client.post(path, json={**body, "return_documents": given})
        assert answer.status_code == 200, answer.text
        assert all(("document" in one) == repeated for one in answer.json()["results"])
    assert (await client.post(path, json={**body, "return_documents": "yes"})).status_code == 422
