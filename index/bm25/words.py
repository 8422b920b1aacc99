"""The words of documents, counted: terms, and how often each document has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.bm25.analysis import Analyzer
from tercet.index.files.packed_bytes import PackedBytes, distinct
from tercet.models.representations import Float32, Int32, Int64, SparseRows, offsets_of


@dataclass(frozen=True, slots=True)
class WordRows:
    """The words of B documents, with X terms between them.

    terms: distinct, as UTF-8, in any order; a row's token ids are places among them. rows: how often each
    document has its terms; lengths: int32[B], all terms of each.
    """

    terms: PackedBytes
    rows: SparseRows
    lengths: Int32

    @staticmethod
    def concatenate(parts: Sequence[WordRows]) -> WordRows:
        """The words of all parts, with the terms of each once; a row's token ids no longer ascend."""
        terms = PackedBytes.concatenate([part.terms for part in parts])
        first, numbers = distinct(terms)
        begins = offsets_of(np.array([len(part.terms) for part in parts]))
        rows = SparseRows.concatenate([part.rows for part in parts])
        shifts = np.repeat(begins[:-1], [len(part.rows.token_ids) for part in parts])
        return WordRows(
            terms.gather(first),
            SparseRows(rows.indptr, numbers[rows.token_ids + shifts].astype(np.int32), rows.weights),
            np.concatenate([part.lengths for part in parts]),
        )

    def take(self, documents: Int64) -> WordRows:
        """The words of these documents, with the same terms."""
        return WordRows(self.terms, self.rows.take(documents), self.lengths[documents])


class _TermNumbers(dict[str, int]):
    """The number of each piece's term, in order of first occurrence.

    A piece is analyzed when it is first looked up; every later time costs one look.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self.terms: dict[str, int] = {}

    def __missing__(self, piece: str) -> int:
        number = self.terms.setdefault(self._analyzer.term(piece), len(self.terms))
        self[piece] = number
        return number


def count_words(texts: Sequence[str], analyzer: Analyzer) -> WordRows:
    """Counts the terms of each text."""
    term_numbers = _TermNumbers(analyzer)
    rows = [_row(text, analyzer, term_numbers) for text in texts]
    token_ids = [np.empty(0, np.int32), *(numbers for numbers, _ in rows)]
    frequencies = [np.empty(0, np.float32), *(counts for _, counts in rows)]
    return WordRows(
        PackedBytes.of([term.encode() for term in term_numbers.terms]),
        SparseRows(
            offsets_of(np.array([len(numbers) for numbers, _ in rows], np.int64)),
            np.concatenate(token_ids),
            np.concatenate(frequencies),
        ),
        np.array([counts.sum(dtype=np.int64) for _, counts in rows], np.int32),
    )


def _row(text: str, analyzer: Analyzer, term_numbers: _TermNumbers) -> tuple[Int32, Float32]:
    """The numbers of a text's distinct terms, ascending, and how often each occurs."""
    counts = Counter[int]()
    for pieces in analyzer.pieces(text):
        counts.update(map(term_numbers.__getitem__, pieces))
    numbers = np.fromiter(counts, np.int32, len(counts))
    frequencies = np.fromiter(counts.values(), np.float32, len(counts))
    order = np.argsort(numbers)
    return numbers[order], frequencies[order]
