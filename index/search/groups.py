"""Candidates by the value that they have in a keyword field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.documents.fields import KeywordColumn
from tercet.index.files.packed_bytes import PackedBytes, distinct
from tercet.index.runs import runs
from tercet.index.search.exact_scores import Candidates
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64, offsets_of, ragged_positions


@dataclass(frozen=True, slots=True)
class GroupValues:
    """The values of K candidates in a keyword field: counts int64[K], how many each has; values: of all."""

    counts: Int64
    values: PackedBytes


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of K candidates: each is in those of all its values, and alone in one where it has none.

    offsets: int64[K+1]; members: int64[M], numbers of the groups of each candidate.
    """

    offsets: Int64
    members: Int64

    @staticmethod
    def of(named: GroupValues) -> Groups:
        """The groups of candidates with these values."""
        first, numbers = distinct(named.values)
        offsets = offsets_of(np.maximum(named.counts, 1))
        members = np.empty(offsets[-1], np.int64)
        without = named.counts == 0
        members[np.repeat(~without, np.maximum(named.counts, 1))] = numbers
        members[offsets[:-1][without]] = len(first) + np.arange(np.count_nonzero(without))
        return Groups(offsets, members)

    def best(self, order: Int64) -> Int64:
        """Of ordered candidates int64[n] those that are the first of a group, in order."""
        owners = np.repeat(np.arange(len(order)), self.offsets[order + 1] - self.offsets[order])
        _, first = np.unique(self.members[ragged_positions(self.offsets, order)], return_index=True)
        return order[np.unique(owners[first])]


def group_values(segments: Sequence[Segment], candidates: Candidates, field: str) -> GroupValues:
    """The values of candidates, which are in order of segment, in a declared keyword field."""
    counts, values = np.zeros(len(candidates), np.int64), [PackedBytes.of([])]
    for ordinal, run in runs(candidates.segments):
        column = segments[ordinal].columns[field]
        assert isinstance(column, KeywordColumn)  # noqa: S101 - checked before any search
        taken = column.take(candidates.rows[run])
        counts[run] = np.bincount(taken.rows, minlength=run.stop - run.start)
        values.append(taken.strings.gather(taken.codes.astype(np.int64)))
    return GroupValues(counts, PackedBytes.concatenate(values))
