"""Codes of a codebook and pooled vectors against NumPy, with what each processor has."""

from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels

VARIANTS = [kernels.kernels_of(name) for name in kernels.AVAILABLE_INSTRUCTIONS]


@pytest.mark.parametrize("width", [2, 4, 8])
def test_pieces_are_coded_as_the_nearest_entry_and_decoded(width: int) -> None:
    random = np.random.default_rng(width)
    tables = random.integers(1, 128, (3, 256, width), np.uint8)
    tables[:, 200] = tables[:, 7]
    by_place: Any = np.ascontiguousarray(tables.transpose(0, 2, 1).astype(np.float32))
    rests = random.standard_normal((50, 3 * width)).astype(np.float32) * 30 + 64
    rests[0] = tables[:, 7].reshape(-1)
    distances = np.zeros((50, 3, 256), np.float32)
    for place in range(width):
        difference = rests.reshape(50, 3, width)[:, :, place, None] - by_place[:, place]
        distances += difference * difference
    centroids, numbers = (
        random.integers(1, 128, (5, 3 * width), np.uint8),
        random.integers(0, 5, 50, np.uint16),
    )
    for variant in VARIANTS:
        codes = np.empty((50, 3), np.uint8)
        variant["encode_pieces"](rests, by_place, codes)
        np.testing.assert_array_equal(codes, distances.argmin(axis=2))
        values = np.empty((50, 3 * width), np.float32)
        variant["decode_pieces"](codes, numbers, centroids, tables, values)
        entries = tables[np.arange(3), codes].reshape(50, -1).astype(np.float32)
        np.testing.assert_array_equal(values, centroids[numbers] + entries - 128)
        variant["decode_pieces"](codes[:0], numbers[:0], centroids, tables, values[:0])
        with pytest.raises(DamagedIndexError, match="a centroid of a token"):
            variant["decode_pieces"](codes, numbers + np.uint16(5), centroids, tables, values)


def test_pooled_vectors_are_the_same_on_all_processors() -> None:
    vectors = np.random.default_rng(0).standard_normal((70, 24)).astype(np.float32)
    vectors[10:20] = vectors[9]
    offsets, starts, found = np.array([0, 0, 1, 30, 70]), np.array([0, 0, 1, 16, 36]), []
    for variant in VARIANTS:
        found.append(np.zeros((36, 24), np.float32))
        variant["pool_tokens"](vectors, offsets, starts, 2, 20, found[-1])
        np.testing.assert_array_equal(found[-1], found[0])
        np.testing.assert_allclose(np.linalg.norm(found[-1][1:], axis=1), 1, rtol=1e-5)
        with pytest.raises(DamagedIndexError, match="not finite"):
            variant["pool_tokens"](np.full_like(vectors, np.nan), offsets, starts, 2, 20, found[-1].copy())


def test_tokens_of_int8_are_found_and_unpacked() -> None:
    codes, scales = np.arange(-6, 6, dtype=np.int8).reshape(6, 2), np.linspace(0, 1, 6, dtype=np.float32)
    record = kernels.token_store(codes.view(np.uint8), scales, None, np.array([0, 2, 2, 6]))
    floats = kernels.token_store(None, None, None, np.array([0, 4]))
    for variant in VARIANTS:
        found = variant["token_spans"]((record, floats), np.array([0, 1, 0, 0]), np.array([2, 0, 1, 0]))
        assert [each.tolist() for each in found] == [[2, 0, 2, 0], [6, 4, 2, 2]]
        for places, rows in (([2], [0]), ([0], [3]), ([0], [-1])):
            with pytest.raises(DamagedIndexError):
                variant["token_spans"]((record, floats), np.array(places), np.array(rows))
        vectors = np.empty((3, 2), np.float32)
        variant["unpack_int8"](codes, scales, np.array([5, 0, 5]), vectors)
        np.testing.assert_array_equal(vectors, (codes.astype(np.float32) * scales[:, None])[[5, 0, 5]])
        with pytest.raises(DamagedIndexError, match="the position of a token"):
            variant["unpack_int8"](codes, scales, np.array([5, 6, 5]), vectors)
