"""What filters look values up in, of each declared field of a segment.

Postings of keywords and booleans, and the values of other fields in order. A segment on the disk has them in
arrays of its own, unless it is small or was written before there were any: then they are made when a filter
first asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tercet.index.documents.fields import Column, KeywordColumn, ScalarColumn
from tercet.index.documents.postings import Postings
from tercet.index.documents.sorted_values import SortedValues
from tercet.index.files.arrays import ArraySource, ArrayTarget

STORED_DOCUMENTS = 4_096  # those of fewer are made in less than a millisecond


class FieldIndexes:
    """The postings and sorted values of the columns of N documents."""

    def __init__(
        self, columns: Mapping[str, Column], documents: int, stored: Mapping[str, Postings | SortedValues]
    ) -> None:
        self._columns = columns
        self._documents = documents
        self._indexes = dict(stored)

    @staticmethod
    def open(
        arrays: ArraySource, columns: Mapping[str, Column], stems: Mapping[str, str], documents: int
    ) -> FieldIndexes:
        """Opens what a segment has. Raises DamagedIndexError naming the file."""
        stored: dict[str, Postings | SortedValues] = {}
        for name, column in columns.items():
            stem = stems[name]
            if arrays.has(f"{stem}_few"):
                values = len(column.strings) if isinstance(column, KeywordColumn) else 2
                stored[name] = Postings.open(arrays, stem, values, documents)
            elif arrays.has(f"{stem}_sorted") and isinstance(column, ScalarColumn):
                stored[name] = SortedValues.open(arrays, stem, column.values.dtype, documents)
        return FieldIndexes(columns, documents, stored)

    def postings(self, field: str) -> Postings | None:
        """Of a keyword or boolean field; None for another."""
        index = self._index(field)
        return index if isinstance(index, Postings) else None

    def sorted_values(self, field: str) -> SortedValues:
        """Of a field that has no postings."""
        index = self._index(field)
        assert isinstance(index, SortedValues)  # noqa: S101 - else it has postings
        return index

    def stored(self) -> Mapping[str, Postings | SortedValues]:
        """Those that are there by now."""
        return self._indexes

    def _index(self, field: str) -> Postings | SortedValues:
        index = self._indexes.get(field)
        if index is None:
            index = self._indexes[field] = index_of(self._columns[field], self._documents)
        return index


def write_indexes(
    arrays: ArrayTarget, columns: Mapping[str, Column], stems: Mapping[str, str], documents: int
) -> None:
    """Makes and writes those of columns, one after another."""
    for name, column in columns.items():
        index_of(column, documents).write(arrays, stems[name])


def index_of(column: Column, documents: int) -> Postings | SortedValues:
    """Made of a column of so many documents."""
    if isinstance(column, KeywordColumn):
        return Postings.of(column.codes, column.rows, len(column.strings), documents)
    if column.values.dtype == np.bool_:
        rows = np.flatnonzero(column.present)
        return Postings.of(column.values[rows].astype(np.int32), rows, 2, documents)
    return SortedValues.of(column)
