"""Inner products of a query with float16 rows that lie anywhere in the vectors of many segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from index.dense.half_products import exact_product, product
from index.files.addresses import AHEAD, address_of, bring_near
from index.files.arrays import frozen
from models.representations import Float32, Float64, Int64

HALF_BYTES = 2

Array = npt.NDArray[Any]
Vectors = Mapping[int, npt.NDArray[np.float16]]
"""float16[N, D] of segments, by their places."""


def products_at(vectors: Vectors, places: Int64, rows: Int64, query: Float32) -> Float32:
    """Those of float32[D] with rows int64[K] of the segments at places int64[K], as a scan has them:
    float32[K].
    """
    row = frozen(np.ascontiguousarray(query, np.float32))
    products: Float32 = _products_at(_addresses(vectors), frozen(places), frozen(rows), row)
    return products


def exact_products_at(vectors: Vectors, places: Int64, rows: Int64, query: Float32) -> Float64:
    """The same, added up in float64: float64[K]."""
    row = frozen(query.astype(np.float64))
    products: Float64 = _exact_products_at(_addresses(vectors), frozen(places), frozen(rows), row)
    return products


def _addresses(vectors: Vectors) -> Int64:
    addresses = np.zeros(max(vectors, default=-1) + 1, np.int64)
    for place, stored in vectors.items():
        addresses[place] = address_of(stored, np.float16)
    return addresses


@njit(cache=True, nogil=True)
def _products_at(addresses: Array, places: Array, rows: Array, query: Array) -> Array:
    size = HALF_BYTES * len(query)
    found = np.empty(len(rows), np.float32)
    for number in range(len(rows)):
        ahead = min(number + AHEAD, len(rows) - 1)
        bring_near(addresses[places[ahead]] + size * rows[ahead], size)
        found[number] = product(addresses[places[number]] + size * rows[number], len(query), query.ctypes)
    return found


@njit(cache=True, nogil=True)
def _exact_products_at(addresses: Array, places: Array, rows: Array, query: Array) -> Array:
    size = HALF_BYTES * len(query)
    found = np.empty(len(rows), np.float64)
    for number in range(len(rows)):
        ahead = min(number + AHEAD, len(rows) - 1)
        bring_near(addresses[places[ahead]] + size * rows[ahead], size)
        start = addresses[places[number]] + size * rows[number]
        found[number] = exact_product(start, len(query), query.ctypes)
    return found
