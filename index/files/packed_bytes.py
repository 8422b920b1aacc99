"""Byte strings of any length, packed end to end: `<stem>.npy` uint8 and `<stem>_offsets.npy` int64[N+1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from index.errors import DamagedIndexError
from index.files.storage import ArrayWriter, open_array
from models.representations import Int64, offsets_of


class PackedBytesWriter:
    """Streams byte strings into their two files."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._data = ArrayWriter(folder / f"{stem}.npy", np.uint8)
        self._offsets = ArrayWriter(folder / f"{stem}_offsets.npy", np.int64)
        self._offsets.append(np.zeros(1, np.int64))

    @property
    def total_bytes(self) -> int:
        """Bytes so far."""
        return self._data.total_bytes + self._offsets.total_bytes

    def append(self, strings: Sequence[bytes]) -> None:
        """Adds strings."""
        ends = self._data.rows + np.cumsum([len(s) for s in strings], dtype=np.int64)
        self._data.append(np.frombuffer(b"".join(strings), np.uint8))
        self._offsets.append(ends)

    def finish(self) -> None:
        """Completes both files."""
        self._data.finish()
        self._offsets.finish()

    def close(self) -> None:
        """Abandons both files."""
        self._data.close()
        self._offsets.close()


class PackedBytes:
    """Reads packed byte strings through memory maps. data: uint8[bytes]; offsets: int64[N+1]."""

    def __init__(self, data: npt.NDArray[np.uint8], offsets: Int64) -> None:
        self.data = data
        self.offsets = offsets

    @staticmethod
    def open(folder: Path, stem: str, count: int | None = None) -> PackedBytes:
        """Opens `count` strings, or as many as there are. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(folder / f"{stem}_offsets.npy", count)
        return PackedBytes(open_array(folder / f"{stem}.npy", np.uint8, rows=int(offsets[-1])), offsets)

    @staticmethod
    def of(strings: Sequence[bytes]) -> PackedBytes:
        """Strings in memory, packed alike."""
        lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        return PackedBytes(np.frombuffer(b"".join(strings), np.uint8), offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> bytes:
        return self.data[int(self.offsets[position]) : int(self.offsets[position + 1])].tobytes()

    def take(self, positions: Int64) -> list[bytes]:
        """The strings at these positions."""
        view = self.data.data
        starts, ends = self.offsets[positions].tolist(), self.offsets[positions + 1].tolist()
        return [bytes(view[start:end]) for start, end in zip(starts, ends, strict=True)]


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


def open_offsets(path: Path, count: int | None = None) -> Int64:
    """Offsets int64[count+1] of packed rows; `count` None takes as many as the file has.

    Raises DamagedIndexError where the file is missing, of another size, or its offsets do not ascend from 0.
    """
    offsets: Int64 = open_array(path, np.int64, rows=None if count is None else count + 1)
    if not ascends_from_zero(offsets):
        raise DamagedIndexError(f"{path} does not ascend from 0; restore it or rebuild the collection")
    return offsets


def ascends_from_zero(offsets: Int64) -> bool:
    """Whether offsets int64[N+1] stay between 0 and their last.

    Compiled loops do not check bounds, so damaged offsets must not reach them.
    """
    return len(offsets) > 0 and offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1]))
