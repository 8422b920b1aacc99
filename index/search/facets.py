"""How many documents have each value of a field: exact counts over all that a filter allows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tercet.index.candidates import Facet, FacetValue
from tercet.index.documents.conditions import Condition
from tercet.index.documents.fields import KeywordColumn, ScalarColumn
from tercet.index.documents.row_set import RowSet
from tercet.index.native.kernels import count_facet, keyword_column
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64, offsets_of

ALL = -1  # where bits begin of a segment all of whose documents count
SEED_BITS = 63


def facets_of(
    segments: Sequence[Segment], wanted: Mapping[str, int], condition: Condition | None
) -> dict[str, Facet]:
    """Of each declared keyword or boolean field so many of its commonest values, over all documents that the
    condition allows. Equal counts are in order of value.
    """
    allowed = Allowed(segments, condition)
    facets = {}
    for name, limit in wanted.items():
        columns = [segment.columns[name] for segment in segments]
        keywords = [column for column in columns if isinstance(column, KeywordColumn)]
        booleans = [column for column in columns if isinstance(column, ScalarColumn)]
        facets[name] = (
            _of_keywords(keywords, limit, allowed) if keywords else _of_booleans(booleans, limit, allowed)
        )
    return facets


class Allowed:
    """The documents of segments that a condition allows: how many, and bits of those of each segment."""

    def __init__(self, segments: Sequence[Segment], condition: Condition | None) -> None:
        self.sets: list[RowSet | None] = [segment.allowed(condition) for segment in segments]
        self.sizes: Int64 = np.array([len(segment) for segment in segments], np.int64)
        self.documents = sum(
            size if rows is None else len(rows)
            for size, rows in zip(self.sizes.tolist(), self.sets, strict=True)
        )
        packed = [np.empty(0, np.uint8) if rows is None else rows.packed for rows in self.sets]
        begins = offsets_of(np.array([len(bits) for bits in packed], np.int64))[:-1]
        self.bits: npt.NDArray[np.uint8] = np.concatenate([np.empty(0, np.uint8), *packed])
        self.begins: Int64 = np.where([rows is None for rows in self.sets], ALL, begins)


def counted_strings(columns: Sequence[KeywordColumn], limit: int, allowed: Allowed) -> tuple[Int64, int, int]:
    """Segment, string and count of so many of the commonest strings, int64[V, 3], the commonest first; how
    many distinct ones there are, and how many documents have none.
    """
    records = tuple(
        keyword_column(column.strings.data, column.strings.offsets, column.codes, column.rows)
        for column in columns
    )
    seed = secrets.randbits(SEED_BITS)
    rows, distinct, having = count_facet(records, allowed.sizes, allowed.bits, allowed.begins, limit, seed)
    return rows.reshape(-1, 3), distinct, allowed.documents - having


def _of_keywords(columns: Sequence[KeywordColumn], limit: int, allowed: Allowed) -> Facet:
    rows, distinct, missing = counted_strings(columns, limit, allowed)
    values = [
        FacetValue(columns[segment].text(columns[segment].strings[code]), count)
        for segment, code, count in rows.tolist()
    ]
    return Facet(values, distinct, missing)


def counted_booleans(columns: Sequence[ScalarColumn], allowed: Allowed) -> tuple[dict[bool, int], int]:
    """How many documents have each value, and how many have none."""
    counts = {False: 0, True: 0}
    for column, rows in zip(columns, allowed.sets, strict=True):
        present = column.present if rows is None else column.present & rows.mask
        true = int(np.count_nonzero(column.values & present))
        counts[True] += true
        counts[False] += int(np.count_nonzero(present)) - true
    return counts, allowed.documents - sum(counts.values())


def _of_booleans(columns: Sequence[ScalarColumn], limit: int, allowed: Allowed) -> Facet:
    counts, missing = counted_booleans(columns, allowed)
    there = [FacetValue(value, count) for value, count in counts.items() if count]
    commonest = sorted(there, key=lambda bucket: -bucket.count)[:limit]
    return Facet(commonest, len(there), missing)
