"""How many documents have each value of a field: exact counts over all that a filter allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from index.candidates import Facet, FacetValue
from index.compiled import compiled
from index.documents.conditions import Condition
from index.documents.fields import Column, KeywordColumn
from index.files.arrays import frozen
from index.files.packed_bytes import PackedBytes, distinct
from index.segments.segment import Segment
from models.representations import Bool, Int64

Array = npt.NDArray[Any]

BOOLEANS = {b"false": False, b"true": True}


def facets_of(
    segments: Sequence[Segment], wanted: Mapping[str, int], condition: Condition | None
) -> dict[str, Facet]:
    """Of each declared keyword or boolean field so many of its commonest values, over all documents that the
    condition allows. Equal counts are in order of value.
    """
    sets = [segment.allowed(condition) for segment in segments]
    documents = sum(
        len(segment if rows is None else rows) for segment, rows in zip(segments, sets, strict=True)
    )
    allowed = [None if rows is None else rows.mask for rows in sets]
    facets = {}
    for name, limit in wanted.items():
        columns = [segment.columns[name] for segment in segments]
        keyword = any(isinstance(column, KeywordColumn) for column in columns)
        counted = [_counted(column, mask) for column, mask in zip(columns, allowed, strict=True)]
        strings = PackedBytes.concatenate([strings for strings, _, _ in counted])
        first, numbers = distinct(strings)
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, numbers, np.concatenate([np.empty(0, np.int64), *(each for _, each, _ in counted)]))
        most = np.argsort(-counts, kind="stable")[:limit]
        values = [
            FacetValue(value.decode() if keyword else BOOLEANS[value], count)
            for value, count in zip(strings.take(first[most]), counts[most].tolist(), strict=True)
        ]
        facets[name] = Facet(values, len(first), documents - sum(having for _, _, having in counted))
    return facets


def _counted(column: Column, allowed: Bool | None) -> tuple[PackedBytes, Int64, int]:
    """The values of the allowed documents of a segment, how many have each, and how many have any."""
    if isinstance(column, KeywordColumn):
        mask = np.empty(0, np.bool_) if allowed is None else allowed
        counts, having = count_documents(
            frozen(column.codes), frozen(column.rows), frozen(mask), len(column.strings)
        )
        strings = column.strings
    else:
        present = column.present if allowed is None else column.present & allowed
        having, true = int(np.count_nonzero(present)), int(np.count_nonzero(column.values & present))
        strings, counts = PackedBytes.of(list(BOOLEANS)), np.array([having - true, true])
    there = np.flatnonzero(counts)
    return strings.gather(there), counts[there], having


@compiled(nogil=True)
def count_documents(codes: Array, rows: Array, allowed: Array, strings: int) -> tuple[Array, int]:
    """How many documents have each of so many strings, int64[strings], and how many have any.

    codes: int32[P]; rows: int64[P], the document of each, ascending; allowed: bool[N], those that count, or
    bool[0] for all. A document that has a string twice counts once.
    """
    counts, last = np.zeros(strings, np.int64), np.full(strings, -1, np.int64)
    having, before = 0, np.int64(-1)
    for position in range(len(codes)):
        row, code = rows[position], codes[position]
        if len(allowed) > 0 and not allowed[row]:
            continue
        if last[code] != row:
            counts[code] += 1
            last[code] = row
        if row != before:
            having += 1
            before = row
    return counts, having
