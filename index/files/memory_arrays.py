"""Arrays in memory, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.index.files.arrays import Array, ArrayTarget


class MemoryStream:
    """An `ArrayStream` whose rows wait until it is finished; they must not change meanwhile."""

    def __init__(
        self, arrays: MemoryArrays, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...]
    ) -> None:
        self._arrays = arrays
        self._name = name
        self._empty = np.empty((0, *row_shape), dtype)
        self._parts: list[Array] = []
        self.rows = 0

    @property
    def total_bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def append(self, rows: Array) -> None:
        """Adds rows [n, *row_shape]; values are cast to the array's dtype."""
        if rows.shape[1:] != self._empty.shape[1:]:
            raise ValueError(f"rows have shape {rows.shape[1:]}, but the array has {self._empty.shape[1:]}")
        if len(rows):
            self._parts.append(rows.astype(self._empty.dtype, copy=False))
            self.rows += len(rows)

    def finish(self) -> None:
        """Joins the rows."""
        if len(self._parts) == 1:
            self._arrays.write(self._name, self._parts[0])
        else:
            self._arrays.write(self._name, np.concatenate([self._empty, *self._parts]))
        self._parts.clear()

    def close(self) -> None:
        """Forgets the rows."""
        self._parts.clear()


class MemoryArrays(ArrayTarget):
    """Arrays in memory, of the types and shapes that this process wrote."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    @property
    def total_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def has(self, name: str) -> bool:
        return name in self._arrays

    def path(self, name: str) -> Path:
        return Path("memory") / name

    def open(
        self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = (), rows: int | None = None
    ) -> Array:
        return self._arrays[name]

    def stream(self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> MemoryStream:
        return MemoryStream(self, name, dtype, row_shape)

    def create(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        array = self._arrays[name] = np.zeros(shape, dtype)
        return array

    def change(self, name: str) -> Array:
        """An array of its own, to be changed in place."""
        array = self._arrays[name] = np.array(self._arrays[name])
        return array

    def write(self, name: str, array: Array) -> None:
        """Keeps the array itself, which must not change any more."""
        self._arrays[name] = np.ascontiguousarray(array)

    def remove(self, name: str) -> None:
        del self._arrays[name]
