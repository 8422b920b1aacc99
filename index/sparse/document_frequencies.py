"""How many documents of a segment have each of its terms: counted, and read back."""

from __future__ import annotations

import numpy as np

from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource
from tercet.models.representations import Int32, Int64

IDS_AT_ONCE = 2**20


def document_frequencies(token_ids: Int32, terms: int) -> Int64:
    """How many rows have each of so many terms, int64[terms].

    token_ids: int32[P], those of all rows, in which no term occurs twice; counted piece by piece.
    """
    counts = np.zeros(terms, np.int64)
    for start in range(0, len(token_ids), IDS_AT_ONCE):
        counts += np.bincount(token_ids[start : start + IDS_AT_ONCE], minlength=terms)
    return counts


def open_document_frequencies(arrays: ArraySource, name: str, terms: int, documents: int) -> Int32:
    """Opens the frequencies int32[terms] of a segment of so many documents.

    Raises DamagedIndexError naming the file.
    """
    frequencies: Int32 = arrays.open(name, np.int32, rows=terms)
    if frequencies.min(initial=1) < 1 or frequencies.max(initial=1) > documents:
        raise damaged(arrays.path(name), f"counts documents that a segment of {documents} cannot have")
    return frequencies
