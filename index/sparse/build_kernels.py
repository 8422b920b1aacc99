"""Compiled loops that build the inverted index; compiled and cached like those of `kernels.py`.

Letters: V vocabulary. An *entry* is one term in one block of `BLOCK` documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.sparse.kernels import BLOCK

COLUMN_SHARE = 8  # a term in more than 1/8 of a block's documents is kept as a column

Array = npt.NDArray[Any]


@compiled(nogil=True)
def count_block(
    indptr: Array, token_ids: Array, weights: Array, first: int, last: int, counts: Array, largest: Array
) -> int:
    """Count each term's postings among documents first..last-1 and raise its largest weight.

    counts: int64[V], overwritten; largest: float32[V], updated. Returns the first document that breaks a
    rule of `SparseRows` (token ids ascend within the vocabulary, weights are finite and above 0), or -1.
    """
    counts[:] = 0
    for document in range(first, last):
        previous: Any = np.int64(-1)
        for position in range(indptr[document], indptr[document + 1]):
            term = np.int64(token_ids[position])
            weight = weights[position]
            if term <= previous or term >= len(counts) or not (weight > 0 and weight < np.inf):
                return document
            previous = term
            counts[term] += 1
            largest[term] = max(largest[term], weight)
    return -1


@compiled(nogil=True)
def add_sizes(counts: Array, rows: int, entries: Array, postings: Array, columns: Array) -> None:
    """Add a block of `rows` documents to what each term needs: entries, postings, columns (int64[V] each)."""
    for term in range(len(counts)):
        count = counts[term]
        if count > 0:
            entries[term] += 1
            if count * COLUMN_SHARE > rows:
                columns[term] += 1
            else:
                postings[term] += count


@compiled(nogil=True)
def fill_block(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    block: int,
    counts: Array,
    largest: Array,
    next_entry: Array,
    next_posting: Array,
    next_column: Array,
    entry_block: Array,
    entry_start: Array,
    entry_column: Array,
    documents: Array,
    impacts: Array,
    columns: Array,
) -> None:
    """Write a block's entries, postings and columns at the terms' cursors `next_*` (int64[V]), and move them.

    An impact is ceil(255 · weight / largest weight of the term), from 1 to 255.
    """
    first = block * BLOCK
    last = min(first + BLOCK, len(indptr) - 1)
    target = np.empty(len(counts), np.int64)  # next posting, or -1 - column
    for term in range(len(counts)):
        count = counts[term]
        if count > 0:
            entry = next_entry[term]
            next_entry[term] += 1
            entry_block[entry] = block
            entry_start[entry] = next_posting[term]
            if count * COLUMN_SHARE > last - first:
                entry_column[entry] = next_column[term]
                target[term] = -1 - next_column[term]
                next_column[term] += 1
            else:
                entry_column[entry] = -1
                target[term] = next_posting[term]
                next_posting[term] += count
    for document in range(first, last):
        for position in range(indptr[document], indptr[document + 1]):
            token = token_ids[position]
            share = np.ceil(255 * np.float64(weights[position]) / np.float64(largest[token]))
            impact = np.uint8(min(255.0, max(1.0, share)))
            if target[token] < 0:
                columns[-1 - target[token], document - first] = impact
            else:
                documents[target[token]] = document - first
                impacts[target[token]] = impact
                target[token] += 1
