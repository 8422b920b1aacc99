"""Pairs that nearly repeat an earlier one, by MinHash of both texts.

The share of equal hashes of two texts estimates the Jaccard similarity of their sets of shingles (Broder
1997). Pairs that agree in all hashes of some band are compared; a band has some hashes of both texts, since
several questions about one passage, and one question with several passages, are no duplicates. Hashes lie in
a file; in memory are some 50 bytes a pair.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Bool, Int64
from tercet.training.data.held_out import code_points, hashes
from tercet.training.data.pairs import letters

UInt32 = npt.NDArray[np.uint32]

SHINGLE_LETTERS = 4
BAND_HASHES = 3  # of each text
BANDS = 21
HASHES = BAND_HASHES * BANDS
SIDES = 2  # the query and the passage
# Hashed at a time, and compared at a time: few enough for the caches, and for memory.
SHINGLES_AT_ONCE, PAIRS_AT_ONCE = 4096, 65_536
# Of pairs that agree in a band but are no duplicates, so many are compared with all others.
MOST_COMPARED = 64
_DRAWN = np.random.default_rng(0).integers(0, 2**64, (2, HASHES), np.uint64)
FACTORS, TERMS = _DRAWN[0] | np.uint64(1), _DRAWN[1]


def min_hashes(text: str) -> UInt32:
    """The smallest value of each hash over the shingles of a text's letters and digits, uint32[HASHES]."""
    points = code_points(letters(text) or text)
    if len(points) < SHINGLE_LETTERS:
        points = np.pad(points, (0, SHINGLE_LETTERS - len(points)))
    shingles = hashes(np.lib.stride_tricks.sliding_window_view(points, SHINGLE_LETTERS))
    smallest = np.full(HASHES, np.iinfo(np.uint32).max, np.uint32)
    for start in range(0, len(shingles), SHINGLES_AT_ONCE):
        part = shingles[start : start + SHINGLES_AT_ONCE, None] * FACTORS + TERMS
        np.minimum(smallest, (part >> np.uint64(32)).min(axis=0).astype(np.uint32), out=smallest)
    return smallest


class PairHashes:
    """The hashes of pairs, in a file, in the order in which they are added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._pairs = array("q")
        self._query, self._query_hashes = "", min_hashes("")

    def add(self, pair: int, query: str, passage: str) -> None:
        """Hashes of one more pair, whose number is larger than those before."""
        if query != self._query:  # that of the pair before, often
            self._query, self._query_hashes = query, min_hashes(query)
        self._file.write(self._query_hashes.tobytes() + min_hashes(passage).tobytes())
        self._pairs.append(pair)

    def duplicates(self, threshold: float) -> list[tuple[int, int]]:
        """Each pair that nearly repeats an earlier one, and the first one that it nearly repeats.

        threshold: least share of equal hashes, of the queries and of the passages.
        """
        self._file.close()
        if not self._pairs:
            return []
        stored = np.memmap(self._path, np.uint32, "r", shape=(len(self._pairs), SIDES, HASHES))
        first = first_alike(stored, threshold)
        return [
            (self._pairs[row], self._pairs[first[row]])
            for row in np.flatnonzero(first < np.arange(len(first))).tolist()
        ]


def first_alike(stored: UInt32, threshold: float) -> Int64:
    """The first row that each pair of uint32[N, SIDES, HASHES] nearly repeats, int64[N]; itself for none.

    A pair that repeats one that is left out itself is left out, too: of a chain the first one stays.
    """
    first = np.arange(len(stored))
    for band in range(BANDS):
        keys = band_keys(stored, band)
        order = np.argsort(keys, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(order))
        starts = np.append(0, ends[:-1])
        for start, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
            compare(stored, order[start:end], first, threshold)
    return first


def band_keys(stored: UInt32, band: int) -> npt.NDArray[np.uint64]:
    """One number for the hashes of both texts in a band, uint64[N]."""
    columns = slice(band * BAND_HASHES, (band + 1) * BAND_HASHES)
    return np.concatenate(
        [
            hashes(stored[start : start + PAIRS_AT_ONCE, :, columns].reshape(-1, SIDES * BAND_HASHES))
            for start in range(0, len(stored), PAIRS_AT_ONCE)
        ]
    )


def compare(stored: UInt32, rows: Int64, first: Int64, threshold: float) -> None:
    """Enters in `first` which of some ascending rows nearly repeat another of them."""
    for _ in range(MOST_COMPARED):
        if len(rows) < 2:
            return
        leader, rows = rows[0], rows[1:]
        similar = alike(stored, rows, leader, threshold)
        first[rows[similar]] = np.minimum(first[rows[similar]], leader)
        rows = rows[~similar]


def alike(stored: UInt32, rows: Int64, other: np.int64, threshold: float) -> Bool:
    """Whether both texts of each row are like those of another, bool[len(rows)]."""
    parts = [
        ((stored[part] == stored[other]).mean(axis=2) >= threshold).all(axis=1)
        for part in np.split(rows, range(PAIRS_AT_ONCE, len(rows), PAIRS_AT_ONCE))
    ]
    return np.concatenate(parts)
