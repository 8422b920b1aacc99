"""Adapters over HTTP: chosen by name, part of a collection, never ignored, never mixed up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load

from tercet.index.collection import Collection
from tercet.index.errors import FingerprintMismatchError
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.target import chosen_adapter
from tercet.models.encoder import encode, with_adapter
from tercet.service.answers.binary import MEDIA_TYPE


def error_of(response: httpx.Response) -> dict[str, Any]:
    return dict(response.json()["error"])


async def test_embed_encodes_with_the_adapter_and_says_so(client: httpx.AsyncClient, tiny: Any) -> None:
    plain = (await client.post("/embed", json={"inputs": "hot tea"})).json()
    law = (await client.post("/embed", json={"inputs": "hot tea", "adapter": "law"})).json()
    assert (plain["adapter"], law["adapter"]) == (None, "law")
    assert plain["fingerprint"] == tiny.info.fingerprint
    assert law["fingerprint"] == tiny.adapter_info("law").fingerprint != plain["fingerprint"]
    for answer, name in ((plain, None), (law, "law")):
        expected = encode(with_adapter(tiny, name), ["hot tea"])
        assert np.allclose(answer["embeddings"][0]["dense"], expected.dense[0], atol=1e-6)
    binary = await client.post(
        "/embed", json={"inputs": "hot tea", "adapter": "law"}, headers={"Accept": MEDIA_TYPE}
    )
    assert np.allclose(load(binary.content)["dense"][0], law["embeddings"][0]["dense"], atol=1e-6)
    assert b'"adapter":"law"' in binary.content


async def test_concurrent_requests_get_their_own_adapter(client: httpx.AsyncClient, tiny: Any) -> None:
    names = [None, "law", "tea"] * 8
    answers = await asyncio.gather(
        *(client.post("/embed", json={"inputs": ["hot tea", "rail"], "adapter": name}) for name in names)
    )
    for name, answer in zip(names, answers, strict=True):
        expected = encode(with_adapter(tiny, name), ["hot tea", "rail"]).dense
        found = [each["dense"] for each in answer.json()["embeddings"]]
        assert np.allclose(found, expected, atol=1e-6)


async def test_rerank_with_an_adapter(client: httpx.AsyncClient) -> None:
    body = {"query": "hot tea", "inputs": ["green tea", "the train"]}
    plain = (await client.post("/rerank", json={**body, "adapter": None})).json()["results"]
    law = (await client.post("/rerank", json={**body, "adapter": "law"})).json()["results"]
    assert plain != law
    assert plain == (await client.post("/rerank", json=body)).json()["results"]


ROUTES = [
    ("POST", "/embed", {"inputs": "tea"}),
    ("POST", "/search", {"collection": "demo", "query": "tea"}),
    ("POST", "/rerank", {"query": "tea", "inputs": ["tea"]}),
    ("PUT", "/collections/new", {}),
    ("POST", "/collections/new/jobs", {"source": "x.jsonl"}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_an_unknown_adapter_is_404_and_names_the_known_ones(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any]
) -> None:
    response = await client.request(method, path, json={**body, "adapter": "lore"})
    assert response.status_code == 404
    error = error_of(response)
    assert (error["type"], error["code"], error["param"]) == ("not_found", "adapter_not_found", "adapter")
    assert "there are law, tea" in error["message"]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../law", "law/", "/law", "LAW", "l\u00e4w", "a" * 10_000, "law\n", 3, ["law"], {}],
)
async def test_a_name_that_is_no_name_is_422(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], name: Any
) -> None:
    response = await client.request(method, path, json={**body, "adapter": name})
    assert response.status_code == 422
    assert error_of(response)["param"] == "adapter"
    assert len(response.content) < 3000


async def test_one_that_cannot_be_used_tells_no_path(make_client: Any, tiny: Any, caplog: Any) -> None:
    async with make_client(encoder=type(tiny)(adapters=("law", "worn"))) as client:
        response = await client.post("/embed", json={"inputs": "tea", "adapter": "worn"})
        assert (response.status_code, error_of(response)["code"]) == (503, "adapter_unusable")
        assert "secret" not in response.text
        assert "/secret/worn/adapter.json is missing" in caplog.text
        assert (await client.post("/embed", json={"inputs": "tea", "adapter": "law"})).status_code == 200
        adapters = (await client.get("/info")).json()["adapters"]
        assert [each["problem"] for each in adapters] == [None, "it is damaged"]


async def test_info_lists_adapters(client: httpx.AsyncClient, tiny: Any) -> None:
    answer = (await client.get("/info")).json()
    assert answer["encoder"]["adapter"] is None
    assert answer["adapters"][0] == {
        "name": "law",
        "kind": "lora",
        "fingerprint": tiny.adapter_info("law").fingerprint,
        "description": "For law.",
        "language": None,
        "domain": None,
        "problem": None,
        "router": None,
    }


async def test_a_collection_is_created_with_an_adapter(
    client: httpx.AsyncClient, data: Path, tiny: Any
) -> None:
    record = (await client.put("/collections/cases", json={"adapter": "law"})).json()
    assert (record["adapter"], record["fingerprint"]) == ("law", tiny.adapter_info("law").fingerprint)
    assert Collection.open(data / "collections", "cases").settings.adapter == "law"
    assert (await client.get("/collections/demo")).json()["adapter"] is None
    assert b"adapter" not in (data / "collections" / "demo" / "collection.json").read_bytes()


async def test_a_search_uses_the_collections_adapter_and_refuses_another(
    make_client: Any, data: Path, tiny: Any, build: Any
) -> None:
    build(data, with_adapter(tiny, "law"), "cases")
    async with make_client() as client:
        body = {"collection": "cases", "query": "hot tea"}
        hits = (await client.post("/search", json=body)).json()["hits"]
        assert hits == (await client.post("/search", json={**body, "adapter": "law"})).json()["hits"]
        expected = encode(with_adapter(tiny, "law"), ["hot tea", "green tea\nbrew tea with hot water"]).dense
        tea = next(hit for hit in hits if hit["id"] == "tea")
        assert tea["scores"]["dense"] == pytest.approx(float(expected[0] @ expected[1]), abs=2e-3)

        for collection, adapter, words in (
            ("cases", "tea", ["adapter 'law'", "'tea'"]),
            ("demo", "law", ["no adapter", "'law'"]),
        ):
            response = await client.post(
                "/search", json={**body, "collection": collection, "adapter": adapter}
            )
            assert (response.status_code, error_of(response)["code"]) == (409, "fingerprint_mismatch")
            assert all(word in error_of(response)["message"] for word in words)


async def test_a_collection_whose_adapter_is_gone_or_changed_is_409(
    make_client: Any, data: Path, tiny: Any, build: Any
) -> None:
    build(data, with_adapter(tiny, "law"), "cases")
    body = {"collection": "cases", "query": "tea"}
    async with make_client(encoder=type(tiny)(adapters=("tea",))) as client:
        response = await client.post("/search", json=body)
        assert response.status_code == 409
        assert "adapter 'law'" in error_of(response)["message"]
        assert "which this server does not have" in error_of(response)["message"]
    async with make_client(encoder=type(tiny)(adapters=("laa", "law"))) as client:  # has another "law"
        response = await client.post("/search", json=body)
        assert response.status_code == 409
        message = error_of(response)["message"]
        assert tiny.adapter_info("law").fingerprint in message
        assert (await client.post("/search", json={**body, "collection": "demo"})).status_code == 200


async def test_jobs_refuse_another_adapter(make_client: Any, data: Path, tiny: Any, build: Any) -> None:
    build(data, with_adapter(tiny, "law"), "cases")
    (data / "sources").mkdir(exist_ok=True)
    (data / "sources" / "x.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    async with make_client() as client:
        for name, adapter in (("cases", "tea"), ("demo", "law")):
            response = await client.post(
                f"/collections/{name}/jobs", json={"source": "x.jsonl", "adapter": adapter}
            )
            assert (response.status_code, error_of(response)["code"]) == (409, "fingerprint_mismatch")
        accepted = await client.post("/collections/cases/jobs", json={"source": "x.jsonl"})
        assert (accepted.status_code, accepted.json()["adapter"]) == (202, "law")


def test_a_build_goes_with_the_collections_adapter(tmp_path: Path, tiny: Any) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text('{"id": "a", "text": "hot tea"}\n')
    build_collection(LocalDocuments(tiny), tmp_path, "cases", source, adapter="law")
    settings = Collection.open(tmp_path, "cases").settings
    assert (settings.adapter, settings.fingerprint) == ("law", tiny.adapter_info("law").fingerprint)
    assert chosen_adapter(tmp_path, "cases", None, tiny.resolve_adapter) == "law"
    assert chosen_adapter(tmp_path, "new", "tea", tiny.resolve_adapter) == "tea"
    build_collection(LocalDocuments(tiny), tmp_path, "cases", source)
    query = encode(with_adapter(tiny, "law"), ["hot tea"])
    hit = Collection.open(tmp_path, "cases").snapshot().search(query).hits[0]
    assert hit.scores.dense == pytest.approx(1, abs=1e-3)
    with pytest.raises(FingerprintMismatchError, match="adapter 'law', and 'tea' is asked for"):
        build_collection(LocalDocuments(tiny), tmp_path, "cases", source, adapter="tea")
    changed = type(tiny)(adapters=("laa", "law"))
    with pytest.raises(FingerprintMismatchError, match="adapter 'law'"):
        build_collection(LocalDocuments(changed), tmp_path, "cases", source)
