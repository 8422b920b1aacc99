"""What a collection in an engine knows of terms and words: counted once, and then moved by each write."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.cluster.backends.engine import EngineCollection, WrittenEngineCollection
from tercet.cluster.backends.written_rows import lexical_of
from tercet.index.bm25.formula import mean_length
from tercet.index.bm25.query import WordCounts
from tercet.index.bm25.words import WordRows
from tercet.index.segments.rows import DocumentRows
from tercet.index.sparse.idf import CollectionIdf, factors_of
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.index.sparse.term_totals import TermChange, TermTotals
from tercet.models.representations import Float64, Int32, SparseRows
from tercet.service.exceptions import BackendError

TELL_SECONDS = 10.0  # between two lines of a counting that takes long
MERGED_WORDS = 4096  # changes beside the counts of all words, which are then copied

log = logging.getLogger("tercet")


class CountedIdf(CollectionIdf):
    """The idf of documents whose terms are counted."""

    def __init__(self, documents: int, totals: TermTotals, vocabulary_size: int) -> None:
        super().__init__(documents, [], vocabulary_size)
        self._totals = totals

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors idf(t) / m float64[T] of some terms."""
        return factors_of(self._documents, self._totals.frequencies(token_ids), self._totals.sums)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of BM25 in all documents: how many of them have each, as counts of most and changes since;
    total_length: how many they have together.
    """

    counts: Mapping[bytes, int]
    changes: Mapping[bytes, int]
    total_length: int

    def moved(self, words: WordRows, sign: int) -> Words:
        """With the words of some documents more (sign 1) or less (-1)."""
        changes = dict(self.changes)
        _add(changes, words, sign)
        length = self.total_length + sign * _length(words)
        moved = Words(self.counts, changes, length)
        return moved if len(changes) <= MERGED_WORDS else Words(moved.counted(), {}, length)

    def counted(self) -> dict[bytes, int]:
        """How many documents have each word that any has."""
        merged = dict(self.counts)
        for term, change in self.changes.items():
            merged[term] = merged.get(term, 0) + change
        return {term: count for term, count in merged.items() if count}

    def frequency(self, term: bytes) -> int:
        """How many documents have a term."""
        return self.counts.get(term, 0) + self.changes.get(term, 0)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What all documents know together. terms: None in a collection without idf; words: None without BM25."""

    documents: int
    terms: TermTotals | None
    words: Words | None

    @property
    def of_content(self) -> bool:
        """Whether all documents have to be read to count them."""
        return self.terms is not None or self.words is not None

    def moved(self, added: Sequence[DocumentRows], removed: Sequence[DocumentRows]) -> Statistics:
        """After a write, by which these documents came, and those went."""
        documents = self.documents + sum(map(len, added)) - sum(map(len, removed))
        terms, words = self.terms, self.words
        if terms is not None:
            rows = SparseRows.concatenate(list(map(lexical_of, added))) if added else NOTHING
            terms = terms.changed(*TermChange(rows, tuple(map(lexical_of, removed))).counted())
        if words is not None:
            for parts, sign in ((added, 1), (removed, -1)):
                for part in parts:
                    words = words if part.words is None else words.moved(part.words, sign)
        return Statistics(documents, terms, words)

    def idf(self, vocabulary_size: int) -> CollectionIdf | None:
        """The idf of these documents."""
        return None if self.terms is None else CountedIdf(self.documents, self.terms, vocabulary_size)

    def known(self, terms: Sequence[str]) -> WordCounts:
        """What they know of words of BM25."""
        words = self.words or Words({}, {}, 0)
        frequencies = [words.frequency(term.encode()) for term in terms]
        return WordCounts(self.documents, words.total_length, np.array(frequencies, np.int64))

    @property
    def mean_length(self) -> float:
        """The mean length of their texts in words."""
        return 1.0 if self.words is None else mean_length(self.words.total_length, self.documents)


NOTHING = SparseRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))


def counted(collection: WrittenEngineCollection) -> Statistics:
    """Reads what is counted of all documents. Raises BackendError."""
    settings = collection.settings
    if not settings.bm25:
        if settings.lexical != "idf":
            return Statistics(collection.count(None), None, None)
        return Statistics(*counted_terms(collection), None)
    totals = TermTotals([], settings.vocabulary_size) if settings.lexical == "idf" else None
    counts, length, documents, progress = dict[bytes, int](), 0, 0, _Progress(collection.name)
    for rows in collection.every_row():
        for part in rows:
            if totals is not None:
                totals.apply(*TermChange(lexical_of(part), ()).counted())
            assert part.words is not None  # noqa: S101 - as the collection has BM25
            _add(counts, part.words, 1)
            length += _length(part.words)
            documents += len(part)
        progress.counted(documents)
    return Statistics(documents, totals, Words(counts, {}, length))


def counted_terms(collection: EngineCollection) -> tuple[int, TermTotals]:
    """How many documents there are, and their terms: reads all lexical weights. Raises BackendError."""
    size = collection.settings.vocabulary_size
    totals, progress, documents = TermTotals([], size), _Progress(collection.name), 0
    for rows in collection.lexical():
        sound = (rows.token_ids >= 0) & (rows.token_ids < size) & (rows.weights > 0)
        if not (sound & np.isfinite(rows.weights)).all():
            raise BackendError(
                f"{collection.name} has a lexical weight that is not above 0, or of a token outside its "
                f"vocabulary of {size}; export it again"
            )
        part = TermStatistics.of(rows, size)
        totals.apply(part.terms, part.frequencies.astype(np.int64), part.masses)
        documents += len(rows)
        progress.counted(documents)
    return documents, totals


def _add(counts: dict[bytes, int], words: WordRows, sign: int) -> None:
    """Counts the documents that have each word, up or down."""
    numbers = np.bincount(words.rows.token_ids, minlength=len(words.terms))
    for term, count in zip(words.terms.take(np.arange(len(numbers))), numbers.tolist(), strict=True):
        counts[term] = counts.get(term, 0) + sign * count


def _length(words: WordRows) -> int:
    return int(words.lengths.sum(dtype=np.int64))


class _Progress:
    """Tells the log of a counting that takes long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = time.monotonic()

    def counted(self, documents: int) -> None:
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            log.info("%s: the terms of %d documents are counted", self._name, documents)
