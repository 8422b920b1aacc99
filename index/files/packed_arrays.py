"""Arrays together in one file of the safetensors format, which is mapped when it is opened.

The file is the length of its header in 8 bytes, the header as JSON, and the values end to end, those of the
largest types first, so that each array is aligned to its type. `safetensors.numpy.load_file` reads it, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.errors import damaged
from tercet.index.files.arrays import Array, ArraySource
from tercet.index.files.content import missing
from tercet.index.files.mapping import map_file

LENGTH_BYTES = 8
ALIGNMENT = 64  # bytes, of the first value
WIDEST = 8  # bytes of a value
LARGEST, MOST_AXES = 2**48, 4  # more than any file of ours has
_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "F16": np.dtype("<f2"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True, slots=True)
class _Entry:
    """An array's type and shape, and where its values lie among those of the file, in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


class PackedArrays(ArraySource):
    """The arrays of one file, which is mapped."""

    def __init__(self, file: Path) -> None:
        """Maps the file. Raises DamagedIndexError, naming it, where it is missing, truncated, or has a header
        that is not understood.
        """
        content = map_file(file)
        try:
            start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
            header = json.loads(bytes(content[LENGTH_BYTES:start]))
            entries = {name: _parse_entry(record) for name, record in header.items()}
            if start % WIDEST:
                raise ValueError(f"its values begin at byte {start}, which is no multiple of {WIDEST}")
            _require_filled(entries.values(), len(content) - start)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(file, f"does not hold packed arrays ({error})") from error
        self._file = file
        self._values = content[start:]
        self._entries = entries

    def has(self, name: str) -> bool:
        return name in self._entries

    def path(self, name: str) -> Path:
        return self._file / name

    def open(
        self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = (), rows: int | None = None
    ) -> Array:
        entry = self._entries.get(name)
        if entry is None:
            raise missing(self.path(name))
        expected = (entry.shape[0] if rows is None else rows, *row_shape)
        if (entry.dtype, entry.shape) != (np.dtype(dtype), expected):
            raise damaged(
                self.path(name),
                f"has shape {entry.shape} and type {entry.dtype}, not {expected} and {np.dtype(dtype)}",
            )
        if entry.start == entry.end:
            return np.empty(expected, dtype)
        return np.frombuffer(self._values[entry.start : entry.end], dtype).reshape(expected)

    def all(self) -> dict[str, Array]:
        """Every array, of whatever type and shape."""
        return {name: self.open(name, entry.dtype, entry.shape[1:]) for name, entry in self._entries.items()}

    def sizes(self) -> dict[str, int]:
        """How many bytes the values of each array take."""
        return {name: entry.end - entry.start for name, entry in self._entries.items()}


def write_packed(file: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays of at least one axis into a new file. Raises OSError."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header, end = {}, 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-(LENGTH_BYTES + len(text)) % ALIGNMENT)
    with file.open("xb") as opened:
        opened.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        for _, array in ordered:
            if array.size:
                opened.write(np.ascontiguousarray(array).data)


def _parse_entry(record: Any) -> _Entry:
    """Raises ValueError, TypeError or KeyError for what `write_packed` does not write."""
    start, end = record["data_offsets"]
    entry = _Entry(_DTYPES[record["dtype"]], tuple(record["shape"]), start, end)
    numbers = (*entry.shape, start, end)
    whole = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
    if not whole or not 1 <= len(entry.shape) <= MOST_AXES or start % entry.dtype.itemsize:
        raise ValueError(f"an array of shape {entry.shape} from byte {start} to {end}")
    if entry.dtype.itemsize * math.prod(entry.shape) != end - start:
        raise ValueError(f"shape {entry.shape} of {entry.dtype} in {end - start} bytes")
    return entry


def _require_filled(entries: Iterable[_Entry], size: int) -> None:
    """Raises ValueError where the arrays do not lie end to end over so many bytes."""
    ends = [(0, 0), *sorted((entry.start, entry.end) for entry in entries), (size, size)]
    if any(before[1] != after[0] for before, after in pairwise(ends)):
        raise ValueError(f"its arrays do not fill {size} bytes")
