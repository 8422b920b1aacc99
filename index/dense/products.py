"""Inner products of a query with float16 rows that lie anywhere in the vectors of many segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.dense.half_products import HALF_BYTES, exact_product, product
from index.files.addresses import AHEAD, address_of, bring_near
from index.files.arrays import frozen
from models.representations import Float32, Float64, Int64

Array = npt.NDArray[Any]


def addresses_of(*vectors: npt.NDArray[np.float16]) -> Int64:
    """Where each of some float16[N, D] lies, int64[S]."""
    return np.array([address_of(each, np.float16) for each in vectors], np.int64)


def products_at(addresses: Int64, places: Int64, rows: Int64, query: Float32) -> Float32:
    """Those of float32[D] with rows int64[K] of the segments at places int64[K], as a scan has them:
    float32[K]. addresses: int64[S], where the vectors of each segment lie.
    """
    row = frozen(np.ascontiguousarray(query, np.float32))
    products: Float32 = _products_at(frozen(addresses), frozen(places), frozen(rows), row)
    return products


def exact_products_at(addresses: Int64, places: Int64, rows: Int64, query: Float32) -> Float64:
    """The same, added up in float64: float64[K]."""
    row = frozen(query.astype(np.float64))
    products: Float64 = _exact_products_at(frozen(addresses), frozen(places), frozen(rows), row)
    return products


@compiled(nogil=True)
def _products_at(addresses: Array, places: Array, rows: Array, query: Array) -> Array:
    size = HALF_BYTES * len(query)
    found = np.empty(len(rows), np.float32)
    for number in range(len(rows)):
        ahead = min(number + AHEAD, len(rows) - 1)
        bring_near(addresses[places[ahead]] + size * rows[ahead], size)
        found[number] = product(addresses[places[number]] + size * rows[number], len(query), query.ctypes)
    return found


@compiled(nogil=True)
def _exact_products_at(addresses: Array, places: Array, rows: Array, query: Array) -> Array:
    size = HALF_BYTES * len(query)
    found = np.empty(len(rows), np.float64)
    for number in range(len(rows)):
        ahead = min(number + AHEAD, len(rows) - 1)
        bring_near(addresses[places[ahead]] + size * rows[ahead], size)
        start = addresses[places[number]] + size * rows[number]
        found[number] = exact_product(start, len(query), query.ctypes)
    return found
