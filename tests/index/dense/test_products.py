"""Products with rows anywhere: in float32 as scans have them, and in float64, on any processor."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.dense.products import addresses_of, exact_products_at, products_at
from index.dense.scan import DenseScan, Scanned
from index.files.addresses import address_of

X86 = platform.machine() in ("x86_64", "AMD64")


def all_of(vectors: Any) -> Any:
    """Places and rows of one segment's vectors."""
    return addresses_of(vectors), np.zeros(len(vectors), np.int64), np.arange(len(vectors))


@pytest.mark.parametrize("dimension", [1, 15, 64, 100, 384])
def test_equal_rows_have_equal_products_wherever_they_lie(dimension: int) -> None:
    random = np.random.default_rng(dimension)
    row, query = random.standard_normal(dimension), random.standard_normal(dimension).astype(np.float32)
    vectors = random.standard_normal((50, dimension)).astype(np.float16)
    vectors[::7] = row
    expected = vectors.astype(np.float64) @ query.astype(np.float64)
    products, exact = products_at(*all_of(vectors), query), exact_products_at(*all_of(vectors), query)
    assert len(set(products[::7].tolist())) == len(set(exact[::7].tolist())) == 1
    np.testing.assert_allclose(products, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(exact, expected, rtol=1e-12, atol=1e-13)
    _, rows, scanned = DenseScan([Scanned(0, address_of(vectors, np.float16), 50, None)], query, 50).find(0)
    np.testing.assert_array_equal(scanned, products[rows])


def test_rows_lie_in_the_segments_at_their_places() -> None:
    first, third = np.array([[1, 0], [2, 0]], np.float16), np.array([[0, 3], [0, 4], [5, 6]], np.float16)
    places, rows, query = np.array([3, 0, 3]), np.array([2, 1, 0]), np.array([1, 10], np.float32)
    addresses = addresses_of(first, np.empty((0, 2), np.float16), first, third)
    for products in (products_at, exact_products_at):
        assert products(addresses, places, rows, query).tolist() == [65, 2, 30]
        assert len(products(addresses, places[:0], rows[:0], query)) == 0


def test_every_float16_has_its_value() -> None:
    """With the processor's conversion, subnormal numbers and the largest ones, too."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    stored = bits.view(np.float16)
    stored = stored[np.isfinite(stored)]
    for count in (1, 64):
        rows = np.zeros((len(stored), count), np.float16)
        rows[:, 0] = stored
        query = np.zeros(count, np.float32)
        query[0] = 1
        for products in (products_at, exact_products_at):
            np.testing.assert_array_equal(products(*all_of(rows), query), stored.astype(np.float32))


OLDER = """
import numpy as np
from index.dense.half_products import _CONVERTS
from index.dense.products import addresses_of, exact_products_at, products_at
assert not _CONVERTS
stored = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
rows = np.zeros((len(stored), 64), np.float16)
rows[:, 3] = np.where(np.isfinite(stored), stored, 0)
query = np.eye(1, 64, 3, dtype=np.float32)[0]
for products in (products_at, exact_products_at):
    found = products(addresses_of(rows), np.zeros(len(rows), np.int64), np.arange(len(rows)), query)
    assert (found == rows[:, 3].astype(np.float32)).all()
"""


def test_processors_without_float16_give_the_same() -> None:
    environment = {**os.environ, "NUMBA_CPU_NAME": "x86-64" if X86 else "generic", "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, "-c", OLDER], cwd=Path(__file__).parents[3], env=environment, check=True)
