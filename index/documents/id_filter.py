"""Tells most ids that a segment does not have without looking for them: a Bloom filter of one hash.

Each write asks every segment for its ids, and almost all segments have none of them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from index.files.packed_bytes import PackedBytes
from index.files.packed_kernels import mark_slots, marked_slots
from models.representations import Bool

BITS = 16  # for each id, at least: an id that is not there passes at most one time in so many


class IdFilter:
    """The filter of a segment's ids; made when it is first asked, in 2 to 4 bytes for each of them."""

    def __init__(self, ids: PackedBytes) -> None:
        self._ids = ids

    def may_have(self, ids: PackedBytes) -> Bool:
        """bool[T], False where the segment certainly does not have an id."""
        passing: Bool = marked_slots(self._slots, ids.hashes)
        return passing

    @cached_property
    def _slots(self) -> npt.NDArray[np.uint8]:
        """uint8[S], a bit for each slot; S is a power of 2."""
        slots = np.zeros(1 << (len(self._ids) * BITS // 8).bit_length(), np.uint8)
        ids = self._ids.span(0, len(self._ids))  # a view of its own, which does not keep their hashes
        mark_slots(slots, ids.hashes)
        return slots
