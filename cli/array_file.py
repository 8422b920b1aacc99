"""A safetensors file written piece by piece, for arrays that need not fit in memory.

Layout: the length of the header (uint64), the header as JSON, then every array's bytes, in order.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_DTYPES = {"float32": "F32", "int32": "I32", "int64": "I64", "bool": "BOOL"}


@dataclass(slots=True)
class _Part:
    """One growing array: rows so far, the shape of a row, and a temporary file with its bytes."""

    dtype: str
    row_shape: tuple[int, ...]
    rows: int
    file: IO[bytes]


class ArrayFile:
    """Arrays that grow by rows. `finish` puts the file in place; leaving without it leaves nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
        self._parts: dict[str, _Part] = {}

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self._parts.values():
            part.file.close()
        self._folder.cleanup()

    def append(self, name: str, rows: npt.NDArray[Any]) -> None:
        """Adds rows to an array; all pieces of an array have one dtype and row shape."""
        part = self._parts.get(name)
        if part is None:
            file = (Path(self._folder.name) / name).open("w+b")
            part = self._parts[name] = _Part(_DTYPES[rows.dtype.name], rows.shape[1:], 0, file)
        part.rows += len(rows)
        part.file.write(np.ascontiguousarray(rows).data)

    def rows(self, name: str) -> int:
        """Rows that an array has so far."""
        part = self._parts.get(name)
        return 0 if part is None else part.rows

    def finish(self, metadata: Mapping[str, str]) -> None:
        """Writes the whole file under a temporary name, then renames it."""
        header: dict[str, Any] = {"__metadata__": dict(metadata)}
        end = 0
        for name, part in self._parts.items():
            start, end = end, end + part.file.tell()
            header[name] = {
                "dtype": part.dtype,
                "shape": [part.rows, *part.row_shape],
                "data_offsets": [start, end],
            }
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # arrays start at a multiple of 8 bytes
        whole = Path(self._folder.name) / "whole"
        with whole.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for part in self._parts.values():
                part.file.seek(0)
                shutil.copyfileobj(part.file, file, 2**20)
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self._path)
