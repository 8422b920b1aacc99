"""Documents with their representations in one safetensors body."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load, save

DEMO = "/collections/demo/documents"
TYPE = {"Content-Type": "application/x-safetensors"}
DOCUMENTS = [
    {"id": "one", "text": "hot tea", "metadata": {"year": 2001}},
    {"id": "two", "text": "the train", "title": "steam"},
]


def lines_of(documents: list[Any]) -> Any:
    return np.frombuffer("\n".join(map(json.dumps, documents)).encode(), np.uint8)


async def embedded(client: httpx.AsyncClient, *texts: str) -> tuple[dict[str, Any], str]:
    """The arrays that `/embed` gives, and the encoder's fingerprint."""
    answer = await client.post(
        "/embed", json={"inputs": texts}, headers={"Accept": "application/x-safetensors"}
    )
    body = answer.content
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    return load(body), header["__metadata__"]["fingerprint"]


@pytest.fixture
async def parts(client: httpx.AsyncClient) -> tuple[dict[str, Any], dict[str, str]]:
    """Arrays and metadata of a good body."""
    arrays, fingerprint = await embedded(client, "hot tea", "steam\nthe train")
    return {**arrays, "documents": lines_of(DOCUMENTS)}, {"fingerprint": fingerprint}


async def put(
    client: httpx.AsyncClient, arrays: dict[str, Any], metadata: dict[str, str], **options: Any
) -> httpx.Response:
    return await client.put(DEMO, content=save(arrays, metadata), headers=TYPE, **options)


def error_of(response: httpx.Response) -> tuple[int, Any, Any]:
    error = response.json()["error"]
    return response.status_code, error["param"], error["code"]


@pytest.mark.parametrize("kind", ["application/x-safetensors", "application/octet-stream; x=y"])
async def test_what_embed_gives_can_be_put(client: httpx.AsyncClient, parts: Any, kind: str) -> None:
    arrays, metadata = parts
    answer = await client.put(DEMO, content=save(arrays, metadata), headers={"Content-Type": kind})
    assert answer.json() == {"upserted": 2, "position": 1, "usage": {"tokens": 0}}
    encoded = [{**document, "id": f"{document['id']}-encoded"} for document in DOCUMENTS]
    await client.put(DEMO, json={"documents": encoded})
    hits = (await client.post("/search", json={"collection": "demo", "query": "hot train"})).json()["hits"]
    scores = {hit["id"]: hit["scores"] for hit in hits}
    for name in ("one", "two"):
        assert scores[name] == scores[f"{name}-encoded"]
    got = (await client.get(f"{DEMO}/two")).json()
    assert got == {**DOCUMENTS[1], "metadata": {}}


async def test_floats_may_be_halves(client: httpx.AsyncClient, parts: Any) -> None:
    arrays, metadata = parts
    halves = {name: array.astype(np.float16) for name, array in arrays.items() if array.dtype == np.float32}
    assert len(halves) == 3
    assert (await put(client, {**arrays, **halves}, metadata)).status_code == 200


async def test_key_and_position_are_metadata(client: httpx.AsyncClient, parts: Any) -> None:
    arrays, metadata = parts
    keyed = {**metadata, "idempotency_key": "k", "if_position": "0"}
    first = await put(client, arrays, keyed)
    assert first.status_code == 200
    await client.delete(f"{DEMO}/one")
    assert (await put(client, arrays, keyed)).json() == first.json()
    assert (await client.get(f"{DEMO}/one")).status_code == 404
    other = await put(client, {**arrays, "dense": arrays["dense"][::-1].copy()}, keyed)
    assert error_of(other) == (409, None, "idempotency_key_reused")
    other = await put(client, arrays, {**keyed, "if_position": "1"})
    assert error_of(other) == (409, None, "idempotency_key_reused")
    stale = await put(client, arrays, {**metadata, "if_position": "0"})
    assert error_of(stale) == (409, None, "document_changed")


def without(arrays: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if name not in names}


async def test_faults_are_named_and_nothing_is_written(client: httpx.AsyncClient, parts: Any) -> None:
    arrays, metadata = parts
    good = arrays["documents"]
    nan = arrays["dense"].copy()
    nan[1, 0] = np.nan
    twice = [DOCUMENTS[0], DOCUMENTS[0]]
    changes: list[tuple[dict[str, Any], str | None, str]] = [
        (without(arrays, "documents"), "documents", "missing_field"),
        (without(arrays, "dense"), "dense", "missing_field"),
        (without(arrays, "sparse_indptr"), "sparse_indptr", "missing_field"),
        (without(arrays, "colbert"), "colbert", "missing_field"),
        ({**arrays, "colour": good}, "colour", "unknown_field"),
        ({**arrays, "dense": arrays["dense"].astype(np.float64)}, "dense", "invalid_value"),
        ({**arrays, "dense": arrays["dense"][0]}, "dense", "invalid_value"),
        ({**arrays, "dense": arrays["dense"][:1]}, "dense", "invalid_value"),
        ({**arrays, "dense": arrays["dense"][:, :4]}, "dense", "invalid_value"),
        ({**arrays, "dense": arrays["dense"] * 2}, "documents.0.dense", "invalid_value"),
        ({**arrays, "dense": nan}, "documents.1.dense", "invalid_value"),
        ({**arrays, "colbert": arrays["colbert"][:, :2]}, "colbert", "invalid_value"),
        ({**arrays, "colbert_offsets": arrays["colbert_offsets"][:2]}, "colbert_offsets", "invalid_value"),
        ({**arrays, "colbert_offsets": np.array([0, 9, 3])}, "colbert_offsets", "invalid_value"),
        ({**arrays, "sparse_indptr": np.array([0, -1, 4])}, "sparse_indptr", "invalid_value"),
        ({**arrays, "sparse_indptr": arrays["sparse_indptr"][:0]}, "sparse_indptr", "invalid_value"),
        (
            {**arrays, "sparse_token_ids": arrays["sparse_token_ids"] + 1000},
            "documents.0.sparse_token_ids",
            "invalid_value",
        ),
        (
            {**arrays, "sparse_token_ids": arrays["sparse_token_ids"] + np.int64(2**32)},
            "documents.0.sparse_token_ids",
            "invalid_value",
        ),
        (
            {**arrays, "sparse_weights": -arrays["sparse_weights"]},
            "documents.0.sparse_weights",
            "invalid_value",
        ),
        ({**arrays, "sparse_weights": arrays["sparse_weights"][:-1]}, "sparse_weights", "invalid_value"),
        ({**arrays, "window_offsets": np.array([0, 1, 2])}, "window_offsets", "invalid_value"),
        ({**arrays, "documents": lines_of(twice)}, "documents.1.id", "duplicate_document"),
        ({**arrays, "documents": lines_of([*DOCUMENTS, {}])}, "documents.2.id", "missing_field"),
        (
            {**arrays, "documents": lines_of([DOCUMENTS[0], {"id": 5.5, "text": ""}])},
            "documents.1.id",
            "invalid_value",
        ),
        ({**arrays, "documents": lines_of([DOCUMENTS[0], 7])}, "documents.1", "invalid_value"),
        ({**arrays, "documents": good[:-1]}, "documents.1", "invalid_value"),
        ({**arrays, "documents": good[:0]}, "documents", "invalid_value"),
    ]
    for changed, param, code in changes:
        response = await put(client, changed, metadata)
        assert error_of(response) == (422, param, code), response.text
    for described, param, code in (
        ({}, "fingerprint", "missing_field"),
        ({**metadata, "if_postion": "1"}, "if_postion", "unknown_field"),
        ({**metadata, "if_position": "-1"}, "if_position", "invalid_value"),
        ({**metadata, "if_position": "9" * 5000}, "if_position", "invalid_value"),
        ({**metadata, "idempotency_key": "é" * 200}, "idempotency_key", "invalid_value"),
        ({**metadata, "idempotency_key": ""}, "idempotency_key", "invalid_value"),
    ):
        assert error_of(await put(client, arrays, described)) == (422, param, code)
    foreign = await put(client, arrays, {"fingerprint": "other"})
    assert error_of(foreign) == (409, None, "fingerprint_mismatch")
    for content in (b"", b"x", b"\xff" * 100, save(arrays, metadata)[:-1]):
        response = await client.put(DEMO, content=content, headers=TYPE)
        assert error_of(response) == (400, None, "invalid_safetensors")
    assert len((await client.get(DEMO)).json()["documents"]) == 5


async def test_limits_hold_for_binary_bodies(make_client: Any, tiny: Any) -> None:
    async with make_client(max_write_documents=1, max_body_bytes=3000, max_characters=50) as client:
        arrays, fingerprint = await embedded(client, "hot tea", "the train")
        body = {**arrays, "documents": lines_of(DOCUMENTS)}
        refused = await put(client, body, {"fingerprint": fingerprint})
        assert error_of(refused) == (413, "documents", "request_too_large")
        large = {**body, "documents": lines_of([{"id": "x", "text": "x" * 3000}])}
        assert error_of(await put(client, large, {"fingerprint": fingerprint})) == (
            413,
            None,
            "request_too_large",
        )
        arrays, _ = await embedded(client, "tea")
        long = {**arrays, "documents": lines_of([{"id": "x", "text": "x" * 51}])}
        refused = await put(client, long, {"fingerprint": fingerprint})
        assert error_of(refused) == (422, "documents.0.text", "too_many_characters")


async def test_windows_come_as_arrays(client: httpx.AsyncClient) -> None:
    await client.put("/collections/long", json={"window": {"tokens": 16, "overlap": 4}})
    path = "/collections/long/documents"
    arrays, fingerprint = await embedded(client, "hot tea", "green leaf", "the train")
    documents = [{"id": "leaf", "text": "hot tea green leaf"}, {"id": "rail", "text": "the train"}]
    body = {
        **arrays,
        "documents": lines_of(documents),
        "window_offsets": np.array([0, 2, 3]),
        "window_spans": np.array([[0, 7], [8, 18], [0, 9]]),
    }

    async def answer(**changes: Any) -> httpx.Response:
        content = save({**body, **changes}, {"fingerprint": fingerprint})
        return await client.put(path, content=content, headers=TYPE)

    assert (await answer()).status_code == 200
    response = await client.post("/search", json={"collection": "long", "query": "green leaf"})
    hits = {hit["id"]: hit["window"] for hit in response.json()["hits"]}
    assert hits["leaf"] == {"index": 1, "start": 8, "end": 18}
    for changes, param, code in (
        ({"window_offsets": np.array([0, 3])}, "window_offsets", "invalid_value"),
        ({"window_offsets": np.array([0, 0, 3])}, None, "invalid_document"),
        ({"window_spans": np.array([[0, 7], [8, 19], [0, 9]])}, None, "invalid_document"),
        ({"window_spans": np.array([[0, 7, 9]])}, "window_spans", "invalid_value"),
    ):
        assert error_of(await answer(**changes)) == (422, param, code)
    refused = await client.put(
        path,
        content=save(
            {name: body[name] for name in body if "window" not in name}, {"fingerprint": fingerprint}
        ),
        headers=TYPE,
    )
    assert error_of(refused) == (422, "dense", "invalid_value")


async def test_a_read_key_writes_nothing(make_client: Any) -> None:
    async with make_client({"Authorization": "Bearer reader"}, api_keys="w", read_keys="reader") as client:
        response = await client.put(DEMO, content=b"x", headers=TYPE)
        assert error_of(response) == (403, None, "read_only_key")
