"""Files that survive a crash: atomic replacement, checksums, and memory-mapped `.npy` arrays.

Every array of the index is a plain `.npy` file (format 1.0, C order, little-endian) with a header of
exactly 128 bytes, so that an array of unknown length can be streamed and its header written last.
`numpy.load` reads these files; we map them ourselves, comparing the header with the one expected
instead of parsing it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from index.errors import DamagedIndexError

HEADER_BYTES = 128


def missing(path: Path) -> DamagedIndexError:
    """The error for a file of the index that is not there."""
    return DamagedIndexError(f"{path} is missing; restore it or rebuild the collection")


def sync_file(path: Path) -> None:
    """Forces a file's content to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Forces a folder's entries to the disk, so that created, renamed and removed names last."""
    sync_file(folder)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Replaces a file: after a crash it holds its former content or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def json_bytes(value: Any) -> bytes:
    """A value as readable JSON."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def write_json_atomically(path: Path, value: Any) -> None:
    """Replaces a file by readable JSON."""
    write_atomically(path, [json_bytes(value)])


def read_json_object(path: Path, remedy: str = "restore it or rebuild") -> dict[str, Any]:
    """Reads a JSON object. Raises FileNotFoundError, or DamagedIndexError, naming the remedy."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DamagedIndexError(f"{path} is not valid JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise DamagedIndexError(f"{path} holds no JSON object; {remedy}")
    return value


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits. Raises DamagedIndexError where it is missing."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise missing(path) from error


def npy_header(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The 128 bytes before the values of an array of this dtype and shape."""
    text = f"{{'descr': {np.dtype(dtype).str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"


class ArrayWriter:
    """Streams rows into a `.npy` file; the number of rows is known only at the end."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._row_shape = row_shape
        self._file = path.open("xb")
        self._file.write(bytes(HEADER_BYTES))
        self.rows = 0

    @property
    def total_bytes(self) -> int:
        """Bytes of the rows so far."""
        return self.rows * _row_bytes(self._dtype, self._row_shape)

    def append(self, rows: npt.NDArray[Any]) -> None:
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


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Writes a whole array of at least one axis."""
    writer = ArrayWriter(path, array.dtype, array.shape[1:])
    try:
        writer.append(array)
    finally:
        writer.finish()


def create_array(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """An array of zeros in a new file, to be written in place.

    Its disk space is taken at once: a full disk raises OSError here, where it would kill a process that
    writes to the mapped file.
    """
    array: npt.NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype=np.dtype(dtype), shape=shape)
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array.view(np.ndarray)


def changed_array(path: Path) -> npt.NDArray[Any]:
    """An array that this process has just written, to be changed in place before it is published."""
    array: npt.NDArray[Any] = np.lib.format.open_memmap(path, "r+")
    return array.view(np.ndarray)


def open_array(
    path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = (), rows: int | None = None
) -> npt.NDArray[Any]:
    """Maps an array [rows, *row_shape] read-only; `rows` None takes what the file's size says.

    Raises DamagedIndexError, naming the file, where it is missing or its header or size differ.
    """
    row_bytes = _row_bytes(np.dtype(dtype), row_shape)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            count = max(0, size - HEADER_BYTES) // row_bytes if rows is None else rows
            shape = (count, *row_shape)
            if size != HEADER_BYTES + count * row_bytes:
                raise DamagedIndexError(
                    f"{path} has {size} bytes, but an array of shape {shape} and type {np.dtype(dtype)} has "
                    f"{HEADER_BYTES + count * row_bytes}; restore it or rebuild the collection"
                )
            if file.read(HEADER_BYTES) != npy_header(dtype, shape):
                raise DamagedIndexError(
                    f"{path} is not an array of shape {shape} and type {np.dtype(dtype)}; "
                    "restore it or rebuild the collection"
                )
            if count == 0:
                return np.empty(shape, dtype)
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise missing(path) from error
    return np.frombuffer(mapped, dtype, offset=HEADER_BYTES).reshape(shape)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory as a plain read-only array, the one type that kernels are compiled for."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def open_rows(path: Path, documents: int, rows: int | None = None) -> npt.NDArray[np.int64]:
    """Maps rows of documents, int64[rows], as `open_array`; a row outside the documents is damage, too."""
    found: npt.NDArray[np.int64] = open_array(path, np.int64, rows=rows)
    if len(found) and not 0 <= found.min() <= found.max() < documents:
        raise DamagedIndexError(
            f"{path} names a row outside the {documents} documents; restore it or rebuild the collection"
        )
    return found


def _row_bytes(dtype: np.dtype[Any], row_shape: tuple[int, ...]) -> int:
    return dtype.itemsize * math.prod(row_shape)
