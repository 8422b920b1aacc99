"""Which rows of a segment have equal vectors, so that a graph or lists hold each distinct one once.

The links of a graph among many equal vectors lead to one another alone: a walk that comes among them does
not get out, and one from elsewhere does not get in (recall 0). Of rows with the same bits the first stands
for all. Two arrays say which, in segments that have any:

    dense_equal_rows     int64[E]      the rows of each group, one group after the other, ascending in each
    dense_equal_offsets  int64[G + 1]  where each group begins; groups are in order of their first rows
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tercet.index.dense.library import Float16
from tercet.index.documents.row_set import RowSet
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget, open_rows
from tercet.models.representations import Bool, Int64, offsets_of, ragged_positions

ROWS = "dense_equal_rows"
OFFSETS = "dense_equal_offsets"
ROWS_AT_ONCE = 16_384

UInt64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class EqualRows:
    """G groups of two rows or more with equal vectors: rows int64[E] and offsets int64[G + 1], as stored."""

    rows: Int64
    offsets: Int64

    @staticmethod
    def of(vectors: Float16) -> EqualRows | None:
        """The groups of float16[N, D]; None where all rows are distinct."""
        _, first, inverse = np.unique(_hashes(vectors), return_index=True, return_inverse=True)
        firsts = first[inverse]
        repeats = np.flatnonzero(firsts != np.arange(len(vectors)))
        repeats = repeats[_are_equal(vectors, repeats, firsts[repeats])]  # others have the hash by accident
        if len(repeats) == 0:
            return None
        heads, counts = np.unique(firsts[repeats], return_counts=True)
        rows = np.concatenate([heads, repeats])
        order = np.lexsort((rows, np.concatenate([heads, firsts[repeats]])))
        return EqualRows(rows[order], offsets_of(counts + 1))

    @staticmethod
    def open(arrays: ArraySource, documents: int) -> EqualRows | None:
        """The groups that a segment has, if any. Raises DamagedIndexError naming the file."""
        if not arrays.has(ROWS):
            return None
        rows, offsets = open_rows(arrays, ROWS, documents), arrays.open(OFFSETS, np.int64)
        sound = len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(rows)
        if not sound or (np.diff(offsets) < 2).any():
            raise damaged(arrays.path(OFFSETS), f"does not divide the {len(rows)} rows of {ROWS} into groups")
        return EqualRows(rows, offsets)

    def write(self, arrays: ArrayTarget) -> None:
        arrays.write(ROWS, self.rows)
        arrays.write(OFFSETS, self.offsets)

    @property
    def firsts(self) -> Int64:
        """The row that stands for each group, int64[G], ascending."""
        return self.rows[self.offsets[:-1]]

    @property
    def repeated(self) -> int:
        """How many rows another one stands for."""
        return len(self.rows) - len(self.offsets) + 1

    def distinct(self, documents: int) -> Bool:
        """bool[N]: rows that no other one stands for."""
        mask = np.ones(documents, np.bool_)
        mask[self.rows] = False
        mask[self.firsts] = True
        return mask

    def among(self, allowed: RowSet) -> RowSet:
        """Of allowed rows, those that stand for them."""
        mask = allowed.mask
        some = np.logical_or.reduceat(mask[self.rows], self.offsets[:-1])
        mask[self.rows] = False
        mask[self.firsts] = some
        return RowSet.of_mask(mask)

    def expand(self, rows: Int64) -> tuple[Int64, Int64]:
        """All rows that distinct ones int64[K] stand for: int64[n], and the index in K of each."""
        groups = np.searchsorted(self.firsts, rows)
        several = np.append(self.firsts, -1)[groups] == rows
        indices = np.flatnonzero(several)
        counts = np.ones(len(rows), np.int64)
        counts[indices] = np.diff(self.offsets)[groups[indices]]
        expanded, owners = np.repeat(rows, counts), np.repeat(np.arange(len(rows)), counts)
        expanded[several[owners]] = self.rows[ragged_positions(self.offsets, groups[indices])]
        return expanded, owners


def _hashes(vectors: Float16) -> UInt64:
    """A number for each row of float16[N, D], the same for the same bits."""
    factors = np.random.default_rng(0).integers(0, 2**64, vectors.shape[1], np.uint64) | np.uint64(1)
    bits = vectors.view(np.uint16)
    hashes = np.empty(len(vectors), np.uint64)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        some = bits[start : start + ROWS_AT_ONCE].astype(np.uint64)
        np.matmul(some, factors, out=hashes[start : start + ROWS_AT_ONCE])
    return hashes


def _are_equal(vectors: Float16, rows: Int64, others: Int64) -> Bool:
    """Whether the vectors of rows int64[n] have the bits of those of others int64[n]."""
    bits, equal = vectors.view(np.uint16), np.empty(len(rows), np.bool_)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        equal[some] = (bits[rows[some]] == bits[others[some]]).all(axis=1)
    return equal
