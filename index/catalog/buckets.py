"""Virtual buckets of documents: a fixed number, by a hash of the key that a document is placed by, its id or
its partition. Each shard of a collection owns some.

Another number of shards moves buckets between them. The bucket of a document never changes, so whatever
bucket stays moves no document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Bool, Int64

BUCKETS = 1024
HASH_BYTES = 8

Ranges = tuple[tuple[int, int], ...]
"""Buckets: each range from its first up to, and without, its second number; ascending, apart."""


def hashes_of(keys: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """uint64[N], of keys in UTF-8: the first 8 bytes of BLAKE2b, little-endian."""
    return np.frombuffer(b"".join(blake2b(key, digest_size=HASH_BYTES).digest() for key in keys), "<u8")


def buckets_of(keys: Iterable[bytes]) -> Int64:
    """The bucket of each key, int64[N]."""
    return (hashes_of(keys) % np.uint64(BUCKETS)).astype(np.int64)


def ranges_of(owned: Bool) -> Ranges:
    """bool[BUCKETS] as ranges."""
    edges = np.flatnonzero(np.diff(owned, prepend=False, append=False)).tolist()
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def owned_in(ranges: Ranges) -> Bool:
    """Ranges as bool[BUCKETS]."""
    owned = np.zeros(BUCKETS, np.bool_)
    for first, end in ranges:
        owned[first:end] = True
    return owned


def ranges_from(record: object) -> Ranges:
    """Ranges as JSON has them. Raises ValueError."""
    if not isinstance(record, list):
        raise ValueError("buckets are a list of ranges")
    bounds: list[int] = []
    for each in record:
        match each:
            case [int(first), int(end)]:
                bounds += first, end
            case _:
                raise ValueError("a range of buckets has two numbers")
    if any(a >= b for a, b in pairwise(bounds)) or not _are_buckets(bounds):
        raise ValueError(f"ranges of buckets ascend, from 0 to {BUCKETS}")
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


def _are_buckets(bounds: Sequence[int]) -> bool:
    return not bounds or (bounds[0] >= 0 and bounds[-1] <= BUCKETS)
