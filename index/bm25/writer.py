"""Writes the BM25 part of one segment: streams frequencies and lengths, then builds the inverted index."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tercet.index.bm25.formula import BASE, mean_length, slope
from tercet.index.bm25.words import WordRows
from tercet.index.files.arrays import ArrayTarget
from tercet.index.files.packed_bytes import open_offsets
from tercet.index.files.streams import Streams
from tercet.index.files.string_numbers import StringNumbers
from tercet.index.sparse.document_frequencies import document_frequencies
from tercet.index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from tercet.index.sparse.inverted_index import build_inverted
from tercet.models.representations import Int32, Int64, SparseRows

TERMS = "bm25_terms"
FORWARD = "bm25_forward"
INVERTED = "bm25_inverted"
FREQUENCIES = "bm25_frequencies"
LENGTHS = "bm25_lengths"
SCRATCH = "bm25_scratch"
WEIGHTS_AT_ONCE = 2**20
NUMBER_BITS = 32
NUMBERS = (1 << NUMBER_BITS) - 1


class Bm25Writer(Streams):
    """Streams the words of one segment's documents."""

    def __init__(self, arrays: ArrayTarget) -> None:
        self._arrays = arrays
        self._numbers = StringNumbers()
        self._forward = ForwardRowsWriter(arrays, FORWARD)
        self._lengths = arrays.stream(LENGTHS, np.int32)
        super().__init__(self._forward, self._lengths)

    @property
    def buffered_bytes(self) -> int:
        """About how much memory waits for the end of the segment."""
        return self._numbers.buffered_bytes

    def append(self, words: WordRows) -> None:
        """Adds documents, one row each. Their token ids ascend only after `finish`."""
        rows = words.rows
        self._forward.append(
            SparseRows(rows.indptr, self._numbers.of(words.terms, rows.token_ids), rows.weights)
        )
        self._lengths.append(words.lengths)

    def finish(self) -> None:
        """Completes the streamed files, and builds the rest from them."""
        super().finish()
        lengths = self._arrays.open(LENGTHS, np.int32)
        ranks = self._numbers.write(self._arrays, TERMS)
        _number_anew(self._arrays, len(lengths), ranks)
        forward = open_forward_rows(self._arrays, len(lengths), FORWARD)
        build_indexes(forward, lengths, len(ranks), self._arrays)


def build_indexes(forward: SparseRows, lengths: Int32, terms: int, arrays: ArrayTarget) -> None:
    """Writes document frequencies and inverted index for the rows of a segment, with its own mean length."""
    arrays.write(FREQUENCIES, document_frequencies(forward.token_ids, terms).astype(np.int32))
    weights = arrays.create(SCRATCH, np.float32, forward.weights.shape)
    norms = BASE + slope(mean_length(int(lengths.sum()), len(lengths))) * lengths
    for rows, span in _pieces(forward.indptr):
        frequencies = forward.weights[span].astype(np.float64)
        weights[span] = frequencies / (frequencies + norms[_owners(forward.indptr, rows)])
    build_inverted(SparseRows(forward.indptr, forward.token_ids, weights), terms, arrays, INVERTED)
    arrays.remove(SCRATCH)


def _number_anew(arrays: ArrayTarget, documents: int, ranks: Int32) -> None:
    """Gives the rows their terms' ranks instead of their numbers, ascending again within each row."""
    indptr = open_offsets(arrays, f"{FORWARD}_indptr", documents)
    token_ids = arrays.change(f"{FORWARD}_token_ids")
    weights = arrays.change(f"{FORWARD}_weights")
    for rows, span in _pieces(indptr):
        keys = _owners(indptr, rows) << NUMBER_BITS | ranks[token_ids[span]]
        order = np.argsort(keys)
        token_ids[span] = keys[order] & NUMBERS
        weights[span] = weights[span][order]


def _pieces(indptr: Int64) -> Iterator[tuple[slice, slice]]:
    """Rows, and where their weights lie, in pieces of bounded size; a row stays whole."""
    steps = np.arange(0, int(indptr[-1]), WEIGHTS_AT_ONCE)
    edges = np.unique(np.append(np.searchsorted(indptr, steps), len(indptr) - 1))
    for first, last in pairwise(edges.tolist()):
        yield slice(first, last), slice(int(indptr[first]), int(indptr[last]))


def _owners(indptr: Int64, rows: slice) -> Int64:
    """The row of each weight of some rows."""
    return np.repeat(np.arange(rows.start, rows.stop), np.diff(indptr[rows.start : rows.stop + 1]))
