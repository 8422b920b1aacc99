"""`POST /embed` to the letter of its contract."""

import base64
import tempfile
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load

from tercet.models.encoder import encode
from tercet.models.errors import EncoderUnavailableError
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers import growing_arrays
from tercet.service.answers.binary import MEDIA_TYPE

TEXTS = ["hot water", "the green tea leaf", ""]


async def embed(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/embed", json=body)


async def test_json_holds_all_three_representations(client: httpx.AsyncClient, tiny: Any) -> None:
    response = await embed(client, inputs=TEXTS)
    assert response.status_code == 200
    answer = response.json()
    expected = encode(tiny, TEXTS)
    assert answer["model"] == "tiny"
    assert answer["fingerprint"] == tiny.info.fingerprint
    assert answer["usage"] == {"tokens": 4 + 6 + 2}
    first = answer["embeddings"][0]
    assert set(first) == {"dense", "sparse", "colbert", "tokens", "truncated"}
    assert first["tokens"] == 4
    assert first["truncated"] is False
    assert np.allclose(first["dense"], expected.dense[0], atol=1e-6)
    assert np.allclose(first["colbert"], expected.colbert.row(0), atol=1e-6)
    assert sorted(first["sparse"]["tokens"]) == ["hot", "water"]
    assert first["sparse"]["token_ids"] == expected.sparse.row(0)[0].tolist()
    assert np.allclose(first["sparse"]["weights"], expected.sparse.row(0)[1])
    assert answer["embeddings"][2]["sparse"] == {"token_ids": [], "weights": [], "tokens": []}
    assert len(answer["embeddings"][2]["colbert"]) == 1


async def test_one_string_and_null_options_mean_the_defaults(client: httpx.AsyncClient) -> None:
    options = ["input_type", "outputs", "truncate", "max_length", "dimensions", "encoding", "dtype"]
    plain = await embed(client, inputs="hot water")
    with_nulls = await embed(client, inputs="hot water", **dict.fromkeys(options))
    assert with_nulls.status_code == 200
    assert plain.json() == with_nulls.json()


async def test_only_what_was_asked_for(client: httpx.AsyncClient) -> None:
    answer = (await embed(client, inputs=["tea"], outputs=["sparse"])).json()
    assert set(answer["embeddings"][0]) == {"sparse", "tokens", "truncated"}


async def test_outputs_are_a_set(client: httpx.AsyncClient) -> None:
    """Neither their order nor that one is named twice changes the answer."""
    plain = await embed(client, inputs=["tea"], outputs=["dense", "sparse"])
    other = await embed(client, inputs=["tea"], outputs=["sparse", "dense", "sparse"])
    assert other.status_code == 200
    assert other.json() == plain.json()


async def test_base64_is_little_endian_float32_with_its_shape(client: httpx.AsyncClient) -> None:
    plain = (await embed(client, inputs=TEXTS)).json()["embeddings"]
    packed = (await embed(client, inputs=TEXTS, encoding="base64")).json()["embeddings"]
    for one, other in zip(plain, packed, strict=True):
        for output in ("dense", "colbert"):
            values = np.frombuffer(base64.b64decode(other[output]["data"]), "<f4")
            assert np.array_equal(values.reshape(other[output]["shape"]), np.array(one[output], np.float32))
        assert one["sparse"] == other["sparse"]


async def test_safetensors_where_accept_asks_for_it(client: httpx.AsyncClient, tiny: Any) -> None:
    response = await client.post("/embed", json={"inputs": TEXTS}, headers={"Accept": MEDIA_TYPE})
    assert response.headers["content-type"] == MEDIA_TYPE
    arrays = load(response.content)
    expected = encode(tiny, TEXTS)
    assert np.array_equal(arrays["dense"], expected.dense)
    assert np.array_equal(arrays["sparse_indptr"], expected.sparse.indptr)
    assert np.array_equal(arrays["sparse_token_ids"], expected.sparse.token_ids)
    assert np.array_equal(arrays["sparse_weights"], expected.sparse.weights)
    assert np.array_equal(arrays["colbert"], expected.colbert.vectors)
    assert np.array_equal(arrays["colbert_offsets"], expected.colbert.offsets)


@pytest.mark.parametrize(
    ("accept", "binary"),
    [
        ("application/json;q=0.5, application/x-safetensors;q=0.9", True),
        ("application/json, application/x-safetensors;q=0.5", False),
        ("text/html", False),
    ],
)
async def test_accept_is_negotiated(client: httpx.AsyncClient, accept: str, binary: bool) -> None:
    response = await client.post("/embed", json={"inputs": "tea"}, headers={"Accept": accept})
    assert (response.headers["content-type"] == MEDIA_TYPE) is binary
    assert response.headers["vary"] == "Accept"


async def test_dimensions_cut_and_normalize_the_dense_vector(client: httpx.AsyncClient) -> None:
    whole = (await embed(client, inputs="tea", outputs=["dense"])).json()["embeddings"][0]["dense"]
    cut = (await embed(client, inputs="tea", outputs=["dense"], dimensions=3)).json()["embeddings"][0][
        "dense"
    ]
    assert np.allclose(cut, np.array(whole[:3]) / np.linalg.norm(whole[:3]), atol=1e-6)


async def test_truncation_is_told_or_refused(client: httpx.AsyncClient) -> None:
    long = "tea " * 100
    answer = (await embed(client, inputs=["tea", long], outputs=["dense"])).json()
    assert [text["truncated"] for text in answer["embeddings"]] == [False, True]
    assert answer["embeddings"][1]["tokens"] == 32
    shorter = (await embed(client, inputs=long, outputs=["dense"], max_length=10)).json()
    assert shorter["usage"]["tokens"] == 10
    refused = await embed(client, inputs=["tea", long], truncate=False)
    assert refused.status_code == 422
    assert refused.json()["error"]["code"] == "text_too_long"
    assert refused.json()["error"]["param"] == "inputs"
    assert "text 1" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [1]}, "inputs.0"),
        ({"inputs": None}, "inputs"),
        ({"inputs": {"a": 1}}, "inputs"),
        ({"inputs": "a", "input_typ": "query"}, "input_typ"),
        ({"inputs": "a", "input_type": "passage"}, "input_type"),
        ({"inputs": "a", "outputs": ["dense", "late"]}, "outputs.1"),
        ({"inputs": "a", "outputs": []}, "outputs"),
        ({"inputs": "a", "truncate": "yes"}, "truncate"),
        ({"inputs": "a", "dimensions": 9}, "dimensions"),
        ({"inputs": "a", "dimensions": 0}, "dimensions"),
        ({"inputs": "a", "dimensions": 1.5}, "dimensions"),
        ({"inputs": "a", "dimensions": 10**30}, "dimensions"),
        ({"inputs": "a", "max_length": 33}, "max_length"),
        ({"inputs": "a", "max_length": 1}, "max_length"),
        ({"inputs": "a", "encoding": "int8"}, "encoding"),
        ({"inputs": "a" * 201}, "inputs"),
        ({"inputs": ["a", "b" * 201]}, "inputs.1"),
    ],
)
async def test_a_wrong_value_is_422_and_names_its_field(
    make_client: Any, body: dict[str, Any], param: str
) -> None:
    async with make_client(max_characters=200) as client:
        response = await client.post("/embed", json=body)
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["param"] == param
    assert error["type"] == "invalid_value"


async def test_too_many_texts_is_413(make_client: Any) -> None:
    async with make_client(max_texts=3) as client:
        response = await client.post("/embed", json={"inputs": ["a"] * 4})
    assert response.status_code == 413
    assert response.json()["error"]["param"] == "inputs"
    assert "limit is 3" in response.json()["error"]["message"]


async def test_many_texts_are_split_over_batches(client: httpx.AsyncClient, tiny: Any) -> None:
    texts = [" ".join(["tea"] * (1 + n % 20)) for n in range(300)]
    answer = (await embed(client, inputs=texts, outputs=["dense"])).json()
    assert np.allclose([e["dense"] for e in answer["embeddings"]], encode(tiny, texts).dense, atol=1e-6)
    batches = (await client.get("/metrics")).text
    assert 'tercet_batch_tokens_count{model="tiny"}' in batches
    assert 'tercet_batch_tokens_count{model="tiny"} 1.0' not in batches


async def test_what_json_and_unicode_allow_works(client: httpx.AsyncClient) -> None:
    texts = ["\x00", "🍵" * 50, "مرحبا 世界 한국어", "\u2028\ufeff\ud7ff\ue000", "a" * 10_000, " \n\t "]
    response = await embed(client, inputs=texts)
    assert response.status_code == 200
    assert len(response.json()["embeddings"]) == len(texts)


async def test_an_answer_of_many_windows_is_that_of_one(client: httpx.AsyncClient, tiny: Any) -> None:
    texts = [" ".join(["tea"] * (1 + n % 20)) for n in range(300)]
    expected = encode(tiny, texts)
    response = await embed(client, inputs=texts)
    assert "content-length" not in response.headers
    answer = response.json()
    assert answer["usage"] == {"tokens": int(expected.tokens.sum())}
    for row in (0, 150, 299):
        found = answer["embeddings"][row]
        assert np.allclose(found["colbert"], expected.colbert.row(row), atol=1e-6)
        assert found["sparse"]["token_ids"] == expected.sparse.row(row)[0].tolist()
    binary = await client.post("/embed", json={"inputs": texts}, headers={"Accept": MEDIA_TYPE})
    arrays = load(binary.content)
    assert np.allclose(arrays["colbert"], expected.colbert.vectors, atol=1e-6)
    assert np.array_equal(arrays["sparse_indptr"], expected.sparse.indptr)


async def test_large_binary_answers_wait_below_the_data_root(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, tiny: Any
) -> None:
    monkeypatch.setattr(growing_arrays, "MEMORY_BYTES", 1)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    binary = await client.post("/embed", json={"inputs": TEXTS}, headers={"Accept": MEDIA_TYPE})
    assert np.array_equal(load(binary.content)["dense"], encode(tiny, TEXTS).dense)


async def test_too_many_tokens_are_413(make_client: Any) -> None:
    async with make_client(max_request_tokens=50) as client:
        response = await client.post("/embed", json={"inputs": ["hot water"] * 20})
        assert response.status_code == 413
        assert "max_request_tokens" in response.json()["error"]["message"]
        assert (await client.get("/info")).json()["limits"]["request_tokens"] == 50


class Failing:
    """The tiny encoder until `calls` passes are done."""

    def __init__(self, encoder: Any, calls: int) -> None:
        self.encoder = encoder
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode_tokens(self, *given: Any) -> Any:
        self.calls -= 1
        if self.calls < 0:
            raise EncoderUnavailableError("gone")
        return self.encoder.encode_tokens(*given)


@pytest.mark.slow
@pytest.mark.parametrize("accept", ["*/*", MEDIA_TYPE])
def test_an_answer_that_cannot_be_finished_is_never_taken_for_whole(
    make_server: Any, tiny: Any, accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["tea " * 20] * 600
    with make_server(encoder=Failing(tiny, calls=150)) as url, httpx.Client(base_url=url) as client:
        if accept == MEDIA_TYPE:  # nothing of it is sent before all is there
            response = client.post("/embed", json={"inputs": texts}, headers={"Accept": accept})
            assert response.status_code == 503
        else:
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
                client.post("/embed", json={"inputs": texts}, headers={"Accept": accept})
            assert "broken off" in caplog.text
        assert client.get("/health").status_code == 200


async def test_dimensions_are_those_that_the_checkpoint_declares(make_client: Any, tiny: Any) -> None:
    encoder = type(tiny)()
    encoder._tokenizer = Tokenizer(
        tiny.tokenizer.to_bytes(), replace(tiny.tokenizer.settings, matryoshka_dimensions=(4, 2))
    )
    async with make_client(encoder=encoder) as client:
        full = encoder.info.dense_dimension
        for dimensions in (2, 4, full):
            answer = await embed(client, inputs=["tea"], dimensions=dimensions, outputs=["dense"])
            assert len(answer.json()["embeddings"][0]["dense"]) == dimensions
        answer = await embed(client, inputs=["tea"], dimensions=3)
        assert answer.status_code == 422
        assert answer.json()["error"]["param"] == "dimensions"
        assert "is 3; tiny was trained to be cut to 4, 2" in answer.json()["error"]["message"]
