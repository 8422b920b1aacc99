"""Texts that nothing is trained on, and an index that tells whether a text occurs inside one of them.

All held-out texts together are cut into blocks of equal length. A text of nearly two blocks or more that
occurs there has a whole block in it, at one of as many offsets as a block has letters. So the hashes of its
first windows are looked up among those of the blocks, and what they hit is compared letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Int64
from tercet.training.data.pairs import letters, passages_of

# Long blocks are rare, so that there is little to compare; the short ones are for short texts.
BLOCK_LETTERS = (16, 6)
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no letter is lost in 64 bits


class HeldOutTexts:
    """The held-out texts, compared by letters and digits alone, in lower case: spacing hides nothing."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._letters = "\n".join(letters(text) for text in texts)
        points = code_points(self._letters)
        self._blocks = [Blocks(points, length) for length in BLOCK_LETTERS]

    @staticmethod
    def of(folders: Iterable[Path]) -> HeldOutTexts:
        """Title and text of every document of BEIR folders."""
        return HeldOutTexts(text for folder in folders for text in passages_of(folder))

    def contain_any(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts occurs inside a held-out one. A text without letters always does."""
        return bool(self._letters) and any(self._contain(letters(text)) for text in texts)

    def _contain(self, text: str) -> bool:
        for blocks in self._blocks:
            if len(text) >= blocks.shortest:
                starts = blocks.starts(code_points(text[: blocks.shortest]))
                return any(start >= 0 and self._letters.startswith(text, start) for start in starts.tolist())
        return text in self._letters


class Blocks:
    """Where each block of `length` letters begins, found by its hash. shortest: text that has a block."""

    def __init__(self, points: npt.NDArray[np.uint32], length: int) -> None:
        """points: all held-out letters, uint32[N]."""
        self.shortest = 2 * length - 1
        self._length = length
        whole = points[: len(points) // length * length].reshape(-1, length)
        values = hashes(whole)
        self._order = np.argsort(values, kind="stable")
        self._hashes = values[self._order]

    def starts(self, points: npt.NDArray[np.uint32]) -> Int64:
        """Where a text may begin, by its first `shortest` letters, uint32[shortest]; may be negative."""
        values = hashes(np.lib.stride_tricks.sliding_window_view(points, self._length))
        first, end = (np.searchsorted(self._hashes, values, side) for side in ("left", "right"))
        starts = [
            self._order[begin:stop] * self._length - offset
            for offset, (begin, stop) in enumerate(zip(first.tolist(), end.tolist(), strict=True))
            if begin < stop
        ]
        return np.concatenate([np.zeros(0, np.int64), *starts])


def hashes(windows: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """A hash of each row of code points, uint32[W, L] → uint64[W]."""
    values = np.zeros(len(windows), np.uint64)
    for column in windows.T:  # one after another: all of them in 64 bits would be eight times the text
        values = (values + column) * FACTOR
        values ^= values >> np.uint64(29)
    return values


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text, uint32[N]."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
