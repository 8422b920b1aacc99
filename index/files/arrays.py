"""Arrays by name, wherever they lie: in files of a folder, together in one file, or in memory.

What a segment holds is read from an `ArraySource` and written to an `ArrayTarget`, so that its parts know
nothing of files. Every array has at least one axis and is in C order; on disk it is `<name>.npy`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tercet.index.errors import damaged
from tercet.index.files.streams import Stream

Array = npt.NDArray[Any]


class ArrayStream(Stream, Protocol):
    """An array that grows row by row; the number of rows is known only at the end."""

    @property
    def rows(self) -> int:
        """Rows so far."""

    def append(self, rows: Array) -> None:
        """Adds rows [n, *row_shape]; values are cast to the array's dtype."""


class ArraySource(Protocol):
    """Where arrays are read."""

    def open(
        self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = (), rows: int | None = None
    ) -> Array:
        """The array [rows, *row_shape], read-only; `rows` None takes as many as there are.

        Raises DamagedIndexError, naming the file, where it is missing or of another type or shape.
        """

    def has(self, name: str) -> bool:
        """Whether there is such an array."""

    def path(self, name: str) -> Path:
        """What messages call the array."""


class ArrayTarget(ArraySource, Protocol):
    """Where arrays are written, and read again while others are made of them."""

    def stream(self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> ArrayStream:
        """A new array of rows to come."""

    def create(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """A new array of zeros, to be written in place."""

    def change(self, name: str) -> Array:
        """An array that was just written, to be changed in place."""

    def write(self, name: str, array: Array) -> None:
        """A new array with this content."""

    def remove(self, name: str) -> None:
        """Takes an array away again."""


def frozen(array: Array) -> Array:
    """An array's memory as a plain read-only array, the one type that kernels are compiled for."""
    if type(array) is np.ndarray and not array.flags.writeable:
        return array
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def open_rows(
    arrays: ArraySource,
    name: str,
    documents: int,
    rows: int | None = None,
    dtype: npt.DTypeLike = np.int64,
) -> Array:
    """Rows of documents, dtype[rows], as `ArraySource.open`; one outside the documents is damage, too."""
    array = arrays.open(name, dtype, rows=rows)
    if len(array) and not 0 <= array.min() <= array.max() < documents:
        raise damaged(arrays.path(name), f"names a row outside the {documents} documents")
    return array
