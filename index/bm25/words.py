"""The words of documents, counted: terms, and how often each document has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.cutting import MARK, cut
from tercet.index.files.packed_bytes import PackedBytes, distinct
from tercet.models.representations import Int32, Int64, SparseRows, offsets_of, ragged_positions

NUMBER_BITS = 32
NUMBERS = (1 << NUMBER_BITS) - 1


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


class _Numbers(dict[str, int]):
    """Numbers of strings, in order of first occurrence. To look one up takes one step of compiled code."""

    def __missing__(self, string: str) -> int:
        number = self[string] = len(self)
        return number


def count_words(texts: Sequence[str], analyzer: Analyzer) -> WordRows:
    """Counts the terms of each text. Its length is that of its words: other spellings of them do not
    count.
    """
    units, terms = _Numbers(), _Numbers()
    counted = [_counted(text, units, terms) for text in texts]
    of_units = [[terms[term] for term in analyzer.terms(unit)] for unit in units]
    offsets = offsets_of(np.array(list(map(len, of_units)), np.int64))
    unit_terms = np.fromiter(chain.from_iterable(of_units), np.int64, offsets[-1])
    unit_owners, unit_numbers, unit_counts = _flat([units for units, _ in counted])
    spread = np.diff(offsets)[unit_numbers]
    owners, numbers, counts = _flat([letters for _, letters in counted])
    owners = np.append(owners, np.repeat(unit_owners, spread))
    numbers = np.append(numbers, unit_terms[ragged_positions(offsets, unit_numbers)])
    keys, places = np.unique(owners << NUMBER_BITS | numbers, return_inverse=True)
    frequencies = np.bincount(places, np.append(counts, np.repeat(unit_counts, spread)), len(keys))
    owners, numbers = keys >> NUMBER_BITS, keys & NUMBERS
    of_words = np.array([not term.startswith(MARK) for term in terms], np.bool_)
    return WordRows(
        PackedBytes.of([term.encode() for term in terms]),
        SparseRows(
            offsets_of(np.bincount(owners, minlength=len(texts))),
            numbers.astype(np.int32),
            frequencies.astype(np.float32),
        ),
        np.bincount(owners, frequencies * of_words[numbers], len(texts)).astype(np.int32),
    )


def _counted(text: str, units: _Numbers, terms: _Numbers) -> tuple[Counter[int], Counter[int]]:
    """How often a text has each unit, and each term of letters that are read in pairs, by their numbers."""
    of_units, of_letters = Counter[int](), Counter[int]()
    for part in cut(text):
        of_units.update(map(units.__getitem__, part.units))
        of_letters.update(map(terms.__getitem__, part.letters))
    return of_units, of_letters


def _flat(counters: Sequence[Counter[int]]) -> tuple[Int64, Int64, Int64]:
    """Of each number that a counter has: the counter's place, the number, and its count."""
    owners = np.repeat(np.arange(len(counters)), np.array(list(map(len, counters)), np.int64))
    numbers = np.fromiter(chain.from_iterable(counters), np.int64, len(owners))
    counts = chain.from_iterable(counter.values() for counter in counters)
    return owners, numbers, np.fromiter(counts, np.int64, len(owners))
