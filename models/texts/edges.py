"""Where a text may be cut: at the characters with which its tokens begin."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tercet.models.representations import Bool, Int64
from tercet.models.tokenizer import CHARACTERS_PER_TOKEN, CUT_MARGIN_TOKENS, Tokenizer, valid_text

# A window has no more, also where it has room for further tokens, as in base64 or in long runs of blanks:
# encoder workers take 200,000 characters of a text unless they are told otherwise.
MOST_CHARACTERS = 100_000
_INK = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class TextEdges:
    """The edges of a part of a text, between which lie P pieces of one token or more.

    characters: int64[P+1], where the pieces begin, never with white space, and where the last ends; tokens:
    int64[P+1], how many begin before each; begins_word: bool[P+1]; until: the character before which there
    are no other pieces, with the white space after the last; whole: whether the text ends with the part.
    """

    characters: Int64
    tokens: Int64
    begins_word: Bool
    until: int
    whole: bool

    @staticmethod
    def of(tokenizer: Tokenizer, text: str, begin: int, room: int) -> TextEdges:
        """Those after `begin`, of `room` tokens or MOST_CHARACTERS at least, or to the end of the text.

        Text follows `begin` that is not white space.
        """
        begin = next_ink(text, begin)
        characters = (room + CUT_MARGIN_TOKENS) * CHARACTERS_PER_TOKEN
        while True:
            part, whole = text[begin : begin + characters], begin + characters >= len(text)
            spans = tokenizer.spans(part)
            starts = np.append(spans.starts, len(part))
            # Tokens near the cut of a part may differ from those of the whole text.
            far = int(np.searchsorted(spans.starts, characters - MOST_CHARACTERS))
            usable = len(spans) if whole else max(far, len(spans) - CUT_MARGIN_TOKENS)
            # What precedes the first token belongs to it.
            tokens = np.append(np.arange(max(1, usable)), usable)
            inked, first = np.unique(_inked(part, np.append(0, starts[tokens[1:]])), return_index=True)
            tokens, words = tokens[first], np.append(spans.begins_word, True)
            until = begin + int(starts[usable])
            edges = TextEdges(begin + inked, tokens, words[tokens], until, whole)
            # Of twice MOST_CHARACTERS the first half ends far from the cut, so this comes to an end.
            if edges.reaches(0, room):
                return edges
            characters *= 4

    def reaches(self, first: int, room: int) -> bool:
        """Whether a window from this edge on ends within the part."""
        tokens, characters = self.tokens, self.characters
        return (
            self.whole
            or tokens[-1] - tokens[first] >= room
            or (first < len(characters) - 1 and self.until - characters[first] >= MOST_CHARACTERS)
        )

    def last_within(self, first: int, tokens: int, characters: int) -> int:
        """The last edge that is so many tokens and characters from another at most."""
        return -1 + min(
            int(np.searchsorted(self.tokens, self.tokens[first] + tokens, "right")),
            int(np.searchsorted(self.characters, self.characters[first] + characters, "right")),
        )

    def next_beyond(self, character: int) -> int:
        """The first edge that lies beyond a character; one more than there are where none does."""
        return int(np.searchsorted(self.characters, character, "right"))

    def between_words(self, most: int, slack: int, least: int) -> int:
        """The last edge up to `most` that begins a word, or `most` where there is none within `slack` tokens.

        It is `least` or a later one.
        """
        least = max(least, int(np.searchsorted(self.tokens, self.tokens[most] - slack)))
        beginnings = np.flatnonzero(self.begins_word[least : most + 1])
        return least + int(beginnings[-1]) if len(beginnings) else most


def next_ink(text: str, position: int) -> int:
    """The first character from a position on that is not white space, or that position where none follows."""
    ink = _INK.search(text, position)
    return position if ink is None else ink.start()


def _inked(text: str, positions: Int64) -> Int64:
    """The first character from each position on that is not white space, or the end of the last one.

    positions: int64[n], ascending, as what comes back.
    """
    codes = np.frombuffer(valid_text(text).encode("utf-32-le"), "<U1")
    ink = np.flatnonzero(~np.strings.isspace(codes))
    end = int(ink[-1]) + 1 if len(ink) else 0
    ascending = np.maximum.accumulate(positions)
    inked: Int64 = np.append(ink, end)[np.searchsorted(ink, ascending)]
    return inked
