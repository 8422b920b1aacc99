"""Inverted index over lexical weights: the exact best documents of a sparse query.

Layout, in arrays of the segment. Documents are cut into blocks of `BLOCK`; a term's occurrence in
a block is an *entry*. A term in few documents of a block has postings there (document within the block and
8-bit impact, in document order); one in more than an eighth of them has a column (the impact of every
document), which vector instructions add an order of magnitude faster. The directory lists, term by term, only
entries that exist, so it never grows with vocabulary × blocks:

    inverted_terms.npy         int32[T]      token ids that occur, ascending
    inverted_largest.npy       float32[T]    largest weight of each
    inverted_term_entries.npy  int64[T+1]    first entry of each
    inverted_entry_block.npy   int32[E]      block number of an entry
    inverted_entry_start.npy   int64[E+1]    first posting of an entry
    inverted_entry_column.npy  int32[E]      column of an entry, -1 where it has postings
    inverted_documents.npy     uint16[P]     document within the block
    inverted_impacts.npy       uint8[P]      ceil(255 · weight / largest weight of the term)
    inverted_columns.npy       uint8[C, min(N, BLOCK)]  impacts, 0 where the term is absent

Exactness. Let c = query weight · largest / 255 and u a unit chosen so that no sum can exceed the
accumulator. Each term adds floor(impact · ⌈256 c / u⌉ / 256) + 1, so the sum a of a document satisfies
exact ≤ u·a ≤ exact + Σ(c + 2u). Documents whose a is below the k-th largest by more than that slack cannot
be among the best k; the others are scored from the forward rows. Over several segments
(`index/search/lexical_search.py`) u is the same, c the largest of all, and the k-th largest that of all.

Skipping, as MaxScore does (Turtle and Flood 1995). An impact is at most 255, so a term adds at most
floor(255 · ⌈256 c / u⌉ / 256) + 1, whatever the document. Once k documents are found, the terms of a block
that add least are not read, as long as they add less together than such a sum has to have. A document whose
other terms do not reach it with the most that these add is not among the best; for the rest, which are few,
the impacts left out are looked up. So a, and with it what is found, is what it is if everything is read.

Where forward rows hold frequencies, weights are made of them when they are scored, as they also depend on the
mean length of all documents, which a segment does not know; the index is built with the segment's own. They
lie between `least` and `most` times those that the impacts were made of. With the query's weights times
`most`, u·a is no less than the exact score, which is no less than least / most of u·a less the slack. So
documents whose a is below that share of the k-th largest, less the slack, cannot be among the best k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.errors import DamagedIndexError, InvalidDocumentError, damaged
from tercet.index.files.arrays import Array, ArraySource, ArrayTarget
from tercet.index.files.packed_bytes import ascends_from_zero
from tercet.index.files.pieces import Pieces
from tercet.index.native.kernels import Record, add_sizes, count_block, fill_block, inverted_index
from tercet.index.sparse.forward_rows import number_terms
from tercet.models.representations import Int32, Int64, SparseRows

DTYPES = {
    "terms": np.int32,
    "largest": np.float32,
    "term_entries": np.int64,
    "entry_block": np.int32,
    "entry_start": np.int64,
    "entry_column": np.int32,
    "documents": np.uint16,
    "impacts": np.uint8,
    "columns": np.uint8,
}
BLOCK = 32_768  # documents of a block, which kernels know, too
STEM = "inverted"  # what the names of the arrays begin with


def _column_length(documents: int) -> int:
    return max(1, min(documents, BLOCK))


def build_inverted(forward: SparseRows, vocabulary_size: int, arrays: ArrayTarget, stem: str = STEM) -> None:
    """Write the inverted index of N documents, in arrays whose names begin with `stem`.

    Reads the forward rows twice, block by block; private memory is a few arrays of V numbers at most. Raises
    InvalidDocumentError where a row's token ids do not ascend below `vocabulary_size` or a weight is not
    finite and above 0.
    """
    rows, token_ids = number_terms(forward, vocabulary_size)
    stored = (rows.indptr, rows.token_ids, rows.weights)
    starts = range(0, len(rows), BLOCK)
    counts = np.zeros(len(token_ids), np.int64)
    largest = np.zeros(len(token_ids), np.float32)
    entries, postings, columns = (np.zeros(len(token_ids), np.int64) for _ in range(3))
    for first in starts:
        last = min(first + BLOCK, len(rows))
        wrong = count_block(*stored, first, last, counts, largest)
        if wrong >= 0:
            raise InvalidDocumentError(
                f"the sparse weights of document row {wrong} are invalid: token ids must ascend and stay "
                f"below {vocabulary_size}, weights must be finite and above 0; encode the document again"
            )
        add_sizes(counts, last - first, entries, postings, columns)

    terms = np.flatnonzero(entries)
    for name, values in (
        ("terms", token_ids[terms]),
        ("largest", largest[terms]),
        ("term_entries", np.append(0, np.cumsum(entries[terms]))),
    ):
        arrays.write(f"{stem}_{name}", values.astype(DTYPES[name], copy=False))
    total_entries, total_postings, total_columns = (int(x.sum()) for x in (entries, postings, columns))

    def created(name: str, *shape: int) -> Array:
        return arrays.create(f"{stem}_{name}", DTYPES[name], shape)

    entry_start = created("entry_start", total_entries + 1)
    entry_start[-1] = total_postings
    outputs: Any = [
        created("entry_block", total_entries),
        entry_start,
        created("entry_column", total_entries),
        created("documents", total_postings),
        created("impacts", total_postings),
        created("columns", total_columns, _column_length(len(rows))),
    ]
    cursors: Any = tuple(np.cumsum(x) - x for x in (entries, postings, columns))
    for block, first in enumerate(starts):
        count_block(*stored, first, min(first + BLOCK, len(rows)), counts, largest)
        fill_block(*stored, block, counts, largest, *cursors, *outputs)


class InvertedIndex:
    """An opened inverted index; its arrays stay memory-mapped, and any number of threads may search.

    terms: int32[T], the token ids that occur, ascending; documents: how many it has. record: what kernels
    take of it.
    """

    def __init__(self, arrays: dict[str, Array], forward: SparseRows, lengths: Int32 | None) -> None:
        self.terms: Int32 = arrays["terms"]
        self.documents = len(forward)
        self._forward = forward
        rows = (forward.indptr, forward.token_ids, forward.weights)
        stored: Any = (*(arrays[name] for name in DTYPES), *rows, lengths)
        self.record: Record = inverted_index(*stored)

    def pieces(self, rows: Int64) -> Pieces:
        """Where the forward rows of these documents lie."""
        starts, ends = self._forward.indptr[rows], self._forward.indptr[rows + 1]
        token_ids = Pieces.of(self._forward.token_ids, starts, ends)
        return token_ids.joined_with(Pieces.of(self._forward.weights, starts, ends))

    @staticmethod
    def open(
        arrays: ArraySource, forward: SparseRows, stem: str = STEM, lengths: Int32 | None = None
    ) -> InvertedIndex:
        """Opens an index over the forward rows it was built from.

        lengths: int32[N], of the documents, where the forward rows hold frequencies.
        Raises DamagedIndexError where an array is missing, or sizes or places in other files do not agree.
        """
        column = (_column_length(len(forward)),)
        opened = {
            name: arrays.open(f"{stem}_{name}", dtype, column if name == "columns" else ())
            for name, dtype in DTYPES.items()
        }
        terms, entries = len(opened["terms"]), len(opened["entry_block"])
        agree = (
            len(opened["largest"]) == terms
            and len(opened["term_entries"]) == terms + 1
            and ascends_from_zero(opened["term_entries"])
            and opened["term_entries"][-1] == entries == len(opened["entry_column"])
            and len(opened["entry_start"]) == entries + 1
            and ascends_from_zero(opened["entry_start"])
            and opened["entry_start"][-1] == len(opened["documents"]) == len(opened["impacts"])
            and opened["entry_column"].max(initial=-1) < len(opened["columns"])
        )
        if not agree:
            raise DamagedIndexError(
                f"the arrays {arrays.path(stem)}_* do not belong together; build the index again"
            )
        ascends = bool((opened["terms"][1:] > opened["terms"][:-1]).all())
        largest = opened["largest"]  # a NaN fails the comparison, too
        if not ascends or not 0 < largest.min(initial=1) <= largest.max(initial=1) < np.inf:
            raise damaged(
                arrays.path(f"{stem}_terms"),
                f"does not ascend, or {stem}_largest holds what is no largest weight",
            )
        return InvertedIndex(opened, forward, lengths)
