"""Vectors in smaller types: how far what comes back may be from what went in, and which bits there are."""

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load

from tercet.index.token_vectors.pooling import pooled
from tercet.models.encoder import encode
from tercet.service.answers.dtypes import Dtype, typed
from tercet.service.compat.vectors import WRITTEN

VALUES = st.floats(-1, 1, width=32)
VECTORS = st.tuples(st.integers(0, 5), st.integers(1, 3)).flatmap(
    lambda sizes: arrays(np.float32, (sizes[0], 8 * sizes[1]), elements=VALUES)
)


@given(VECTORS)
def test_int8_is_within_half_a_step_of_its_scale(vectors: Any) -> None:
    found = typed(vectors, "int8")
    assert found.values.dtype == np.int8
    assert found.scales is not None
    assert found.scales.dtype == np.float32
    decoded = found.values * found.scales[:, None]
    # Of the smallest numbers there are, the scale itself is rounded to nothing.
    room = found.scales[:, None] * np.float32(0.5001) + 127 * np.finfo(np.float32).smallest_subnormal
    assert (np.abs(decoded - vectors) <= room).all()
    largest = np.abs(vectors).max(1, initial=0)
    assert (np.abs(found.values.astype(int)).max(1, initial=0)[largest > 1e-30] == 127).all()


@given(VECTORS)
def test_bits_are_the_signs(vectors: Any) -> None:
    signs = (vectors > 0).astype(np.uint8)
    packed = typed(vectors, "ubinary").values
    assert packed.dtype == np.uint8
    assert np.array_equal(np.unpackbits(packed, axis=1), signs)
    less = typed(vectors, "binary").values
    assert less.dtype == np.int8
    assert np.array_equal(less.astype(int) + 128, packed)
    for row, vector in enumerate(vectors):
        assert json.loads(WRITTEN["ubinary"](vector)) == packed[row].tolist()
        assert json.loads(WRITTEN["binary"](vector)) == less[row].tolist()


@given(VECTORS)
def test_float16_and_float32_are_the_values(vectors: Any) -> None:
    assert np.array_equal(typed(vectors, "float16").values, vectors.astype(np.float16))
    assert typed(vectors, "float32").values is vectors


def test_worked_numbers() -> None:
    vector = np.array([[0.5, -0.25, 0.0, 1.0, -1.0, 0.1, 0.0, 0.0]], np.float32)
    found = typed(vector, "int8")
    assert found.values.tolist() == [[64, -32, 0, 127, -127, 13, 0, 0]]
    assert found.scales is not None
    assert found.scales.tolist() == [np.float32(1) / np.float32(127)]
    assert typed(vector, "ubinary").values.tolist() == [[0b10010100]]
    assert typed(vector, "binary").values.tolist() == [[0b10010100 - 128]]
    assert json.loads(WRITTEN["int8"](vector[0])) == found.values[0].tolist()
    assert json.loads(WRITTEN["uint8"](vector[0])) == (found.values[0].astype(int) + 128).tolist()
    assert typed(np.zeros((1, 8), np.float32), "int8").scales == [0]


TEXTS = ["hot water with tea leaf", "", "the train"]


@pytest.mark.parametrize("dtype", ["float16", "int8", "ubinary", "binary"])
async def test_all_forms_of_an_answer_agree(
    client_of_eight: httpx.AsyncClient, eight: Any, dtype: Dtype
) -> None:
    body = {"inputs": TEXTS, "outputs": ["dense", "colbert"], "dtype": dtype}
    answer = await client_of_eight.post("/embed", json=body, headers={"Accept": "application/x-safetensors"})
    assert answer.status_code == 200, answer.text
    found = load(answer.content)
    header = json.loads(answer.content[8 : 8 + int.from_bytes(answer.content[:8], "little")])
    assert header["__metadata__"]["dtype"] == dtype
    expected = encode(eight, TEXTS)
    dense, colbert = typed(expected.dense, dtype), typed(expected.colbert.vectors, dtype)
    assert found["dense"].dtype == dense.values.dtype
    np.testing.assert_allclose(found["dense"].astype(float), dense.values.astype(float), atol=1e-3)
    np.testing.assert_allclose(found["colbert"].astype(float), colbert.values.astype(float), atol=1e-3)
    assert ("dense_scales" in found) == ("colbert_scales" in found) == (dtype == "int8")
    plain = (await client_of_eight.post("/embed", json=body)).json()["embeddings"]
    packed = (await client_of_eight.post("/embed", json={**body, "encoding": "base64"})).json()["embeddings"]
    for row in range(len(TEXTS)):
        tokens = slice(*found["colbert_offsets"][row : row + 2])
        assert np.array_equal(np.array(plain[row]["dense"], dense.values.dtype), found["dense"][row])
        assert np.array_equal(np.array(plain[row]["colbert"], dense.values.dtype), found["colbert"][tokens])
        assert unpacked(packed[row]["dense"]).tobytes() == found["dense"][row].tobytes()
        assert unpacked(packed[row]["colbert"]).tobytes() == found["colbert"][tokens].tobytes()
        if dtype == "int8":
            assert np.float32(plain[row]["dense_scale"]) == found["dense_scales"][row]
            assert np.array_equal(np.float32(plain[row]["colbert_scales"]), found["colbert_scales"][tokens])
            assert np.array_equal(unpacked(packed[row]["colbert_scales"]), found["colbert_scales"][tokens])


def unpacked(values: dict[str, Any]) -> Any:
    """As the documentation shows it."""
    return np.frombuffer(base64.b64decode(values["data"]), values["dtype"]).reshape(values["shape"])


async def test_token_vectors_are_pooled(client: httpx.AsyncClient, tiny: Any) -> None:
    body = {"inputs": TEXTS, "outputs": ["colbert"], "colbert_pool": 2}
    embeddings = (await client.post("/embed", json=body)).json()["embeddings"]
    expected = pooled(encode(tiny, TEXTS).colbert, 2)
    for row, embedding in enumerate(embeddings):
        np.testing.assert_allclose(embedding["colbert"], expected.row(row), atol=1e-5)
    whole = (await client.post("/embed", json={**body, "colbert_pool": 1})).json()["embeddings"]
    assert [len(one["colbert"]) for one in embeddings] == [-(-len(one["colbert"]) // 2) for one in whole]
    assert [one["tokens"] for one in embeddings] == [one["tokens"] for one in whole]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"dtype": "int4"}, "dtype"),
        ({"dtype": 8}, "dtype"),
        ({"colbert_pool": 0}, "colbert_pool"),
        ({"colbert_pool": 65}, "colbert_pool"),
        ({"colbert_pool": 1.5}, "colbert_pool"),
        ({"dtype": "binary", "dimensions": 3}, "dtype"),
        ({"dtype": "ubinary", "outputs": ["colbert"]}, "dtype"),  # of the tiny encoder: 4 values
    ],
)
async def test_bad_values_are_told(client: httpx.AsyncClient, changes: dict[str, Any], param: str) -> None:
    answer = await client.post("/embed", json={"inputs": ["tea"], "outputs": ["dense"], **changes})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == param
    assert answer.json()["error"]["message"]


@pytest.fixture
async def client_of_eight(make_client: Any, eight: Any, tmp_path: Path) -> Any:
    async with make_client(encoder=eight, data=tmp_path / "empty") as client:
        yield client
