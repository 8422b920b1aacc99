"""How many documents of a segment have each term: `inverted_frequencies.npy` int32[V].

It is there where the collection's `lexical` is `idf`, and tells how long each term's postings are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from index.errors import DamagedIndexError
from index.storage import open_array, write_array
from models.representations import Int32, SparseRows

FREQUENCIES_FILE = "inverted_frequencies.npy"
WEIGHTS_AT_ONCE = 2**22


def write_document_frequencies(forward: SparseRows, vocabulary_size: int, folder: Path) -> None:
    """Writes the file for the forward rows of a segment."""
    write_array(folder / FREQUENCIES_FILE, document_frequencies(forward, vocabulary_size))


def document_frequencies(forward: SparseRows, vocabulary_size: int) -> Int32:
    """Documents with each term, int32[V]; a row has a term at most once. Reads the rows piece by piece."""
    counts = np.zeros(vocabulary_size, np.int64)
    for start in range(0, len(forward.token_ids), WEIGHTS_AT_ONCE):
        counts += np.bincount(forward.token_ids[start : start + WEIGHTS_AT_ONCE], minlength=vocabulary_size)
    return counts.astype(np.int32)


def open_document_frequencies(folder: Path, documents: int, vocabulary_size: int) -> Int32:
    """Maps the file of a segment of so many documents. Raises DamagedIndexError naming it."""
    path = folder / FREQUENCIES_FILE
    counts = open_array(path, np.int32, rows=vocabulary_size)
    if counts.min() < 0 or counts.max() > documents:
        raise DamagedIndexError(
            f"{path} counts documents that a segment of {documents} cannot have; restore it or rebuild"
        )
    return counts
