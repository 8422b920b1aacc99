"""Tells most ids that a segment does not have without looking for them: a Bloom filter in words of 64 bits.

Each write asks every segment for its ids, and almost all segments have none of them. All bits of an id are in
one word, so that it costs one way to memory.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes, UInt64
from tercet.index.native.kernels import add_hashes, passing_hashes
from tercet.models.representations import Int64

IDS_A_WORD = 4  # at most, on average; then about one in 50 ids that are not there passes


class IdFilter:
    """The filter of a segment's ids; made when it is first asked, in 2 to 4 bytes for each of them."""

    def __init__(self, ids: PackedBytes) -> None:
        self._ids = ids

    def passing(self, ids: PackedBytes) -> Int64:
        """The places of ids that the segment may have, int64, ascending; it has none of the others."""
        return passing_hashes(self._words, ids.hashes)

    @cached_property
    def _words(self) -> UInt64:
        """uint64[W], the bits of the ids; W is a power of 2."""
        words = np.zeros(1 << (len(self._ids) // IDS_A_WORD).bit_length(), np.uint64)
        ids = self._ids.span(0, len(self._ids))  # a view of its own, which does not keep their hashes
        add_hashes(words, ids.hashes)
        return words
