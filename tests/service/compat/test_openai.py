"""OpenAI's routes: the vectors of `/embed` in another shape."""

import base64
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.checkpoint import MULTILINGUAL, SHIPPED
from tercet.models.encoder import AdaptedEncoder, encode
from tercet.models.loader import load_encoder

TEXTS = ["hot water", "the green tea leaf"]


async def embeddings(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/v1/embeddings", json={"model": "tiny", **body})


async def test_vectors_are_those_of_embed(client: httpx.AsyncClient, tiny: Any) -> None:
    response = await embeddings(client, input=TEXTS)
    assert response.status_code == 200
    answer = response.json()
    assert answer["object"] == "list"
    assert answer["model"] == "tiny"
    assert answer["usage"] == {"prompt_tokens": 4 + 6, "total_tokens": 4 + 6}
    assert [one["index"] for one in answer["data"]] == [0, 1]
    assert {one["object"] for one in answer["data"]} == {"embedding"}
    vectors = np.array([one["embedding"] for one in answer["data"]], np.float32)
    assert np.array_equal(vectors, encode(tiny, TEXTS).dense)


@pytest.mark.slow
async def test_queries_are_encoded_as_queries_where_they_are_named(make_client: Any) -> None:
    """Open WebUI sends `input_type`, where its settings name the field."""
    encoder = load_encoder(MULTILINGUAL, threads=1)
    expected = {kind: encode(encoder, TEXTS, kind).dense for kind in ("query", "document")}
    assert not np.allclose(expected["query"], expected["document"], atol=0.01), "it has prefixes"
    async with make_client(encoder=encoder, batch_tokens=1024) as client:
        for given, kind in (("query", "query"), ("passage", "document"), (None, "document")):
            answer = (await embeddings(client, input=TEXTS, input_type=given)).json()
            name = MULTILINGUAL if given is None else f"{MULTILINGUAL}:{given}"
            named = (await client.post("/v1/embeddings", json={"model": name, "input": TEXTS})).json()
            assert named == answer
            vectors = np.array([one["embedding"] for one in answer["data"]], np.float32)
            assert np.allclose(vectors, expected[kind], atol=1e-5), given


async def test_base64_is_little_endian_float32(client: httpx.AsyncClient) -> None:
    plain = (await embeddings(client, input="hot water")).json()["data"]
    packed = (await embeddings(client, input="hot water", encoding_format="base64")).json()["data"]
    assert len(plain) == len(packed) == 1
    vector = np.frombuffer(base64.b64decode(packed[0]["embedding"]), "<f4")
    assert np.array_equal(vector, np.array(plain[0]["embedding"], np.float32))


async def test_fewer_dimensions_are_normalized_again(client: httpx.AsyncClient) -> None:
    (one,) = (await embeddings(client, input="hot water", dimensions=4)).json()["data"]
    assert len(one["embedding"]) == 4
    assert np.linalg.norm(one["embedding"]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("token_ids", [[1, 2, 3], [[1, 2], [3]]])
async def test_token_ids_are_refused_with_the_remedy(client: httpx.AsyncClient, token_ids: Any) -> None:
    response = await embeddings(client, input=token_ids)
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["param"] == "input"
    assert error["code"] == "token_ids"
    assert "check_embedding_ctx_length=False" in error["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": "tea", "dimensions": 10_000}, "dimensions"),
        ({"input": "tea", "encoding_format": "int8"}, "encoding_format"),
        ({}, "input"),
    ],
)
async def test_bad_values_name_their_field(client: httpx.AsyncClient, body: Any, param: str) -> None:
    response = await embeddings(client, **body)
    assert response.status_code == 422
    assert response.json()["error"]["param"] == param


async def test_any_model_is_the_encoder_and_unknown_fields_are_passed_over(client: httpx.AsyncClient) -> None:
    named = await embeddings(client, input="tea")
    other = await embeddings(client, input="tea", model="text-embedding-3-small", user="someone")
    assert other.status_code == 200
    assert other.json() == named.json()


async def test_a_model_may_be_an_adapter(client: httpx.AsyncClient, tiny: Any) -> None:
    answer = (await embeddings(client, input=TEXTS, model="tea")).json()
    assert answer["model"] == "tea"
    vectors = np.array([one["embedding"] for one in answer["data"]], np.float32)
    assert np.array_equal(vectors, encode(AdaptedEncoder(tiny, "tea"), TEXTS).dense)


async def test_models_are_listed_and_found(client: httpx.AsyncClient) -> None:
    models = (await client.get("/v1/models")).json()
    assert models["object"] == "list"
    assert [model["id"] for model in models["data"]] == ["tiny", "law", "tea", *SHIPPED]
    assert (await client.get("/v1/models/tiny")).json() == models["data"][0]
    missing = await client.get("/v1/models/gpt")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"


async def test_a_slash_at_the_end_changes_nothing(client: httpx.AsyncClient) -> None:
    body = {"input": ["tea"], "model": "tiny"}
    plain = await client.post("/v1/embeddings", json=body)
    slash = await client.post("/v1/embeddings/", json=body)
    assert slash.json() == plain.json()
    assert (await client.get("/v1/models/")).json() == (await client.get("/v1/models")).json()
    rerank = {"query": "tea", "documents": ["tea"]}
    assert (await client.post("/v1/rerank/", json=rerank)).status_code == 200
