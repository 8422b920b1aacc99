"""Arrays in a folder, each in a file of its own, which is mapped when it is opened."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.index.files.arrays import Array, ArrayTarget
from tercet.index.files.directory import remove_file
from tercet.index.files.mapping import map_file
from tercet.index.files.npy import HEADER_BYTES, array_in, npy_header, row_bytes, type_and_shape


class FileStream:
    """An `ArrayStream` into a new file."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._row_shape = row_shape
        self._file = path.open("xb")
        self._file.write(bytes(HEADER_BYTES))
        self.rows = 0

    @property
    def total_bytes(self) -> int:
        return self.rows * row_bytes(self._dtype, self._row_shape)

    def append(self, rows: Array) -> None:
        """Adds rows [n, *row_shape]; values are cast to the file's dtype."""
        if rows.shape[1:] != self._row_shape:
            raise ValueError(f"rows have shape {rows.shape[1:]}, but the file holds {self._row_shape}")
        if len(rows):
            self._file.write(np.ascontiguousarray(rows, self._dtype).data)
            self.rows += len(rows)

    def finish(self) -> None:
        """Writes the header and closes the file."""
        self._file.seek(0)
        self._file.write(npy_header(self._dtype, (self.rows, *self._row_shape)))
        self._file.close()

    def close(self) -> None:
        """Closes the file without its header: an abandoned array cannot be opened."""
        with contextlib.suppress(OSError):  # a full disk; the content no longer matters
            self._file.close()


@dataclass(frozen=True, slots=True)
class ArrayFolder(ArrayTarget):
    """The files `<name>.npy` of a folder."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def names(self) -> list[str]:
        """The arrays that are there, in order."""
        return sorted(path.stem for path in self.folder.glob("*.npy"))

    def open(
        self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = (), rows: int | None = None
    ) -> Array:
        """Maps an array [rows, *row_shape] read-only; `rows` None takes what the file's size says.

        Raises DamagedIndexError, naming the file, where it is missing or its header or size differ.
        """
        path = self.path(name)
        return array_in(map_file(path), path, dtype, row_shape, rows)

    def stream(self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> FileStream:
        return FileStream(self.path(name), dtype, row_shape)

    def create(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """An array of zeros in a new file, to be written in place.

        Its disk space is taken at once: a full disk raises OSError here, where it would kill a process that
        writes to the mapped file.
        """
        path = self.path(name)
        with path.open("xb") as file:
            file.write(npy_header(dtype, shape))
            file.flush()
            size = HEADER_BYTES + row_bytes(dtype, shape)
            if sys.platform == "darwin":  # which takes space only as it is written
                file.truncate(size)
            else:
                os.posix_fallocate(file.fileno(), 0, size)
        return self.change(name)

    def written(self, name: str) -> Array:
        """Maps an array that this process has just written, of whatever type and shape."""
        path = self.path(name)
        content = map_file(path)
        dtype, shape = type_and_shape(bytes(content[:HEADER_BYTES]), path)
        return array_in(content, path, dtype, shape[1:], shape[0])

    def change(self, name: str) -> Array:
        """An array that this process has just written, to be changed in place before it is published."""
        path = self.path(name)
        with path.open("rb") as file:
            dtype, shape = type_and_shape(file.read(HEADER_BYTES), path)
        return np.memmap(path, dtype, "r+", HEADER_BYTES, shape).view(np.ndarray)

    def write(self, name: str, array: Array) -> None:
        """Writes a whole array of at least one axis."""
        stream = self.stream(name, array.dtype, array.shape[1:])
        try:
            stream.append(array)
        finally:
            stream.finish()

    def remove(self, name: str) -> None:
        remove_file(self.path(name))
