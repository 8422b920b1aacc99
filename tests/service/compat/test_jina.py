"""Jina's routes: `/rerank` and ColBERT vectors in other shapes."""

import base64
from typing import Any

import httpx
import numpy as np
import pytest

from models.encoder import encode

TEXTS = ["hot water", "the green tea leaf"]


async def test_multi_vectors_are_the_colbert_vectors(client: httpx.AsyncClient, tiny: Any) -> None:
    body = {"model": "tiny", "input": [TEXTS[0], {"text": TEXTS[1]}]}
    answer = (await client.post("/jina/v1/multi-vector", json=body)).json()
    packed = (await client.post("/jina/v1/multi-vector", json={**body, "embedding_type": "base64"})).json()
    expected = encode(tiny, TEXTS).colbert
    assert answer["model"] == "tiny"
    assert answer["usage"] == {"total_tokens": 10}
    for row, (one, same) in enumerate(zip(answer["data"], packed["data"], strict=True)):
        assert (one["object"], one["index"]) == ("embeddings", row)
        assert np.array_equal(np.array(one["embeddings"], np.float32), expected.row(row))
        vectors = [np.frombuffer(base64.b64decode(vector), "<f4") for vector in same["embeddings"]]
        assert np.array_equal(vectors, expected.row(row))


async def test_queries_are_encoded_as_queries(client: httpx.AsyncClient, tiny: Any) -> None:
    body = {"input": ["tea"], "input_type": "query"}
    (one,) = (await client.post("/jina/v1/multi-vector", json=body)).json()["data"]
    expected = encode(tiny, ["tea"], "query").colbert.row(0)
    assert np.array_equal(np.array(one["embeddings"], np.float32), expected)


async def test_reranking_repeats_the_texts(client: httpx.AsyncClient) -> None:
    documents = ["black coffee", "green tea", "hot water for tea"]
    own = (await client.post("/rerank", json={"query": "tea", "documents": documents})).json()
    body = {"model": "tiny", "query": "tea", "documents": documents}
    answer = (await client.post("/jina/v1/rerank", json=body)).json()
    assert answer["usage"] == {"total_tokens": own["usage"]["tokens"]}
    assert [one["index"] for one in answer["results"]] == [one["index"] for one in own["results"]]
    assert [one["document"]["text"] for one in answer["results"]] == [
        documents[one["index"]] for one in own["results"]
    ]
    plain = (await client.post("/jina/v1/rerank", json={**body, "return_documents": False})).json()
    assert "document" not in plain["results"][0]


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("rerank", {"query": "tea", "documents": []}, "documents"),
        ("rerank", {"query": {"image": "x"}, "documents": ["tea"]}, "query"),
        ("multi-vector", {"input": ["tea"], "dimensions": 3}, "dimensions"),
        ("multi-vector", {"input": ["tea"], "embedding_type": "binary"}, "embedding_type"),
    ],
)
async def test_errors_have_jinas_shape(client: httpx.AsyncClient, path: str, body: Any, word: str) -> None:
    response = await client.post(f"/jina/v1/{path}", json=body)
    assert response.status_code == 422
    assert set(response.json()) == {"detail", "code"}
    assert word in response.json()["detail"]
