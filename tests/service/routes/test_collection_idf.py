"""What a collection's idf does to `POST /search` and `POST /rerank`, and how the answers show it."""

import dataclasses
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.models.encoder import with_adapter

TEXTS = ["the train station", "hot tea", "a green leaf"]


@pytest.fixture
def snapshot(data: Path, build: Any, tiny: Any) -> Snapshot:
    """The collection `rare`: that of `demo` with an idf."""
    settings = Collection.open(data / "collections", "demo").settings
    build(data, tiny, "rare", lexical="idf")
    assert Collection.open(data / "collections", "rare").settings == dataclasses.replace(
        settings, name="rare", lexical="idf"
    )
    return Collection.open(data / "collections", "rare").snapshot()


SHOWN = {"include": ["scores", "terms"]}


async def answer(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await client.post(path, json={"query": "hot tea", **body})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_search_shows_the_idf_of_its_terms(client: httpx.AsyncClient, snapshot: Snapshot) -> None:
    query = (await answer(client, "/search", collection="rare", **SHOWN))["query"]
    embedded = (await client.post("/embed", json={"inputs": "hot tea", "input_type": "query"})).json()
    sparse = embedded["embeddings"][0]["sparse"]
    assert query["tokens"] == 4
    assert query["terms"]["tokens"] == sparse["tokens"] == ["tea", "hot"]
    assert query["terms"]["token_ids"] == sparse["token_ids"]
    assert query["terms"]["weights"] == pytest.approx(sparse["weights"], abs=1e-6)  # as encoded
    assert snapshot.idf is not None
    expected = snapshot.idf.of_terms(np.array(sparse["token_ids"]))
    assert query["terms"]["idf"] == pytest.approx(expected.tolist(), abs=1e-6)
    assert expected[1] > expected[0]  # two of five documents are about tea, one has something hot
    assert "terms" not in (await answer(client, "/search", collection="rare"))["query"]
    assert "terms" not in (await answer(client, "/search", collection="demo", **SHOWN))["query"]


async def test_scores_and_explanations_have_the_idf(client: httpx.AsyncClient, snapshot: Snapshot) -> None:
    plain = {hit["id"]: hit for hit in (await answer(client, "/search", collection="demo"))["hits"]}
    found = await answer(client, "/search", collection="rare", explain=True, **SHOWN)
    idf = dict(zip(*(found["query"]["terms"][name] for name in ("token_ids", "idf")), strict=True))
    for hit in found["hits"]:
        for term in hit["explanation"]["terms"]:
            assert term["idf"] == pytest.approx(idf[term["token_id"]], abs=1e-6)
            product = term["query_weight"] * term["idf"] * term["document_weight"]
            assert term["product"] == pytest.approx(product)
        summed = sum(term["product"] for term in hit["explanation"]["terms"])
        assert hit["scores"]["sparse"] == pytest.approx(summed, abs=1e-6)
        assert hit["scores"]["dense"] == plain[hit["id"]]["scores"]["dense"]
        assert hit["scores"]["colbert"] == plain[hit["id"]]["scores"]["colbert"]
    (tea,) = [hit for hit in found["hits"] if hit["id"] == "tea"]
    assert tea["scores"]["sparse"] != plain["tea"]["scores"]["sparse"]


async def test_ready_representations_search_like_their_text(
    client: httpx.AsyncClient, snapshot: Snapshot
) -> None:
    embedded = (await client.post("/embed", json={"inputs": "hot tea", "input_type": "query"})).json()
    ready = await answer(client, "/search", collection="rare", query=embedded["embeddings"][0], **SHOWN)
    text = await answer(client, "/search", collection="rare", **SHOWN)
    assert ready["hits"] == text["hits"]
    assert ready["query"]["terms"] == text["query"]["terms"]
    dense = {"dense": embedded["embeddings"][0]["dense"]}
    only = {"weights": {"sparse": 0, "colbert": 0}, "candidates": {"sparse": 0}, **SHOWN}
    assert "terms" not in (await answer(client, "/search", collection="rare", query=dense, **only))["query"]


async def test_rerank_scores_texts_as_documents_of_a_collection(
    client: httpx.AsyncClient, snapshot: Snapshot
) -> None:
    plain = await answer(client, "/rerank", inputs=TEXTS)
    assert await answer(client, "/rerank", inputs=TEXTS, collection=None) == plain
    assert await answer(client, "/rerank", inputs=TEXTS, collection="demo") == plain  # it has no idf
    weighted = await answer(client, "/rerank", inputs=TEXTS, collection="rare")
    search = await answer(client, "/search", collection="rare", **SHOWN)
    assert weighted["query"] == search["query"]
    terms = search["query"]["terms"]
    both = {result["index"]: result for result in weighted["results"]}
    expected = sum(weight**2 * idf for weight, idf in zip(terms["weights"], terms["idf"], strict=True))
    assert both[1]["scores"]["sparse"] == pytest.approx(expected, abs=1e-5)  # the text is the query itself
    for result in plain["results"]:
        for side in ("dense", "colbert"):
            assert both[result["index"]]["scores"][side] == result["scores"][side]


async def test_rerank_takes_the_stored_weights_of_its_collection(
    client: httpx.AsyncClient, snapshot: Snapshot, data: Path
) -> None:
    stored = SearchDefaults(Weights(0, 2, 0), CandidateLimits(), Tuning("000001", 10, 2, 0, 0.5, 0.6))
    Collection.open(data / "collections", "rare").store_defaults(stored)
    for options, weight in (
        ({}, 2),
        ({"weights": "sum"}, None),
        ({"weights": {"dense": 0, "colbert": 0}}, 1),
    ):
        for result in (await answer(client, "/rerank", inputs=TEXTS, collection="rare", **options))[
            "results"
        ]:
            scores = result["scores"]
            expected = sum(scores.values()) if weight is None else weight * scores["sparse"]
            assert result["score"] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"collection": "none"}, 404, "collection_not_found"),
        ({"collection": "Rare"}, 422, "invalid_value"),
        ({"collection": 5}, 422, "invalid_value"),
        ({"collection": "rare", "adapter": "law"}, 409, "fingerprint_mismatch"),
        ({"collection": "rare", "adapter": "unknown"}, 404, "adapter_not_found"),
    ],
)
async def test_a_collection_that_rerank_cannot_take(
    client: httpx.AsyncClient, snapshot: Snapshot, body: dict[str, Any], status: int, code: str
) -> None:
    response = await client.post("/rerank", json={"query": "tea", "inputs": ["tea"], **body})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


async def test_rerank_needs_the_encoder_of_the_collection(
    make_client: Any, snapshot: Snapshot, tiny: Any
) -> None:
    async with make_client(encoder=type(tiny)(seed=1)) as client:
        body = {"query": "tea", "inputs": ["tea"]}
        assert (await client.post("/rerank", json=body)).status_code == 200
        refused = await client.post("/rerank", json={**body, "collection": "rare"})
    assert refused.status_code == 409
    assert tiny.info.fingerprint in refused.json()["error"]["message"]


async def test_rerank_goes_with_the_adapter_of_its_collection(
    client: httpx.AsyncClient, data: Path, build: Any, tiny: Any
) -> None:
    build(data, with_adapter(tiny, "law"), "laws")
    asked = {"inputs": TEXTS}
    law = await answer(client, "/rerank", **asked, adapter="law")
    assert await answer(client, "/rerank", **asked, collection="laws") == law
    assert await answer(client, "/rerank", **asked, collection="laws", adapter="law") == law
    assert await answer(client, "/rerank", **asked) != law
