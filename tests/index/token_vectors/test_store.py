"""Codecs of token vectors: what is stored, how large the error can be, what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.token_vectors.store import TokenCodec, TokenVectorStore, TokenVectorWriter, quantize_int8
from tercet.models.representations import Float32, TokenVectors, offsets_of


def test_int8_codes_by_hand() -> None:
    codes, scales = quantize_int8(np.array([[1, -0.5], [0, 0], [0.254, 0.1]], np.float32))
    assert codes.tolist() == [[127, -64], [0, 0], [127, 50]]
    np.testing.assert_allclose(scales, [1 / 127, 0, 0.002], rtol=1e-6)


def store(folder: Path, codec: TokenCodec, parts: list[TokenVectors]) -> TokenVectorStore:
    dimension = parts[0].vectors.shape[1]
    writer = TokenVectorWriter(ArrayFolder(folder), codec, dimension)
    for part in parts:
        writer.append(TokenVectorStore.encode(part, codec))
    writer.finish()
    return TokenVectorStore.open(ArrayFolder(folder), codec, sum(len(part) for part in parts), dimension)


@pytest.mark.parametrize(("codec", "allowed"), [("int8", 0.5 / 127), ("float16", 2**-11)])
def test_vectors_come_back_within_half_a_step(tmp_path: Path, codec: TokenCodec, allowed: float) -> None:
    random = np.random.default_rng(1)
    vectors = random.uniform(-1, 1, (50, 33)).astype(np.float32)
    parts = [
        TokenVectors(vectors[:20], offsets_of(np.array([5, 0, 15]))),
        TokenVectors(vectors, np.array([20, 20, 49, 50])),  # a part of a larger record
    ]
    found = store(tmp_path, codec, parts)
    assert found.offsets.tolist() == [0, 5, 5, 20, 20, 49, 50]
    np.testing.assert_allclose(found.vectors(np.arange(50)), vectors, atol=allowed)
    np.testing.assert_array_equal(found.vectors(np.array([7, 7, 3])), found.vectors(np.arange(50))[[7, 7, 3]])


def test_every_float16_value_is_unpacked_exactly(tmp_path: Path) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values: Any = bits.view(np.float16)
    values = values[np.isfinite(values)].reshape(-1, 2)
    vectors: Float32 = values.astype(np.float32)
    found = store(tmp_path, "float16", [TokenVectors(vectors, offsets_of(np.array([len(vectors)])))])
    unpacked = found.vectors(np.arange(len(vectors)))
    np.testing.assert_array_equal(unpacked.view(np.uint32), vectors.view(np.uint32))


def test_no_positions_give_no_vectors(tmp_path: Path) -> None:
    found = store(tmp_path, "int8", [TokenVectors(np.ones((1, 4), np.float32), np.array([0, 1]))])
    assert found.vectors(np.empty(0, np.int64)).shape == (0, 4)


def test_offsets_and_codes_must_agree(tmp_path: Path) -> None:
    store(tmp_path, "int8", [TokenVectors(np.ones((3, 4), np.float32), np.array([0, 3]))])
    (tmp_path / "token_offsets.npy").unlink()
    ArrayFolder(tmp_path).write("token_offsets", np.array([0, 4]))
    with pytest.raises(DamagedIndexError, match=r"token_codes\.npy"):
        TokenVectorStore.open(ArrayFolder(tmp_path), "int8", 1, 4)
