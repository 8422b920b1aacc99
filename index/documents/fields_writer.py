"""Streams the declared metadata fields of one segment into the arrays that `index.documents.fields` reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from index.documents.fields import (
    SCALAR_DTYPES,
    Column,
    KeywordColumn,
    ScalarColumn,
    ScalarType,
)
from index.documents.metadata import FieldType
from index.files.arrays import ArrayStream, ArrayTarget
from index.files.packed_bytes import PackedBytes, PackedBytesWriter

# What a distinct string takes in memory beside its bytes: the object, its number, its place in the table.
STRING_OVERHEAD_BYTES = 150
CODES_AT_ONCE = 1 << 20


class FieldsWriter:
    """Streams the columns of all fields; only the distinct strings of keyword fields wait in memory."""

    def __init__(
        self, arrays: ArrayTarget, fields: Mapping[str, FieldType], stems: Mapping[str, str]
    ) -> None:
        self._columns: dict[str, _KeywordWriter | _ScalarWriter] = {}
        for name, kind in fields.items():
            stem = stems[name]
            self._columns[name] = (
                _KeywordWriter(arrays, stem) if kind == "keyword" else _ScalarWriter(arrays, stem, kind)
            )

    @property
    def total_bytes(self) -> int:
        """Bytes of the streamed files so far."""
        return sum(column.total_bytes for column in self._columns.values())

    @property
    def held_bytes(self) -> int:
        """About how much memory the distinct strings take so far."""
        return sum(column.held_bytes for column in self._columns.values())

    def append(self, columns: Mapping[str, Column], documents: int) -> None:
        """Adds the columns of so many documents, one for each field."""
        for name, writer in self._columns.items():
            writer.append(columns[name], documents)

    def finish(self) -> None:
        """Completes every field's arrays."""
        for column in self._columns.values():
            column.finish()

    def close(self) -> None:
        """Abandons the arrays."""
        for column in self._columns.values():
            column.close()


class _ScalarWriter:
    held_bytes = 0

    def __init__(self, arrays: ArrayTarget, stem: str, kind: ScalarType) -> None:
        self._arrays = arrays
        self._stem = stem
        self._dtype = SCALAR_DTYPES[kind]
        self._values = arrays.stream(f"{stem}_values", self._dtype)
        self._present = arrays.stream(f"{stem}_present", np.bool_)
        self._further: tuple[ArrayStream, ...] = ()  # only where documents have several values
        self._documents = 0

    @property
    def total_bytes(self) -> int:
        return sum(stream.total_bytes for stream in self._streams)

    def append(self, column: Column, documents: int) -> None:
        assert isinstance(column, ScalarColumn)  # noqa: S101 - of a field of this type
        self._values.append(column.values)
        self._present.append(column.present)
        if column.further is not None:
            if not self._further:
                self._further = (
                    self._arrays.stream(f"{self._stem}_further", self._dtype),
                    self._arrays.stream(f"{self._stem}_further_rows", np.int64),
                )
            values, rows = self._further
            values.append(column.further.values)
            rows.append(column.further.rows + self._documents)
        self._documents += documents

    def finish(self) -> None:
        for stream in self._streams:
            stream.finish()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    @property
    def _streams(self) -> tuple[ArrayStream, ...]:
        return (self._values, self._present, *self._further)


class _KeywordWriter:
    """Strings are numbered as they come; once all are known, the numbers give way to places in order."""

    def __init__(self, arrays: ArrayTarget, stem: str) -> None:
        self._arrays = arrays
        self._stem = stem
        self._codes = arrays.stream(f"{stem}_codes", np.int32)
        self._rows = arrays.stream(f"{stem}_rows", np.int64)
        self._strings = PackedBytesWriter(arrays, f"{stem}_strings")
        self._numbers: dict[bytes, int] = {}
        self._documents = 0
        self.held_bytes = 0

    @property
    def total_bytes(self) -> int:
        return self._codes.total_bytes + self._rows.total_bytes

    def append(self, column: Column, documents: int) -> None:
        assert isinstance(column, KeywordColumn)  # noqa: S101 - of a field of this type
        used, inverse = np.unique(column.codes, return_inverse=True)
        numbers = np.array([self._number(string) for string in column.strings.take(used)], np.int32)
        self._codes.append(numbers[inverse])
        self._rows.append(column.rows + self._documents)
        self._documents += documents

    def finish(self) -> None:
        strings = sorted(self._numbers)
        places = np.empty(len(strings), np.int32)
        places[[self._numbers[string] for string in strings]] = np.arange(len(strings), dtype=np.int32)
        self._strings.append(PackedBytes.of(strings))
        for writer in (self._strings, self._codes, self._rows):
            writer.finish()
        if self._codes.rows:
            codes = self._arrays.change(f"{self._stem}_codes")
            for start in range(0, len(codes), CODES_AT_ONCE):
                some = slice(start, start + CODES_AT_ONCE)
                codes[some] = places[codes[some]]

    def close(self) -> None:
        for writer in (self._strings, self._codes, self._rows):
            writer.close()

    def _number(self, string: bytes) -> int:
        number = self._numbers.get(string)
        if number is None:
            number = self._numbers[string] = len(self._numbers)
            self.held_bytes += len(string) + STRING_OVERHEAD_BYTES
        return number
