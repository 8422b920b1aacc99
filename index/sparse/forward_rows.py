"""Lexical weights by document, for exact scores: `forward_indptr.npy` int64[N+1], `forward_token_ids.npy`
int32[P] and `forward_weights.npy` float32[P], P weights above 0. Other rows have names with another stem.
"""

from __future__ import annotations

import numpy as np

from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.files.packed_bytes import open_offsets
from tercet.index.files.streams import Streams
from tercet.models.representations import Int32, SparseRows

STEM = "forward"
# Terms of the vocabulary for each weight; from here on sorting beats going through all terms.
FEW_WEIGHTS = 16


class ForwardRowsWriter(Streams):
    """Streams the rows of one segment."""

    def __init__(self, arrays: ArrayTarget, stem: str = STEM) -> None:
        self._indptr = arrays.stream(f"{stem}_indptr", np.int64)
        self._token_ids = arrays.stream(f"{stem}_token_ids", np.int32)
        self._weights = arrays.stream(f"{stem}_weights", np.float32)
        self._indptr.append(np.zeros(1, np.int64))
        super().__init__(self._indptr, self._token_ids, self._weights)

    @property
    def rows(self) -> int:
        return self._indptr.rows - 1

    def append(self, rows: SparseRows) -> None:
        self._indptr.append(self._token_ids.rows + rows.indptr[1:])
        self._token_ids.append(rows.token_ids)
        self._weights.append(rows.weights)


def open_forward_rows(arrays: ArraySource, documents: int, stem: str = STEM) -> SparseRows:
    """Opens the rows of a segment. Raises DamagedIndexError naming the file."""
    indptr = open_offsets(arrays, f"{stem}_indptr", documents)
    weights = int(indptr[-1])
    return SparseRows(
        indptr,
        arrays.open(f"{stem}_token_ids", np.int32, rows=weights),
        arrays.open(f"{stem}_weights", np.float32, rows=weights),
    )


def number_terms(rows: SparseRows, vocabulary_size: int) -> tuple[SparseRows, Int32]:
    """The rows with numbers for token ids, and the token id of each number, int32[X], ascending.

    Rows of few weights in a large vocabulary have X distinct terms, numbered in order; others stay as they
    are, and X is the vocabulary's size. So arrays over all numbers are no larger than what is in the rows.
    """
    ids = rows.token_ids
    outside = len(ids) > 0 and not 0 <= ids.min() <= ids.max() < vocabulary_size
    if outside or FEW_WEIGHTS * len(ids) > vocabulary_size:
        return rows, np.arange(vocabulary_size, dtype=np.int32)
    distinct, numbers = np.unique(ids, return_inverse=True)
    return SparseRows(rows.indptr, numbers.astype(np.int32), rows.weights), distinct
