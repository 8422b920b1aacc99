"""How many documents have each value of a field: exact counts over all that a filter allows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from tercet.index.candidates import Facet, FacetValue
from tercet.index.documents.conditions import Condition
from tercet.index.documents.fields import KeywordColumn, ScalarColumn
from tercet.index.documents.row_set import RowSet
from tercet.index.files.packed_bytes import PackedBytes, distinct
from tercet.index.native.kernels import count_facet, keyword_column
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64, Shape, offsets_of

ALL = -1  # where bits begin of a segment all of whose documents count
SEED_BITS = 63
EVERY_VALUE = 2**62  # more than there can be
FALSE, TRUE = b"false", b"true"  # in this order


def facets_of(
    segments: Sequence[Segment], wanted: Mapping[str, int], condition: Condition | None
) -> dict[str, Facet]:
    """Of each declared keyword or boolean field so many of its commonest values, over all documents that the
    condition allows. Equal counts are in order of value.
    """
    allowed = _Allowed(segments, condition)
    facets = {}
    for name, limit in wanted.items():
        columns = [segment.columns[name] for segment in segments]
        keywords = [column for column in columns if isinstance(column, KeywordColumn)]
        booleans = [column for column in columns if isinstance(column, ScalarColumn)]
        facets[name] = (
            _of_keywords(keywords, limit, allowed) if keywords else _of_booleans(booleans, limit, allowed)
        )
    return facets


@dataclass(frozen=True, slots=True)
class FieldCounts:
    """Of a field all V distinct values, of booleans as FALSE and TRUE, with counts int64[V], how many
    documents have each; missing: how many have none.
    """

    values: Annotated[PackedBytes, Shape("V")]
    counts: Annotated[Int64, Shape("V")]
    missing: int


def counts_of(
    segments: Sequence[Segment], fields: Sequence[str], condition: Condition | None
) -> dict[str, FieldCounts]:
    """Of each declared keyword or boolean field all values, over all documents that the condition allows."""
    field_counts = {}
    for name, facet in facets_of(segments, dict.fromkeys(fields, EVERY_VALUE), condition).items():
        values = [_text(bucket.value) for bucket in facet.values]
        counts = np.array([bucket.count for bucket in facet.values], np.int64)
        field_counts[name] = FieldCounts(PackedBytes.of(values), counts, facet.missing)
    return field_counts


def merged_facet(parts: Sequence[FieldCounts], limit: int, *, boolean: bool) -> Facet:
    """So many of the commonest values over all parts, one at least, as `facets_of` gives them."""
    strings = PackedBytes.concatenate([part.values for part in parts])
    first, numbers = distinct(strings)
    counts = np.zeros(len(first), np.int64)
    np.add.at(counts, numbers, np.concatenate([part.counts for part in parts]))
    commonest = np.argsort(-counts, kind="stable")[:limit]  # of equal counts, the values ascend
    values = [
        FacetValue(value == TRUE if boolean else value.decode(), count)
        for value, count in zip(strings.take(first[commonest]), counts[commonest].tolist(), strict=True)
    ]
    return Facet(values, len(first), sum(part.missing for part in parts))


def _text(value: str | bool) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return TRUE if value else FALSE


class _Allowed:
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


def _of_keywords(columns: Sequence[KeywordColumn], limit: int, allowed: _Allowed) -> Facet:
    records = tuple(
        keyword_column(column.strings.data, column.strings.offsets, column.codes, column.rows)
        for column in columns
    )
    seed = secrets.randbits(SEED_BITS)
    rows, distinct, having = count_facet(records, allowed.sizes, allowed.bits, allowed.begins, limit, seed)
    values = [
        FacetValue(columns[segment].text(columns[segment].strings[code]), count)
        for segment, code, count in rows.reshape(-1, 3).tolist()
    ]
    return Facet(values, distinct, allowed.documents - having)


def _of_booleans(columns: Sequence[ScalarColumn], limit: int, allowed: _Allowed) -> Facet:
    counts = {False: 0, True: 0}
    for column, rows in zip(columns, allowed.sets, strict=True):
        present = column.present if rows is None else column.present & rows.mask
        true = int(np.count_nonzero(column.values & present))
        counts[True] += true
        counts[False] += int(np.count_nonzero(present)) - true
    there = [FacetValue(value, count) for value, count in counts.items() if count]
    commonest = sorted(there, key=lambda bucket: -bucket.count)[:limit]
    return Facet(commonest, len(there), allowed.documents - sum(counts.values()))
