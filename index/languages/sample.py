"""In which languages a collection's documents are, by a sample of them.

An id's hash alone says whether its document is in the sample: the lowest are (a bottom-k sketch; Cohen and
Kaplan 2007). So the sample of many segments or shards is that of one, and seldom changes when documents come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.documents.store import DocumentStore
from tercet.index.errors import DamagedIndexError
from tercet.index.files.packed_bytes import UInt64
from tercet.index.languages.detection import CHARACTERS, language_of
from tercet.index.languages.weights import usual_weights
from tercet.models.representations import Bool, Int64, Shape

SAMPLED = 256  # documents; the standard error of a share is at most .03
LEAST_TOLD = 20  # of fewer texts that have a language, nothing is said
KEPT_READY = 4 * SAMPLED  # rows of a segment, so that some may be deleted


@dataclass(frozen=True, slots=True)
class LanguageSample:
    """hashes: uint64[K], ascending, of the ids of documents; languages: of each one, "" where its text does
    not say.
    """

    hashes: Annotated[UInt64, Shape("K")]
    languages: Sequence[str]

    @staticmethod
    def united(parts: Sequence[LanguageSample]) -> LanguageSample:
        """The sample of all documents of some parts, one at least."""
        hashes = np.concatenate([part.hashes for part in parts])
        languages = [language for part in parts for language in part.languages]
        lowest = np.argsort(hashes, kind="stable")[:SAMPLED]
        return LanguageSample(hashes[lowest], tuple(languages[row] for row in lowest.tolist()))

    def same_language(self) -> float:
        """The chance that two documents are in one language; 1 where too few texts say."""
        counts = Counter(filter(None, self.languages)).values()
        told = sum(counts)
        if told < max(LEAST_TOLD, len(self.languages) / 2):
            return 1.0
        return sum(count * (count - 1) for count in counts) / (told * (told - 1))

    def usual_weights(self) -> Weights:
        """What sides weigh where nobody says."""
        return usual_weights(self.same_language())


NO_LANGUAGES = LanguageSample(np.empty(0, np.uint64), ())


class SegmentLanguages:
    """The languages of a segment's documents, which are detected when they are first asked for. Any number of
    threads may ask.
    """

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._lowest: tuple[UInt64, Int64] | None = None
        self._detected: dict[int, str] = {}

    def lowest(self, kept: Bool | None) -> tuple[UInt64, Int64]:
        """The lowest hashes, uint64[K] ascending, and their rows, int64[K]: SAMPLED, or all that there are.

        kept: bool[N], the rows that are not deleted; None where none is.
        """
        ids = self._documents.ids
        if self._lowest is None:
            self._lowest = _lowest(ids.span(0, len(ids)).hashes, KEPT_READY)
        hashes, rows = self._lowest
        if kept is not None:
            left = kept[rows]
            if len(rows) < len(ids) and np.count_nonzero(left) < SAMPLED:  # most of them were deleted
                remaining = np.flatnonzero(kept)
                hashes, rows = _lowest(ids.span(0, len(ids)).hashes[remaining], SAMPLED)
                return hashes, remaining[rows]
            hashes, rows = hashes[left], rows[left]
        return hashes[:SAMPLED], rows[:SAMPLED]

    def of(self, row: int) -> str:
        """The language of a row's document, "" where its text does not say."""
        if (language := self._detected.get(row)) is None:
            try:
                document = self._documents.get(row)
            except DamagedIndexError:  # told where the document is asked for; other searches go on
                return ""
            language = language_of(f"{document.head[:CHARACTERS]}{document.text[:CHARACTERS]}")
            self._detected[row] = language
        return language


def sample_of(segments: Sequence[tuple[SegmentLanguages, Bool | None]]) -> LanguageSample:
    """The sample of some segments, each with the rows of it that are not deleted, None for all."""
    found = [languages.lowest(kept) for languages, kept in segments]
    empty = np.empty(0, np.uint64), np.empty(0, np.int64)
    hashes, rows = (np.concatenate(side) for side in zip(empty, *found, strict=True))
    ordinals = np.repeat(np.arange(len(found)), [len(side) for _, side in found])
    lowest = np.argsort(hashes, kind="stable")[:SAMPLED]
    languages = tuple(
        segments[ordinal][0].of(row)
        for ordinal, row in zip(ordinals[lowest].tolist(), rows[lowest].tolist(), strict=True)
    )
    return LanguageSample(hashes[lowest], languages)


def _lowest(hashes: UInt64, count: int) -> tuple[UInt64, Int64]:
    """So many of the lowest, ascending, and where they are."""
    rows = np.argpartition(hashes, count)[:count] if len(hashes) > count else np.arange(len(hashes))
    rows = rows[np.argsort(hashes[rows], kind="stable")]
    return hashes[rows], rows
