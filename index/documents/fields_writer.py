"""Streams the declared metadata fields of one segment into the arrays that `tercet.index.documents.fields`
reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tercet.index.documents.fields import (
    SCALAR_DTYPES,
    Column,
    KeywordColumn,
    ScalarColumn,
    ScalarType,
)
from tercet.index.documents.metadata import FieldType
from tercet.index.files.arrays import ArrayStream, ArrayTarget
from tercet.index.files.streams import Streams
from tercet.index.files.string_numbers import StringNumbers

CODES_AT_ONCE = 1 << 20


class FieldsWriter(Streams):
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
        super().__init__(*self._columns.values())

    @property
    def buffered_bytes(self) -> int:
        """About how much memory the distinct strings take so far."""
        return sum(column.buffered_bytes for column in self._columns.values())

    def append(self, columns: Mapping[str, Column], documents: int) -> None:
        """Adds the columns of so many documents, one for each field."""
        for name, writer in self._columns.items():
            writer.append(columns[name], documents)


class _ScalarWriter(Streams):
    buffered_bytes = 0

    def __init__(self, arrays: ArrayTarget, stem: str, kind: ScalarType) -> None:
        self._arrays = arrays
        self._stem = stem
        self._dtype = SCALAR_DTYPES[kind]
        self._values = arrays.stream(f"{stem}_values", self._dtype)
        self._present = arrays.stream(f"{stem}_present", np.bool_)
        self._further: tuple[ArrayStream, ...] = ()  # only where documents have several values
        self._documents = 0
        super().__init__(self._values, self._present)

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
                self._streams += self._further
            values, rows = self._further
            values.append(column.further.values)
            rows.append(column.further.rows + self._documents)
        self._documents += documents


class _KeywordWriter(Streams):
    """Strings are numbered as they come; once all are known, the numbers give way to ranks in order."""

    def __init__(self, arrays: ArrayTarget, stem: str) -> None:
        self._arrays = arrays
        self._stem = stem
        self._codes = arrays.stream(f"{stem}_codes", np.int32)
        self._rows = arrays.stream(f"{stem}_rows", np.int64)
        self._numbers = StringNumbers()
        self._documents = 0
        super().__init__(self._codes, self._rows)

    @property
    def buffered_bytes(self) -> int:
        return self._numbers.buffered_bytes

    def append(self, column: Column, documents: int) -> None:
        assert isinstance(column, KeywordColumn)  # noqa: S101 - of a field of this type
        self._codes.append(self._numbers.of(column.strings, column.codes))
        self._rows.append(column.rows + self._documents)
        self._documents += documents

    def finish(self) -> None:
        ranks = self._numbers.write(self._arrays, f"{self._stem}_strings")
        super().finish()
        if self._codes.rows:
            codes = self._arrays.change(f"{self._stem}_codes")
            for start in range(0, len(codes), CODES_AT_ONCE):
                some = slice(start, start + CODES_AT_ONCE)
                codes[some] = ranks[codes[some]]
