"""Where a text has words that a query has, too, as an encoder's tokenizer cuts both into pieces.

A word between spaces matches as a whole, where more than half of its letters are in pieces that the query
has. Scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar), and Hangul, whose words carry particles,
match piece by piece. There a single hiragana letter is a particle, and a single Hangul syllable counts only
as the first of its word. Pieces that are less than a character say nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import regex

from tercet.index.bm25.cutting import PAIRED_LETTER, WORD_LETTER
from tercet.models.representations import Bool, Int32, Int64
from tercet.models.tokenizer import Tokenizer

HANGUL, HIRAGANA = (0xAC00, 0xD7A3), (0x3041, 0x309F)


@cache
def _words() -> regex.Pattern[str]:
    return regex.compile(rf"{WORD_LETTER}+(?:['’]{WORD_LETTER}+)*", regex.V1)


@cache
def _paired() -> regex.Pattern[str]:
    return regex.compile(rf"{PAIRED_LETTER}+", regex.V1)


def matching_pieces(text: str, token_ids: Int32, tokenizer: Tokenizer) -> Int64:
    """Where words or pieces of a text have these tokens, ascending and apart: int64[n, 2], start and end."""
    spans = tokenizer.spans(text)
    matching = _only_in(len(text), spans.starts, spans.ends, np.isin(spans.token_ids, token_ids))
    if not matching.any():
        return np.empty((0, 2), np.int64)
    sums = np.append(0, np.cumsum(matching))
    words = _matches(_words(), text)
    counts = sums[words[:, 1]] - sums[words[:, 0]]
    words = words[2 * counts > words[:, 1] - words[:, 0]]
    pieces = _pieces(text, matching)
    both = np.concatenate([words, pieces])
    return both[np.argsort(both[:, 0], kind="stable")]


def without_words(text: str, token_ids: Int32, tokenizer: Tokenizer) -> str:
    """A text with blanks in the place of words that have these tokens and no others."""
    spans = tokenizer.spans(text)
    others = ~np.isin(spans.token_ids, token_ids)
    edges = np.zeros(len(text) + 1, np.int64)
    np.add.at(edges, spans.starts[others], 1)
    np.add.at(edges, spans.ends[others], -1)
    sums = np.append(0, np.cumsum(np.cumsum(edges)[:-1] > 0))
    letters = list(text)
    for start, end in _matches(_words(), text).tolist():
        if sums[start] == sums[end]:
            letters[start:end] = " " * (end - start)
    return "".join(letters)


def _only_in(length: int, starts: Int64, ends: Int64, chosen: Bool) -> Bool:
    """Which of so many characters lie in one token alone, and that a chosen one: bool[length]."""
    edges = np.zeros((2, length + 1), np.int64)
    for row, some in enumerate((np.ones_like(chosen), chosen)):
        np.add.at(edges[row], starts[some], 1)
        np.add.at(edges[row], ends[some], -1)
    tokens, chosen_tokens = np.cumsum(edges, axis=1)[:, :length]
    only: Bool = (tokens == 1) & (chosen_tokens == 1)
    return only


def _pieces(text: str, matching: Bool) -> Int64:
    """The stretches of matching letters of scripts that match piece by piece: int64[n, 2]."""
    paired = np.zeros(len(text) + 1, np.int64)
    stretches = _matches(_paired(), text)
    paired[stretches[:, 0]] += 1
    paired[stretches[:, 1]] -= 1
    inside = matching & (np.cumsum(paired)[:-1] > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8)))
    ranges = edges.reshape(-1, 2)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    hangul = _within(codes, HANGUL)
    starts = ranges[:, 0]
    follows = hangul[starts] & (starts > 0) & hangul[starts - 1]
    alone = (ranges[:, 1] - starts == 1) & (follows | _within(codes[starts], HIRAGANA))
    kept: Int64 = ranges[~alone]
    return kept


def _within(codes: npt.NDArray[np.uint32], limits: tuple[int, int]) -> Bool:
    within: Bool = (codes >= limits[0]) & (codes <= limits[1])
    return within


def _matches(pattern: regex.Pattern[str], text: str) -> Int64:
    """Where a pattern is in a text: int64[n, 2]."""
    return np.array([match.span() for match in pattern.finditer(text)], np.int64).reshape(-1, 2)
