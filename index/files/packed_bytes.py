"""Byte strings of any length, packed end to end: `<stem>.npy` uint8 and `<stem>_offsets.npy` int64[N+1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.files.streams import Streams
from tercet.index.native.kernels import (
    common_packed,
    find_packed,
    first_packed,
    gather_packed,
    hash_packed,
    new_packed,
    sort_packed,
)
from tercet.models.representations import Int32, Int64, offsets_of

UInt64 = npt.NDArray[np.uint64]


class PackedBytesWriter(Streams):
    """Streams byte strings into their two arrays."""

    def __init__(self, arrays: ArrayTarget, stem: str) -> None:
        self._data = arrays.stream(stem, np.uint8)
        self._offsets = arrays.stream(f"{stem}_offsets", np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        super().__init__(self._data, self._offsets)

    def append(self, strings: PackedBytes) -> None:
        first, last = int(strings.offsets[0]), int(strings.offsets[-1])
        ends = self._data.rows + strings.offsets[1:] - first
        self._data.append(strings.data[first:last])
        self._offsets.append(ends)


class PackedBytes:
    """N byte strings. data: uint8[bytes]; offsets: int64[N+1], ascending; the first need not be 0."""

    def __init__(self, data: npt.NDArray[np.uint8], offsets: Int64) -> None:
        self.data = data
        self.offsets = offsets

    @staticmethod
    def open(arrays: ArraySource, stem: str, count: int | None = None) -> PackedBytes:
        """Opens `count` strings, or as many as there are. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(arrays, f"{stem}_offsets", count)
        return PackedBytes(arrays.open(stem, np.uint8, rows=int(offsets[-1])), offsets)

    @staticmethod
    def of(strings: Sequence[bytes]) -> PackedBytes:
        """Strings in memory, packed alike."""
        lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        return PackedBytes(np.frombuffer(b"".join(strings), np.uint8), offsets_of(lengths))

    @staticmethod
    def concatenate(parts: Sequence[PackedBytes]) -> PackedBytes:
        """The strings of all parts, one after the other."""
        lengths = [np.diff(part.offsets) for part in parts]
        data = [part.data[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts]
        return PackedBytes(
            np.concatenate([np.empty(0, np.uint8), *data]),
            offsets_of(np.concatenate([np.empty(0, np.int64), *lengths])),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def hashes(self) -> UInt64:
        """A hash of each string, uint64[N]; the same in every process."""
        return hash_packed(self.data, self.offsets)

    def __getitem__(self, position: int) -> bytes:
        return self.data[self.offsets.item(position) : self.offsets.item(position + 1)].tobytes()

    def take(self, positions: Int64 | Int32) -> list[bytes]:
        """The strings at these positions."""
        view = self.data.data
        starts, ends = self.offsets[positions].tolist(), self.offsets[positions + 1].tolist()
        return [bytes(view[start:end]) for start, end in zip(starts, ends, strict=True)]

    def span(self, start: int, stop: int) -> PackedBytes:
        """The strings from `start` up to `stop`, over the same memory."""
        return PackedBytes(self.data, self.offsets[start : stop + 1])

    def gather(self, positions: Int64) -> PackedBytes:
        """The strings at these positions, packed again."""
        offsets = offsets_of(self.offsets[positions + 1] - self.offsets[positions])
        return PackedBytes(gather_packed(self.data, self.offsets, positions), offsets)


def first_not_below(count: int, key: Callable[[int], bytes], wanted: bytes) -> int:
    """Binary search: the first of `count` positions whose ascending `key` is not below `wanted`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if key(middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def order_of(strings: PackedBytes) -> Int64:
    """The places of strings by ascending string, int64[N]; equal ones in order of place."""
    return sort_packed(strings.data, strings.offsets)


def distinct(strings: PackedBytes) -> tuple[Int64, Int64]:
    """The first place of each distinct string, int64[X], by ascending string, and which of these each string
    is, int64[N].
    """
    order = order_of(strings)
    new = new_packed(strings.data, strings.offsets, order)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return order[new], numbers


def first_of(strings: PackedBytes, count: int) -> Int64:
    """The places of the `count` smallest strings, at least 1 and of equal ones the first: int64[count], in no
    order.
    """
    return first_packed(strings.data, strings.offsets, count)


def find_strings(
    strings: PackedBytes, order: Int64, wanted: PackedBytes, likely: Int64 | None = None
) -> Int64:
    """The place of each of T wanted strings among distinct ones, int64[T]; -1 for one that is not there.

    order: int64[N], the places by ascending string. likely: the places of wanted strings that may be there,
    by default all.
    """
    likely = np.arange(len(wanted)) if likely is None else likely
    return find_packed(strings.data, strings.offsets, order, wanted.data, wanted.offsets, likely)


def common_strings(strings: PackedBytes, wanted: PackedBytes) -> Int64:
    """The places in `strings` of those that are wanted, int64[K], ascending; both ascend without repeats."""
    swapped = len(wanted) < len(strings)
    few, many = (wanted, strings) if swapped else (strings, wanted)
    return common_packed(few.data, few.offsets, many.data, many.offsets)[int(swapped)]


def open_offsets(arrays: ArraySource, name: str, count: int | None = None) -> Int64:
    """Offsets int64[count+1] of packed rows; `count` None takes as many as the file has.

    Raises DamagedIndexError where the file is missing, of another size, or its offsets do not ascend from 0.
    """
    offsets: Int64 = arrays.open(name, np.int64, rows=None if count is None else count + 1)
    if not ascends_from_zero(offsets):
        raise damaged(arrays.path(name), "does not ascend from 0")
    return offsets


def ascends_from_zero(offsets: Int64) -> bool:
    """Whether offsets int64[N+1] stay between 0 and their last.

    Compiled loops do not check bounds, so damaged offsets must not reach them.
    """
    return len(offsets) > 0 and offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1]))
