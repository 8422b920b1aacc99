"""Jina's routes: `/rerank` and ColBERT vectors in other shapes."""

import base64
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.encoder import encode

TEXTS = ["hot water", "the green tea leaf"]


@pytest.mark.parametrize("task", [None, "retrieval.passage", "text-matching", "retrieval.query"])
async def test_embeddings_are_the_dense_vectors_of_the_task(
    client: httpx.AsyncClient, tiny: Any, task: str | None
) -> None:
    body = {"model": "tiny", "task": task, "input": [TEXTS[0], {"text": TEXTS[1]}], "late_chunking": False}
    answer = (await client.post("/jina/v1/embeddings", json=body)).json()
    expected = encode(tiny, TEXTS, "query" if task == "retrieval.query" else "document")
    assert answer["model"] == "tiny"
    assert answer["usage"] == dict.fromkeys(("prompt_tokens", "total_tokens"), int(expected.tokens.sum()))
    assert [one["index"] for one in answer["data"]] == [0, 1]
    found = np.array([one["embedding"] for one in answer["data"]], np.float32)
    assert np.array_equal(found, expected.dense)


async def test_embeddings_come_in_jinas_forms(client: httpx.AsyncClient, tiny: Any) -> None:
    (dense,) = encode(tiny, TEXTS[:1]).dense

    async def one(form: Any) -> Any:
        body = {"input": TEXTS[0], "embedding_type": form}
        answer = await client.post("/jina/v1/embeddings", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"][0]["embedding"]

    assert np.array_equal(np.frombuffer(base64.b64decode(await one("base64")), "<f4"), dense)
    assert await one(["ubinary"]) == np.packbits(dense > 0).tolist()
    assert await one("binary") == (np.packbits(dense > 0).astype(int) - 128).tolist()
    short = await client.post("/jina/v1/embeddings", json={"input": TEXTS[0], "dimensions": 4})
    assert np.linalg.norm(short.json()["data"][0]["embedding"]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"late_chunking": True}, "late_chunking is true"),
        ({"return_multivector": True}, "/jina/v1/multi-vector"),
        ({"embedding_type": ["float", "base64"]}, "embedding_type has 2 forms"),
        ({"embedding_type": "int8"}, 'embedding_type is "int8"'),
        ({"embedding_type": "binary", "dimensions": 4}, "multiple of 8"),
        ({"dimensions": 10_000}, "dimensions is 10000"),
        ({"input": [{"image": "https://example.com/a.png"}]}, "input.0 has no text"),
        ({"input": []}, "input"),
        ({"input": ["tea " * 100], "truncate": False}, "tokens"),
    ],
)
async def test_embeddings_that_are_not_offered_are_refused_by_name(
    client: httpx.AsyncClient, more: dict[str, Any], word: str
) -> None:
    answer = await client.post("/jina/v1/embeddings", json={"input": ["tea"], **more})
    assert answer.status_code == 422
    assert set(answer.json()) == {"detail", "code"}
    assert word in answer.json()["detail"]


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
    own = (await client.post("/rerank", json={"query": "tea", "inputs": documents})).json()
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
