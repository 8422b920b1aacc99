"""From a text to the terms that BM25 counts: stems of words, or pairs of characters.

A text is brought to one form (Unicode NFKC, lower case) and cut into pieces:

- Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Myanmar), and Hangul, whose words carry
  particles, give each two characters that follow one another; one that stands alone gives itself.
- In other scripts a run of letters, marks and digits is a word; an English possessive 's is left out.

A Snowball stemmer makes a word's stem, that of the language which goes with the script of its first letter
(`languages.py`). A word's term depends on nothing but the word, so documents and queries in several scripts
are read alike.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import regex
from Stemmer import Stemmer

from index.bm25.languages import SCRIPT_LANGUAGES, Bm25Language, languages_by_script

LONGEST_WORD = 128  # characters; what is longer is no word, and is cut into pieces of so many
_LETTER = r"\p{L}\p{M}\p{N}"
_PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_PAIRED_LETTER = rf"[[{_LETTER}]&&[{_PAIRED}]]"
_WORD_LETTER = rf"[[{_LETTER}]--[{_PAIRED}]]"


@cache
def _words() -> regex.Pattern[str]:
    return regex.compile(rf"({_WORD_LETTER}{{1,{LONGEST_WORD}}})(?:'s(?!{_WORD_LETTER}))?", regex.V1)


@cache
def _pairs() -> regex.Pattern[str]:
    alone = rf"(?<!{_PAIRED_LETTER}){_PAIRED_LETTER}(?!{_PAIRED_LETTER})"
    return regex.compile(rf"(?=({_PAIRED_LETTER}{{2}}|{alone}))", regex.V1)


@cache
def _scripts() -> regex.Pattern[str]:
    return regex.compile("|".join(rf"(?P<{script}>\p{{{script}}})" for script in SCRIPT_LANGUAGES))


class Analyzer:
    """Reads texts as a collection of one language does. A stemmer has a state: use one in one thread."""

    def __init__(self, language: Bm25Language) -> None:
        self._languages = languages_by_script(language)
        self._dotless = language == "turkish"
        self._stemmers: dict[str, Stemmer] = {}

    def pieces(self, text: str) -> list[str]:
        """Words as they stand and pairs of characters, as often as they occur; words come first."""
        composed = unicodedata.normalize("NFKC", text).replace("’", "'")
        if self._dotless:  # Turkish has two letters i
            composed = composed.replace("İ", "i").replace("I", "ı")
        lowered = composed.lower()
        words: list[str] = _words().findall(lowered)
        return words if lowered.isascii() else words + _pairs().findall(lowered)

    def term(self, piece: str) -> str:
        """What is counted for a piece: its stem, or the piece itself."""
        script = _scripts().search(piece)
        language = self._languages.get(script.lastgroup or "", "none") if script else "none"
        if language == "none":
            return piece
        if language not in self._stemmers:
            self._stemmers[language] = Stemmer(language)
        stem: str = self._stemmers[language].stemWord(piece)
        return stem or piece

    def terms(self, text: str) -> list[str]:
        """The terms of a text, as often as they occur."""
        return [self.term(piece) for piece in self.pieces(text)]
