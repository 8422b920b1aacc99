"""Roaring bitmaps of rows: made of the arrays that columns hold, and turned into those that searches take."""

from __future__ import annotations

import array
import struct

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, BitMap, FrozenBitMap

from tercet.index.native.kernels import set_bits
from tercet.models.representations import Bool, Int32, Int64

CONTAINER = 65_536  # rows of a container
ARRAY_ROWS = 4_096  # up to so many rows a container lists them; with more it has a bit for each row
NO_RUNS = 12_346  # the first number of a bitmap none of whose containers are runs
# So many rows, one of so many, become a bitmap faster by way of a bit for each than if they are put in order.
ROWS_PER_LISTED = 32
LEAST_BY_BITS = 2_048

NOTHING: AbstractBitMap = FrozenBitMap()


def bitmap_of(rows: Int32 | Int64, documents: int) -> AbstractBitMap:
    """Of rows [K] below `documents`, in any order, maybe repeated."""
    if len(rows) >= LEAST_BY_BITS and len(rows) * ROWS_PER_LISTED > documents:
        mask = np.zeros(documents, np.bool_)
        mask[rows] = True
        return bitmap_of_mask(mask)
    return bitmap_of_ascending(np.sort(rows))


def bitmap_of_ascending(rows: npt.NDArray[np.integer]) -> BitMap:
    """Of rows [K] in ascending order, maybe repeated."""
    return BitMap(array.array("I", rows.astype(np.uint32, copy=False).tobytes()))


def bitmap_of_mask(mask: Bool) -> AbstractBitMap:
    """Of the places where bool[N] is true: written as CRoaring reads it, which copies whole containers.

    The format: https://github.com/RoaringBitmap/RoaringFormatSpec
    """
    packed = np.packbits(mask, bitorder="little")
    bits = np.zeros((-(-len(mask) // CONTAINER), CONTAINER // 8), np.uint8)
    bits.reshape(-1)[: len(packed)] = packed
    counts = np.bitwise_count(bits.view(np.uint64)).sum(axis=1, dtype=np.int64)
    (keys,) = np.nonzero(counts)
    bodies = [_container(bits[key], int(counts[key])) for key in keys.tolist()]
    start = 8 + 8 * len(keys)
    offsets = start + np.cumsum([0, *map(len, bodies)])[:-1]
    head = struct.pack("<II", NO_RUNS, len(keys))
    kinds = np.stack([keys, counts[keys] - 1], axis=1).astype("<u2").tobytes()
    return FrozenBitMap.deserialize(b"".join([head, kinds, offsets.astype("<u4").tobytes(), *bodies]))


def _container(bits: npt.NDArray[np.uint8], count: int) -> bytes:
    if count > ARRAY_ROWS:
        return bits.tobytes()
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype("<u2").tobytes()


def packed_of(bitmap: AbstractBitMap, documents: int) -> npt.NDArray[np.uint8]:
    """A bit for each row below `documents`, the first of a byte its lowest; uint8[⌈N/8⌉]."""
    packed = np.zeros(-(-documents // 8), np.uint8)
    set_bits(np.frombuffer(bitmap.to_array(), np.uint32), packed)
    return packed
