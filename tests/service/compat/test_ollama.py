"""Ollama's routes."""

from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.encoder import encode

TEXTS = ["hot water", "the green tea leaf"]


@pytest.mark.parametrize("model", ["tiny", "tiny:latest", "nomic-embed-text", None])
async def test_dense_vectors_whatever_the_model_is_called(
    client: httpx.AsyncClient, tiny: Any, model: str | None
) -> None:
    body = {"model": model, "input": TEXTS, "options": {"num_ctx": 512}, "keep_alive": "5m"}
    answer = (await client.post("/api/embed", json=body)).json()
    expected = encode(tiny, TEXTS)
    assert np.array_equal(np.array(answer["embeddings"], np.float32), expected.dense)
    assert (answer["model"], answer["prompt_eval_count"]) == ("tiny", int(expected.tokens.sum()))
    assert answer["total_duration"] > 0
    one = (await client.post("/api/embed", json={"model": model, "input": TEXTS[0]})).json()
    assert one["embeddings"] == answer["embeddings"][:1]
    former = (await client.post("/api/embeddings", json={"model": model, "prompt": TEXTS[0]})).json()
    assert former == {"embedding": answer["embeddings"][0]}


async def test_nothing_is_no_error(client: httpx.AsyncClient) -> None:
    assert (await client.post("/api/embed", json={"input": []})).json()["embeddings"] == []
    assert (await client.post("/api/embeddings", json={"prompt": ""})).json() == {"embedding": []}
    assert "prompt is missing" in (await client.post("/api/embeddings", json={})).json()["error"]


async def test_dimensions_are_kept_and_normalized(client: httpx.AsyncClient, tiny: Any) -> None:
    answer = (await client.post("/api/embed", json={"input": "tea", "dimensions": 4})).json()
    expected = encode(tiny, ["tea"]).with_dimensions(4).dense
    assert np.array_equal(np.array(answer["embeddings"], np.float32), expected)


async def test_models_are_told_as_clients_ask(client: httpx.AsyncClient, tiny: Any) -> None:
    (own, *_) = (await client.get("/api/tags")).json()["models"]
    assert (own["name"], own["model"], own["digest"]) == ("tiny", "tiny", tiny.info.fingerprint)
    shown = (await client.post("/api/show", json={"model": own["name"]})).json()
    assert shown["capabilities"] == ["embedding"]
    assert shown["model_info"]["bert.embedding_length"] == tiny.info.dense_dimension
    assert shown["model_info"]["bert.context_length"] == tiny.info.max_length
    version = (await client.get("/api/version")).json()["version"]
    assert version == (await client.get("/info")).json()["version"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "word"),
    [
        ("POST", "/api/embed", {}, 422, "input is missing"),
        ("POST", "/api/embed", {"input": 5}, 422, "a string or a list of strings"),
        ("POST", "/api/embed", {"input": ["tea " * 100], "truncate": False}, 422, "tokens"),
        ("POST", "/api/embed", {"input": ["tea"] * 1025}, 413, "max_texts"),
        ("POST", "/api/generate", {"prompt": "tea"}, 404, "there is no path '/api/generate'"),
        ("GET", "/api/embed", None, 405, "POST"),
    ],
)
async def test_errors_have_ollamas_shape(
    client: httpx.AsyncClient, method: str, path: str, body: Any, status: int, word: str
) -> None:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert word in answer.json()["error"]


async def test_a_key_is_needed_where_the_server_has_keys(make_client: Any) -> None:
    async with make_client(read_keys="key") as client:
        refused = await client.post("/api/embed", json={"input": "tea"})
        assert (refused.status_code, set(refused.json())) == (401, {"error"})
        headers = {"Authorization": "Bearer key"}
        assert (await client.post("/api/embed", json={"input": "tea"}, headers=headers)).status_code == 200
