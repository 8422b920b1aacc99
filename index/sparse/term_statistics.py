"""What a segment knows of its terms for its collection's idf: how many documents have each, and how much.

`inverted_frequencies.npy` int32[X] and `inverted_masses.npy` int64[X] go with the X terms of
`inverted_terms.npy`. They are there where the collection's `lexical` is `idf`. Masses are whole numbers, so
that those of segments add up to the same in any order and any division.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.sparse.document_frequencies import document_frequencies, open_document_frequencies
from tercet.index.sparse.forward_rows import number_terms
from tercet.models.representations import Float32, Int32, Int64, SparseRows

FREQUENCIES = "inverted_frequencies"
MASSES = "inverted_masses"
UNITS = 1e6  # of mass in a weight of 1, as scores have six decimals
LARGEST_WEIGHT = 1e4  # a larger one counts as much
WEIGHTS_AT_ONCE = 2**19  # with these limits sums in float64 are exact whole numbers


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """terms: int32[X], the token ids that occur, ascending; frequencies: int32[X], how many documents have
    each; masses: int64[X], the sums of their weights in millionths.
    """

    terms: Int32
    frequencies: Int32
    masses: Int64

    @staticmethod
    def of(forward: SparseRows, vocabulary_size: int) -> TermStatistics:
        """Counts rows in which no term occurs twice, piece by piece; in a few arrays of at most V."""
        rows, token_ids = number_terms(forward, vocabulary_size)
        frequencies = document_frequencies(rows.token_ids, len(token_ids))
        masses = np.zeros(len(token_ids), np.int64)
        for start in range(0, len(rows.token_ids), WEIGHTS_AT_ONCE):
            numbers = rows.token_ids[start : start + WEIGHTS_AT_ONCE]
            units = units_of(rows.weights[start : start + WEIGHTS_AT_ONCE])
            masses += np.bincount(numbers, units, len(token_ids)).astype(np.int64)
        present = np.flatnonzero(frequencies)
        return TermStatistics(token_ids[present], frequencies[present].astype(np.int32), masses[present])

    def without(self, removed: SparseRows) -> TermStatistics:
        """The statistics of the other rows; a term that is left in none of them counts 0."""
        frequencies, masses = self.frequencies.copy(), self.masses.copy()
        indices = np.searchsorted(self.terms, removed.token_ids)
        np.subtract.at(frequencies, indices, 1)
        np.subtract.at(masses, indices, units_of(removed.weights))
        return TermStatistics(self.terms, frequencies, masses)

    @staticmethod
    def open(arrays: ArraySource, terms: Int32, documents: int, vocabulary_size: int) -> TermStatistics:
        """Opens those of a segment with these terms and so many documents.

        Raises DamagedIndexError naming the file at fault.
        """
        if terms.min(initial=0) < 0 or terms.max(initial=0) >= vocabulary_size:
            raise damaged(
                arrays.path("inverted_terms"), f"holds a token id outside the vocabulary of {vocabulary_size}"
            )
        frequencies = open_document_frequencies(arrays, FREQUENCIES, len(terms), documents)
        masses = arrays.open(MASSES, np.int64, rows=len(terms))
        if masses.min(initial=0) < 0:
            raise damaged(arrays.path(MASSES), "holds a mass below 0")
        return TermStatistics(terms, frequencies, masses)

    def write(self, arrays: ArrayTarget) -> None:
        """Writes both beside those of the inverted index, which has the terms."""
        arrays.write(FREQUENCIES, self.frequencies)
        arrays.write(MASSES, self.masses)


def units_of(weights: Float32) -> Int64:
    """What each weight adds to its term's mass."""
    units = np.rint(np.minimum(weights, LARGEST_WEIGHT).astype(np.float64) * UNITS)
    return units.astype(np.int64)
