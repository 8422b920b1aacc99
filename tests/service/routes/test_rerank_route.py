"""`POST /rerank` to the letter of its contract."""

from typing import Any

import httpx
import pytest

from tercet.models.encoder import encode


async def test_rerank_scores_texts_three_ways(client: httpx.AsyncClient, tiny: Any) -> None:
    documents = ["the train station", "hot tea", "tea leaf", "hot tea"]
    response = await client.post("/rerank", json={"query": "hot tea", "inputs": documents})
    assert response.status_code == 200
    answer = response.json()
    assert [result["index"] for result in answer["results"]][:2] == [1, 3]
    query, encoded = encode(tiny, ["hot tea"], "query"), encode(tiny, documents)
    for result in answer["results"]:
        row = result["index"]
        scores = result["scores"]
        assert scores["dense"] == pytest.approx(float(encoded.dense[row] @ query.dense[0]), abs=1e-5)
        best = (query.colbert.vectors @ encoded.colbert.row(row).T).max(axis=1)
        assert scores["colbert"] == pytest.approx(float(best.mean()), abs=1e-5)
        assert result["score"] == pytest.approx(sum(scores.values()), abs=1e-6)
        assert result["truncated"] is False
    assert answer["usage"]["tokens"] == 4 + 5 + 4 + 4 + 4
    assert answer["query"] == {"tokens": 4, "truncated": False}
    long = await client.post("/rerank", json={"query": "tea " * 100, "inputs": ["tea"]})
    assert long.json()["query"] == {"tokens": 32, "truncated": True}
    weighted = await client.post(
        "/rerank",
        json={"query": "hot tea", "inputs": documents, "top_k": 1, "weights": {"dense": 0, "colbert": 0}},
    )
    (only,) = weighted.json()["results"]
    assert only["score"] == pytest.approx(only["scores"]["sparse"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"query": "a"}, 422, "inputs"),
        ({"query": "a", "inputs": []}, 422, "inputs"),
        ({"query": "a", "inputs": ["a"], "top_k": 0}, 422, "top_k"),
        ({"query": "a", "inputs": ["a"], "weights": "x"}, 422, "weights"),
        ({"query": ["a"], "inputs": ["a"]}, 422, "query"),
        ({"query": "a", "inputs": ["a"] * 1025}, 413, "inputs"),
    ],
)
async def test_wrong_values_of_rerank(client: httpx.AsyncClient, body: Any, status: int, param: str) -> None:
    response = await client.post("/rerank", json=body)
    assert response.status_code == status
    assert response.json()["error"]["param"] == param
