"""Encoders that lack sides: what they have is served, what they lack is absent, and whoever asks is told."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.representations import OUTPUTS
from tercet.service.app import create_app, create_worker_app
from tercet.service.settings.settings import Settings
from tests.conftest import TinyEncoder
from tests.service.conftest import real_server, serving

SOME_SIDES = [("dense",), ("sparse",), ("colbert",), ("dense", "sparse"), ("sparse", "colbert")]
TEXTS = {"tea": "brew tea with hot water", "rail": "the train leaves the station", "leaf": "a green leaf"}


async def put_texts(client: httpx.AsyncClient, name: str = "some", **settings: Any) -> None:
    made = await client.put(f"/collections/{name}", json=settings)
    assert made.status_code == 201, made.text
    documents = [{"id": id, "text": text} for id, text in TEXTS.items()]
    stored = await client.put(f"/collections/{name}/documents", json={"documents": documents})
    assert stored.status_code == 200, stored.text


@pytest.mark.parametrize("sides", SOME_SIDES)
async def test_what_an_encoder_has_is_served(make_client: Any, sides: Any) -> None:
    encoder = TinyEncoder(sides=sides)
    async with make_client(encoder=encoder) as client:
        (found,) = (await client.post("/embed", json={"inputs": "green tea"})).json()["embeddings"]
        assert set(found) == {*sides, "tokens", "truncated"}
        packed = await client.post(
            "/embed", json={"inputs": "green tea"}, headers={"Accept": "application/x-safetensors"}
        )
        assert packed.status_code == 200

        await put_texts(client)
        answer = (await client.post("/search", json={"collection": "some", "query": "hot tea"})).json()
        assert answer["hits"][0]["id"] == "tea"
        for hit in answer["hits"]:
            assert {side for side in OUTPUTS if hit["scores"][side] is not None} == set(sides)
            assert hit["score"] == pytest.approx(sum(hit["scores"][side] for side in sides), abs=1e-6)
        assert [side for side in OUTPUTS if answer["weights"][side]] == list(sides)

        ranked = await client.post("/rerank", json={"query": "hot tea", "inputs": list(TEXTS.values())})
        best = ranked.json()["results"][0]
        assert best["index"] == 0
        assert {side for side in OUTPUTS if best["scores"][side] is not None} == set(sides)

        like = await client.post("/search", json={"collection": "some", "query": {"id": "tea"}})
        assert like.status_code == 200, like.text
        explained = {"collection": "some", "query": "hot tea", "explain": True, "highlight": True}
        assert (await client.post("/search", json=explained)).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("sides", SOME_SIDES)
async def test_an_encoder_worker_may_lack_sides(tmp_path: Path, sides: Any) -> None:
    settings = Settings(data=tmp_path / "worker", batch_tokens=64, queue_tokens=4096)
    with real_server(create_worker_app(settings, TinyEncoder(sides=sides))) as url:
        app = create_app(Settings(data=tmp_path / "search", encoder_urls=url))
        async with serving(app) as client:
            (found,) = (await client.post("/embed", json={"inputs": "green tea"})).json()["embeddings"]
            assert set(found) == {*sides, "tokens", "truncated"}
            await put_texts(client)
            answer = (await client.post("/search", json={"collection": "some", "query": "hot tea"})).json()
            assert answer["hits"][0]["id"] == "tea"


@pytest.mark.parametrize("sides", SOME_SIDES)
async def test_what_an_encoder_lacks_is_told_where_it_is_asked_for(make_client: Any, sides: Any) -> None:
    lacking = [side for side in OUTPUTS if side not in sides]
    async with make_client(encoder=TinyEncoder(sides=sides)) as client:
        await put_texts(client)
        for side in lacking:
            response = await client.post("/embed", json={"inputs": "tea", "outputs": [side]})
            assert response.status_code == 422
            assert response.json()["error"]["param"] == "outputs"
            asked = {"weights": {side: 0.5}}
            bodies = {
                "/search": {"collection": "some", "query": "tea", **asked},
                "/rerank": {"query": "tea", "inputs": ["tea"], **asked},
            }
            for path, body in bodies.items():
                error = (await client.post(path, json=body)).json()["error"]
                assert error["param"] == f"weights.{side}"
                assert f"the weight of {side} is 0.5, but encoder 'tiny' has no such side" in error["message"]
        settings = {"dense": "dense_kind", "sparse": "lexical", "colbert": "token_codec"}
        values = {"dense_kind": "hnsw", "lexical": "idf", "token_codec": "int8"}
        for side in lacking:
            setting = settings[side]
            refused = await client.put("/collections/other", json={setting: values[setting]})
            assert refused.status_code == 422
            error = refused.json()["error"]
            assert error["param"] == setting
            assert f'{setting} is "{values[setting]}", but the encoder has no' in error["message"]
        if "dense" in lacking:
            response = await client.post("/v1/embeddings", json={"input": "tea", "model": "tiny"})
            assert response.status_code == 422


async def test_presets_and_weights_left_out_leave_out_what_is_not_there(make_client: Any) -> None:
    async with make_client(encoder=TinyEncoder(sides=("dense",))) as client:
        await put_texts(client)
        for weights in ("miracl", {"dense": 1}, {"sparse": 0}, {"sparse": None}, None):
            body = {"collection": "some", "query": "tea", "weights": weights}
            response = await client.post("/search", json=body)
            assert response.status_code == 200, response.text
            assert response.json()["weights"]["sparse"] == 0


async def test_token_vectors_alone_are_compared_with_all_documents(make_client: Any) -> None:
    """None proposes candidates, so candidates are all that the filter allows."""
    async with make_client(encoder=TinyEncoder(sides=("colbert",))) as client:
        await put_texts(client, fields={"kind": "keyword"})
        body = {"collection": "some", "query": "hot tea", "candidates": {"dense": 1, "sparse": 1}}
        hits = (await client.post("/search", json=body)).json()["hits"]
        assert {hit["id"] for hit in hits} == set(TEXTS)
        assert np.all(np.diff([hit["score"] for hit in hits]) <= 0)
        await client.put(
            "/collections/some/documents",
            json={"documents": [{"id": "black", "text": "black tea", "metadata": {"kind": "drink"}}]},
        )
        body = {"collection": "some", "query": "hot tea", "filter": {"eq": {"kind": "drink"}}}
        hits = (await client.post("/search", json=body)).json()["hits"]
        assert [hit["id"] for hit in hits] == ["black"]
