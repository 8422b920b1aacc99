"""The BM25 part of one segment, opened read-only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tercet.index.bm25.formula import mean_length
from tercet.index.bm25.term_table import UInt64
from tercet.index.bm25.words import WordRows
from tercet.index.bm25.writer import FORWARD, FREQUENCIES, INVERTED, LENGTHS, TERMS
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.native.kernels import find_beginnings
from tercet.index.sparse.document_frequencies import open_document_frequencies
from tercet.index.sparse.forward_rows import open_forward_rows
from tercet.index.sparse.inverted_index import InvertedIndex
from tercet.index.sparse.left_counts import LeftCounts
from tercet.models.representations import Int32, Int64, SparseRows


@dataclass(frozen=True, slots=True)
class Bm25Segment:
    """The parts of a segment of N documents and X distinct terms.

    terms: ascending, each with its place as its number, so that in whatever segment those of a document have
    the same order, and its score is added up in the same order. A hash would take some terms for others.
    beginnings: of the terms, to find one by; forward: how often each document has its terms; lengths:
    int32[N], terms of each document, at most `longest`; own_mean: their mean, which the inverted index was
    built with. What a collection counts: documents, the terms that they have together (total_length), and
    frequencies int32[X], documents with each term. Deleted documents are not in these.
    """

    terms: PackedBytes
    beginnings: UInt64
    frequencies: LeftCounts[Int32]
    forward: SparseRows
    inverted: InvertedIndex
    lengths: Int32
    longest: int
    own_mean: float
    documents: int
    total_length: int

    @staticmethod
    def open(arrays: ArraySource, documents: int) -> Bm25Segment:
        """Opens that of so many documents. Raises DamagedIndexError naming the file."""
        terms = PackedBytes.open(arrays, TERMS)
        forward = open_forward_rows(arrays, documents, FORWARD)
        lengths = arrays.open(LENGTHS, np.int32, rows=documents)
        if lengths.min(initial=0) < 0:
            raise damaged(arrays.path(LENGTHS), "holds a length below 0")
        frequencies = open_document_frequencies(arrays, FREQUENCIES, len(terms), documents)

        def subtracted(counts: Int32, rows: Int64) -> Int32:
            left = counts.copy()
            np.subtract.at(left, forward.take(rows).token_ids, 1)
            return left

        total_length = int(lengths.sum(dtype=np.int64))
        return Bm25Segment(
            terms,
            find_beginnings(terms.data, terms.offsets),
            LeftCounts(frequencies, subtracted),
            forward,
            InvertedIndex.open(arrays, forward, INVERTED, lengths),
            lengths,
            int(lengths.max(initial=0)),
            mean_length(total_length, documents),
            documents,
            total_length,
        )

    def without(self, deleted: Int64) -> Bm25Segment:
        """This segment with deleted rows no longer counted."""
        return replace(
            self,
            frequencies=self.frequencies.without(deleted),
            documents=self.documents - len(deleted),
            total_length=self.total_length - int(self.lengths[deleted].sum(dtype=np.int64)),
        )

    @property
    def words(self) -> WordRows:
        """The words of all documents, as they are stored; of deleted ones, too."""
        return WordRows(self.terms, self.forward, self.lengths)

    def words_of(self, rows: Int64) -> WordRows:
        """The words of some documents, as they are stored."""
        return WordRows(self.terms, self.forward.take(rows), self.lengths[rows])
