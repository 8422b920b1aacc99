"""Facets over parts that are counted apart: each tells its commonest values, and what may be among the
commonest of all is asked for by name, until it is known which these are.

A part says how common the commonest value is that it leaves out. A value has at most its known counts and
that of each part that left it out, so one that is below the least of the commonest cannot be among them: the
threshold algorithm of three phases of Cao and Wang 2004 ("Efficient top-k query calculation in distributed
networks"), which ends as soon as the bounds allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from tercet.index.candidates import Facet, FacetValue
from tercet.index.documents.conditions import Condition
from tercet.index.documents.fields import KeywordColumn, ScalarColumn
from tercet.index.files.packed_bytes import PackedBytes, UInt64, distinct
from tercet.index.search.facets import Allowed, counted_booleans, counted_strings
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64, Shape

FIRST_VALUES = 1000  # more than are wanted, which a part is asked for first
MORE_VALUES = 10_000  # at most, and so many by name
MOST_HASHES = 4096  # from which distinct values are estimated: one in 64 is the standard error
HASHES_END = 2.0**64
EVERY_VALUE = 2**62  # more than there can be
FALSE, TRUE = b"false", b"true"  # in this order
NO_NAMES = PackedBytes.of([])


@dataclass(frozen=True, slots=True)
class WantedValues:
    """Of a field the `most` commonest values, as far as `least` documents have them; and others by name."""

    field: str
    most: int
    least: int
    named: PackedBytes


@dataclass(frozen=True, slots=True)
class FieldCounts:
    """Of a field V distinct values, of booleans as FALSE and TRUE, with counts int64[V], how many documents
    have each. rest: what the commonest value has that is not among these, 0 where there is none; missing: how
    many documents have no value; hashes: the MOST_HASHES smallest of all values.
    """

    values: Annotated[PackedBytes, Shape("V")]
    counts: Annotated[Int64, Shape("V")]
    rest: int
    missing: int
    hashes: UInt64

    def with_more(self, wanted: WantedValues, later: FieldCounts) -> FieldCounts:
        """What is known once the part was asked again."""
        if wanted.most:
            return later
        values = PackedBytes.concatenate([self.values, later.values])
        return replace(self, values=values, counts=np.concatenate([self.counts, later.counts]))


def counts_of(
    segments: Sequence[Segment], wanted: Sequence[WantedValues], condition: Condition | None
) -> list[FieldCounts]:
    """The values that are wanted of each declared keyword or boolean field, counted over all documents that
    the condition allows.
    """
    allowed = Allowed(segments, condition)
    counts = []
    for values in wanted:
        columns = [segment.columns[values.field] for segment in segments]
        keywords = [column for column in columns if isinstance(column, KeywordColumn)]
        booleans = [column for column in columns if isinstance(column, ScalarColumn)]
        counts.append(
            _keyword_counts(keywords, values, allowed) if keywords else _boolean_counts(booleans, allowed)
        )
    return counts


def _keyword_counts(columns: Sequence[KeywordColumn], wanted: WantedValues, allowed: Allowed) -> FieldCounts:
    rows, _, missing = counted_strings(columns, EVERY_VALUE, allowed)
    segments, codes, counts = rows.T
    hashes = np.zeros(len(rows), np.uint64)
    for segment, column in enumerate(columns):
        own = segments == segment
        hashes[own] = column.strings.hashes[codes[own]]
    sent = min(wanted.most, int(np.count_nonzero(counts >= wanted.least)))
    values = [_string(columns, *row[:2]) for row in rows[:sent].tolist()]
    named = dict.fromkeys(wanted.named.take(np.arange(len(wanted.named))), 0)
    alike = np.flatnonzero(np.isin(hashes, wanted.named.hashes)) if named else np.empty(0, np.int64)
    for segment, code, count in rows[alike].tolist():
        string = columns[segment].strings[code]
        if string in named:
            named[string] = count
    for value in values:
        named.pop(value, None)
    smallest = hashes if len(hashes) <= MOST_HASHES else np.partition(hashes, MOST_HASHES)[:MOST_HASHES]
    return FieldCounts(
        PackedBytes.of([*values, *named]),
        np.concatenate([counts[:sent], np.array(list(named.values()), np.int64)]),
        int(counts[sent]) if sent < len(counts) else 0,
        missing,
        np.sort(smallest),
    )


def _string(columns: Sequence[KeywordColumn], segment: int, code: int) -> bytes:
    """Raises DamagedIndexError where it is not UTF-8."""
    return columns[segment].text(columns[segment].strings[code]).encode()


def _boolean_counts(columns: Sequence[ScalarColumn], allowed: Allowed) -> FieldCounts:
    counts, missing = counted_booleans(columns, allowed)
    values = PackedBytes.of([FALSE, TRUE])
    return FieldCounts(values, np.array([counts[False], counts[True]]), 0, missing, np.empty(0, np.uint64))


class MergedValues:
    """What P parts know together of the values of a field, X distinct ones that ascend."""

    def __init__(self, parts: Sequence[FieldCounts], limit: int) -> None:
        """parts: one at least; limit: how many of the commonest are wanted."""
        self._parts = parts
        self._limit = limit
        strings = PackedBytes.concatenate([part.values for part in parts])
        first, numbers = distinct(strings)
        self._values = strings.gather(first)
        owners = np.repeat(np.arange(len(parts)), [len(part.counts) for part in parts])
        self._rests = np.array([part.rest for part in parts], np.int64)
        self._is_known: npt.NDArray[np.bool_] = np.zeros((len(parts), len(first)), np.bool_)  # by each part
        self._is_known[owners, numbers] = True
        self._is_known[self._rests == 0] = True
        self._least = np.zeros(len(first), np.int64)  # documents that have each value for sure
        np.add.at(self._least, numbers, np.concatenate([part.counts for part in parts]))
        self._most = self._least + (~self._is_known).T @ self._rests  # and at most
        commonest = np.sort(self._least)[::-1][:limit]
        self._bar = int(commonest[-1]) if len(commonest) == limit else 0

    @property
    def _may_hide(self) -> bool:
        """Whether a value that no part told may be among the commonest."""
        return 0 < int(self._rests.sum()) >= self._bar

    def following(self, field: str, *, more: bool) -> list[WantedValues | None]:
        """What each part is to be asked next, None for nothing. more: whether further values may be asked
        for, else those alone that are in doubt.
        """
        if more and self._may_hide:
            least = max(
                1, (self._bar - 1) // len(self._parts) + 1
            )  # a value that is rarer in all parts is out
            return [
                WantedValues(field, MORE_VALUES, least, NO_NAMES) if rest >= least else None
                for rest in self._rests.tolist()
            ]
        doubtful = np.flatnonzero((self._most >= max(1, self._bar)) & (self._most > self._least))
        doubtful = doubtful[np.argsort(-self._least[doubtful], kind="stable")][:MORE_VALUES]
        names = [doubtful[~known[doubtful]] for known in self._is_known]
        return [WantedValues(field, 0, 1, self._values.gather(own)) if len(own) else None for own in names]

    def facet(self, *, boolean: bool) -> Facet:
        """The commonest values, one at least."""
        known = np.flatnonzero(self._most == self._least)
        known = known[self._least[known] > 0]
        commonest = known[
            np.argsort(-self._least[known], kind="stable")[: self._limit]
        ]  # of equal ones as they ascend
        counts = self._least[commonest]
        values = [
            FacetValue(value == TRUE if boolean else value.decode(), count)
            for value, count in zip(self._values.take(commonest), counts.tolist(), strict=True)
        ]
        bar = int(counts[-1]) if len(counts) == self._limit else 0
        hidden = max(int(self._rests.sum()), int(self._most[self._most > self._least].max(initial=0)))
        return Facet(
            values,
            self._distinct(),
            sum(part.missing for part in self._parts),
            hidden if hidden >= max(1, bar) else None,
        )

    def _distinct(self) -> int:
        """How many values there are, or about so many where not all are known."""
        if not self._rests.any():
            return int(np.count_nonzero(self._least))
        hashes = np.unique(np.concatenate([part.hashes for part in self._parts]))
        if max(len(part.hashes) for part in self._parts) < MOST_HASHES:
            return len(hashes)
        return round((MOST_HASHES - 1) * HASHES_END / float(hashes[MOST_HASHES - 1]))
