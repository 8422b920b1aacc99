"""The objects of an array in a JSON file, streamed: the whole of it, or the first array of objects in it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from index.errors import InvalidDocumentError
from ingest.errors import SourceError
from ingest.sources.json_text import NO_NUMBER
from ingest.sources.packed import PackedFile

_MARK = b"\xef\xbb\xbf"
_READ_BYTES = 2**16
_CONSTANT = re.compile(r"\b(NaN|Infinity)\b")


class JsonArray:
    """Iterates once over (number from 1, object).

    Raises SourceError where the file is no JSON, holds no array of objects, or one object takes more bytes
    than the limit.
    """

    unit = "record"
    encoding = None
    cells = False
    blank = 0
    left_out: Mapping[str, int] = {}
    names = None

    def __init__(self, path: Path, record_bytes: int) -> None:
        self.path = path
        self._limit = record_bytes
        self._file = PackedFile(path)

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._file.fraction

    def count(self) -> None:
        """Not known: only reading it all would tell."""

    def __iter__(self) -> Iterator[tuple[int, Any | InvalidDocumentError]]:
        number = 0
        prefix = self._prefix()
        with self._file.opened(lambda: f"record {number}") as file:
            bounded = _Bounded(file, self._limit, self.path)
            try:
                for number, record in enumerate(ijson.items(bounded, prefix, use_float=True), start=1):
                    bounded.begin()
                    yield number, record
            except ijson.JSONError as error:
                raise SourceError(
                    f"{self.path}: no valid JSON after record {number}: {self._why(error, prefix)}"
                ) from error

    def _why(self, error: Exception, prefix: str) -> str:
        """What is wrong; of numbers that JSON has not, though Python writes them, also where."""
        if not _CONSTANT.search(str(error)):
            return _said(error)
        path = ""
        with self._file.opened(lambda: "its beginning") as file, contextlib.suppress(ijson.JSONError):
            for parent, event, key in ijson.parse(_Bounded(file, sys.maxsize, self.path), use_float=True):
                path = f"{parent}.{key}" if event == "map_key" else parent
        return f'"{path.removeprefix(f"{prefix}.")[:200]}" is NaN or infinite: {NO_NUMBER}'

    def _prefix(self) -> str:
        """Where the array is, as ijson names its items."""
        with self._file.opened(lambda: "its beginning") as file:
            try:
                array = None
                for prefix, event, _ in ijson.parse(_Bounded(file, self._limit, self.path), use_float=True):
                    if event == "start_map" and prefix == array:
                        return str(prefix)
                    if array is None and not prefix and event == "start_array":
                        return "item"
                    array = None
                    if event == "start_array":
                        array = f"{prefix}.item"
            except ijson.JSONError as error:
                raise SourceError(f"{self.path}: no valid JSON: {_said(error)}") from error
        raise SourceError(
            f"{self.path}: no array of objects is in it; give one, or an object on each line (JSONL)"
        )


def _said(error: Exception) -> str:
    """Without the drawing of the place in the file that follows."""
    return str(error).split("\n", 1)[0]


class _Bounded:
    """A file of which no more than so many bytes are read until `begin` is called."""

    def __init__(self, file: BinaryIO, limit: int, path: Path) -> None:
        self._file = file
        self._limit = limit
        self._path = path
        self._read = 0
        self._first = True

    def begin(self) -> None:
        """The next object begins."""
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, without a byte order mark."""
        block = self._file.read(_READ_BYTES if size < 0 else size)
        if self._first and block:
            block, self._first = block.removeprefix(_MARK), False
        self._read += len(block)
        if self._read > self._limit + _READ_BYTES:
            raise SourceError(
                f"{self._path}: an object takes more than {self._limit} bytes, the limit for one document"
            )
        return block
