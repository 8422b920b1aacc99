import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from index.instructions import LANES
from index.token_vectors.integer_products import (
    TILE,
    multiply,
    raise_best,
    raise_best_and_mark,
    square_sums,
)
from index.token_vectors.integer_query import IntegerQuery

# Processors to compile for, from the least to this machine's own: LLVM chooses other instructions for each.
PLAIN = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2"}

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


@numba.njit
def products_of(query: Any, group: int, tile: Any, products: Any) -> None:
    multiply(query, group, tile, tile.shape[1], products)


@numba.njit
def best_of(query: Any, group: int, tile: Any, sums: Any, scales: Any, best: Any) -> None:
    raise_best(query, group, tile, tile.shape[1], sums, scales, best)


@numba.njit
def marks_of(
    query: Any,
    group: int,
    tile: Any,
    sums: Any,
    scales: Any,
    best: Any,
    margins: Any,
    longest: Any,
    marks: Any,
) -> None:
    values = tile.shape[1]
    raise_best_and_mark(query, group, tile, values, sums, scales, best, margins, longest, marks)


@numba.njit
def squares_of(tile: Any, squares: Any) -> None:
    square_sums(tile, tile.shape[1], squares)


def extremes(values: int) -> tuple[Any, Any]:
    """Query and document tokens with the largest and smallest values there are, among others."""
    generator = np.random.default_rng(values)
    query = generator.integers(-127, 128, (2 * LANES, values))
    document = generator.integers(-128, 128, (TILE, values))
    query[3], query[4], document[0], document[1] = 127, -127, 127, -128
    return query, document


def packed(query: Any) -> Any:
    groups, values = len(query) // LANES, query.shape[1]
    by_lane = query.astype(np.int8).reshape(groups, LANES, values // 4, 4)
    return np.ascontiguousarray(by_lane.transpose(0, 2, 1, 3))


@pytest.mark.parametrize("values", [64, 128, 1024])
def test_products_are_those_of_whole_numbers(values: int) -> None:
    query, document = extremes(values)
    tile = (document + 128).astype(np.uint8)
    expected = document @ query.T + 128 * query.sum(axis=1)
    for group in range(2):
        products = np.empty((TILE, LANES), np.int32)
        products_of(packed(query), group, tile, products)
        assert np.array_equal(products, expected[:, LANES * group :][:, :LANES])
    squares = np.empty(TILE, np.int32)
    squares_of(tile, squares)
    assert np.array_equal(squares, np.square(document).sum(axis=1))


def test_the_best_is_raised_and_never_lowered() -> None:
    query, document = extremes(64)
    scales = np.linspace(0.001, 0.002, TILE, dtype=np.float32)
    sums = (128 * query.sum(axis=1)).astype(np.int32).reshape(2, LANES)
    products = ((document @ query.T) * scales[:, None]).max(axis=0)
    best = np.full((2, LANES), 5, np.float32)
    best_of(packed(query), 1, (document + 128).astype(np.uint8), sums, scales, best)
    assert (best[0] == 5).all()
    np.testing.assert_allclose(best[1], np.maximum(products[LANES:], 5), rtol=1e-6)


def test_marks_are_of_products_near_the_raised_best() -> None:
    query, document = extremes(64)
    scales = np.linspace(0.001, 0.002, TILE, dtype=np.float32)
    sums = (128 * query.sum(axis=1)).astype(np.int32).reshape(2, LANES)
    products = (document @ query.T).astype(np.float32)[:, LANES:] * scales[:, None]
    former = np.full(LANES, products.max() - 1, np.float32)  # of most lanes higher than any product
    best, margins = np.stack([former, former]), np.full((2, LANES), 10, np.float32)
    margins[1, 2] = -np.float32(3e38)
    marks = np.empty(TILE, np.uint16)
    tile = (document + 128).astype(np.uint8)
    marks_of(packed(query), 1, tile, sums, scales, best, margins, np.float32(0.5), marks)
    raised = np.maximum(products.max(axis=0), former)
    np.testing.assert_array_equal(best, [former, raised])
    near = products >= raised - 5
    near[:, 2] = False
    assert 0 < near.sum() < near.size
    np.testing.assert_array_equal(marks[:, None] >> np.arange(LANES) & 1, near)


@pytest.mark.parametrize("processor", [PLAIN, AVX2], ids=["any", "avx2"])
def test_other_processors_give_the_same_sums(processor: dict[str, str]) -> None:
    if processor is AVX2 and "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    subprocess.run(
        [*PYTEST, __file__, "-k", "whole_numbers or raised"],
        env={**os.environ, **processor},
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_a_query_as_bytes_says_how_far_it_is_off() -> None:
    query = np.array([[0.5, -0.25, 0.1], [0, 0, 0]], np.float32)
    integers = IntegerQuery.of(query)
    assert integers.packed.shape == (1, 16, LANES, 4)
    assert integers.packed[0, 0, 0].tolist() == [127, -64, 25, 0]  # 0.5 / 127 a step; 63.5 is rounded to even
    np.testing.assert_allclose(integers.scales[0, :3], [0.5 / 127, 0, 0])
    assert integers.sums[0, :2].tolist() == [128 * 88, 0]
    step = 0.5 / 127
    np.testing.assert_allclose(integers.errors, [np.hypot(-0.25 + 64 * step, 0.1 - 25 * step), 0], rtol=1e-5)
