"""What Open WebUI, RAGFlow and Dify send over plain HTTP, as docs/recipes.md sets them up."""

from __future__ import annotations

import numpy as np
import pytest
import requests
from tercet_client import Client

TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."]
QUESTION = "which train crosses a bridge?"
CLOSE = 1e-5


def post(address: str, key: str | None, body: object) -> requests.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return requests.post(address, json=body, headers=headers, timeout=60)


@pytest.mark.parametrize("base", ["/v1", "/v1/", "/tei/v1"])
def test_vectors(url: str, key: str, client: Client, base: str) -> None:
    answer = post(f"{url}{base}/embeddings", key, {"input": TEXTS, "model": "tercet"})
    answer.raise_for_status()
    dense = client.embed(TEXTS, outputs=["dense"]).dense
    assert dense is not None
    assert np.allclose([one["embedding"] for one in answer.json()["data"]], dense, atol=CLOSE)
    assert answer.json()["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1//rerank", "/v2/rerank", "/jina/v1/rerank"])
def test_reranking(url: str, key: str, path: str) -> None:
    body = {"model": "tercet", "query": QUESTION, "documents": TEXTS, "top_n": 2, "return_documents": "true"}
    answer = post(url + path, key, body)
    answer.raise_for_status()
    scores = {one["index"]: one["relevance_score"] for one in answer.json()["results"]}
    assert 0 < scores[0] < scores[1] < 1


def test_dify_registers_and_asks(url: str, key: str, client: Client, collection: str) -> None:
    """It sends no body at first, and takes 403, 404 and 502 alone for failures."""
    address = f"{url}/dify/retrieval"
    failures = {403, 404, 502}
    bearer = {"Authorization": f"Bearer {key}"}
    assert requests.post(address, headers=bearer, timeout=60).status_code not in failures
    assert post(address, "wrong", {}).status_code == 403
    client.create_collection(collection, {"fields": {"kind": "keyword"}})
    kinds = ("drink", "travel")
    client.put_documents(
        collection,
        [
            {"id": kind, "text": text, "metadata": {"kind": kind}}
            for kind, text in zip(kinds, TEXTS, strict=True)
        ],
    )
    body = {
        "knowledge_id": collection,
        "query": QUESTION,
        "retrieval_setting": {"top_k": 2, "score_threshold": 0.0},
        "metadata_condition": None,
    }
    first, second = post(address, key, body).json()["records"]
    assert first["content"] == TEXTS[1]
    assert 0 < second["score"] < first["score"] < 1
    assert first["metadata"] == {"document_id": "travel", "kind": "travel"}
    conditions = [{"name": "kind", "comparison_operator": "is", "value": "drink"}]
    body["metadata_condition"] = {"logical_operator": "and", "conditions": conditions}
    (only,) = post(address, key, body).json()["records"]
    assert only["metadata"]["kind"] == "drink"
    gone = post(address, key, {**body, "knowledge_id": "no-such-collection"})
    assert (gone.status_code, gone.json()["error_code"]) == (404, 2001)
