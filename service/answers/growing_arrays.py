"""Arrays that grow by rows and need not fit in memory, written as one safetensors body.

Layout: the length of the header (uint64), the header as JSON, then every array's bytes, in order.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MEMORY_BYTES = 2**22  # of one array; what is longer waits in a temporary file
CHUNK_BYTES = 2**18

_DTYPES = {
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


@dataclass(slots=True)
class _Part:
    """One growing array: rows so far, the shape of a row, and their bytes."""

    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    file: tempfile.SpooledTemporaryFile[bytes]
    rows: int = 0
    size_bytes: int = 0


class GrowingArrays:
    """Arrays by name, which wait in files of `folder`, by default the system's for temporary files."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = None if folder is None else str(folder)
        self._files = ExitStack()
        self._parts: dict[str, _Part] = {}

    def close(self) -> None:
        """Lets go of all files."""
        self._files.close()

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays so far."""
        return sum(part.size_bytes for part in self._parts.values())

    def append(self, name: str, rows: npt.NDArray[Any]) -> None:
        """Adds rows to an array; all pieces of an array have one dtype and row shape."""
        part = self._parts.get(name)
        if part is None:
            file = self._files.enter_context(self._new_file())
            part = self._parts[name] = _Part(rows.dtype, rows.shape[1:], file)
        part.rows += len(rows)
        part.size_bytes += part.file.write(np.ascontiguousarray(rows).data)

    def rows(self, name: str) -> int:
        """Rows that an array has so far."""
        part = self._parts.get(name)
        return 0 if part is None else part.rows

    def header(self, metadata: Mapping[str, str]) -> bytes:
        """What comes before the chunks."""
        header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
        end = 0
        for name, part in self._in_order():
            start, end = end, end + part.size_bytes
            header[name] = {
                "dtype": _DTYPES[part.dtype.name],
                "shape": [part.rows, *part.row_shape],
                "data_offsets": [start, end],
            }
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # arrays start at a multiple of 8 bytes
        return len(text).to_bytes(8, "little") + text

    def chunks(self) -> Iterator[bytes]:
        """The bytes of all arrays, as the header has them."""
        for _, part in self._in_order():
            part.file.seek(0)
            while chunk := part.file.read(CHUNK_BYTES):
                yield chunk

    def _in_order(self) -> list[tuple[str, _Part]]:
        """The arrays of larger items first, so that every array starts at a multiple of its items' size."""
        return sorted(self._parts.items(), key=lambda part: -part[1].dtype.itemsize)

    def _new_file(self) -> tempfile.SpooledTemporaryFile[bytes]:
        return tempfile.SpooledTemporaryFile(MEMORY_BYTES, dir=self._folder)
