"""Pieces of mapped files that lie anywhere, asked for at once where they are not in memory.

Who reads a piece that is not in memory waits for the disk, and then for the next one; a disk that is asked
for all of them fetches many side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from mmap import MADV_WILLNEED, PAGESIZE
from resource import RUSAGE_SELF, getrusage

import numpy as np

from tercet.index.files.arrays import Array
from tercet.index.files.mapping import libc
from tercet.index.runs import runs
from tercet.models.representations import Int64

IN_MEMORY = 1  # the bit of a page's byte that mincore gives
SAMPLED = 8  # rows that say whether the others are in memory; fewer are read as they come
FAULTS = 4  # page faults that waited for the disk, between two steps of searches
LOOKS = 64  # that find all in memory, until no more are taken


@dataclass(frozen=True, slots=True)
class Pieces:
    """Where n pieces of memory begin and end: addresses in bytes, int64[n] both."""

    starts: Int64
    ends: Int64

    @staticmethod
    def of(array: Array, starts: Int64, ends: Int64) -> Pieces:
        """Pieces of a C-contiguous array that hold its rows from each of `starts` to each of `ends`."""
        address, row = array.__array_interface__["data"][0], array.strides[0]
        return Pieces(address + row * starts, address + row * ends)

    def joined_with(self, *others: Pieces) -> Pieces:
        parts = (self, *others)
        return Pieces(
            np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts])
        )

    def in_memory(self) -> bool:
        """Whether the first page of each is in memory, as far as the system tells."""
        mincore, state = libc().mincore, ctypes.create_string_buffer(1)
        for page in (self.starts[self.ends > self.starts] & -PAGESIZE).tolist():
            if mincore(page, 1, state) == 0 and not state.raw[0] & IN_MEMORY:
                return False
        return True

    def ask_for(self) -> None:
        """Has the system read all that is not in memory, without waiting for it; it may refuse, which is no
        error: then each piece is read when it is needed.
        """
        madvise = libc().madvise
        for start, end in zip(*self._in_pages(), strict=True):
            madvise(start, end - start, MADV_WILLNEED)

    def _in_pages(self) -> tuple[list[int], list[int]]:
        """Where stretches of whole pages begin and end that have all pieces, each page once."""
        filled = self.ends > self.starts
        starts, ends = self.starts[filled] & -PAGESIZE, -(-self.ends[filled] & -PAGESIZE)
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        new = np.ones(len(starts), np.bool_)
        new[1:] = starts[1:] > ends[:-1]
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(starts))[: len(first)] - 1
        return starts[first].tolist(), ends[last].tolist()


class DiskWatch:
    """Whether this process waits for the disk, as the system counts its page faults; any thread may ask.

    To look whether pieces are in memory takes a twentieth of a fast search, and to look at the count next to
    nothing. So the pieces are looked at from the first waits on, until they were in memory many times.
    """

    def __init__(self) -> None:
        self._faults = 0
        self._looks = 0

    def waits(self) -> bool:
        """Whether it is worth looking."""
        faults = getrusage(RUSAGE_SELF).ru_majflt
        if faults - self._faults >= FAULTS:
            self._looks = LOOKS
        self._faults = faults
        return self._looks > 0

    def saw(self, *, all_in_memory: bool) -> None:
        self._looks = self._looks - 1 if all_in_memory else LOOKS


@cache
def disk_watch() -> DiskWatch:
    """The watch that all searches of this process share."""
    return DiskWatch()


def read_ahead(segments: Int64, rows: Int64, pieces_of: Callable[[int, Int64], Pieces]) -> None:
    """Asks for the pieces that hold rows int64[K] of segments int64[K], ascending, where the disk has them.

    pieces_of: of rows of one segment. Whether these are in memory is seen on a few of them.
    """
    watch = disk_watch()
    if len(rows) < SAMPLED or not watch.waits():
        return
    sampled = range(0, len(rows), len(rows) // SAMPLED)
    all_in_memory = all(
        pieces_of(int(segments[number]), rows[number : number + 1]).in_memory() for number in sampled
    )
    watch.saw(all_in_memory=all_in_memory)
    if not all_in_memory:
        for segment, run in runs(segments):
            pieces_of(segment, rows[run]).ask_for()
