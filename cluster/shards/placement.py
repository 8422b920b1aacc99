"""Which shard holds a document: a hash of its id says, so whoever knows their number knows it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from tercet.models.representations import Int64

HASH_BYTES = 8


def shard_of(id: str, shards: int) -> int:
    """The shard of a document's id: 0 up to `shards` - 1."""
    return int.from_bytes(_hash(id), "little") % shards


def shards_of(ids: Sequence[str], shards: int) -> Int64:
    """The same of many ids: int64[N]."""
    hashes = np.frombuffer(b"".join(map(_hash, ids)), "<u8")
    return (hashes % np.uint64(shards)).astype(np.int64)


def _hash(id: str) -> bytes:
    return blake2b(id.encode(), digest_size=HASH_BYTES).digest()
