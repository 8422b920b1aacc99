"""From a text to the terms that BM25 counts: stems of words, or pairs of characters.

A text is brought to one form (Unicode NFKC, lower case) and cut into pieces. What is not seen (soft
hyphens, joiners, variation selectors and the other code points that Unicode calls default ignorable) is left
out before, so that a word is the same with it and without.

- Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Myanmar), and Hangul, whose words carry
  particles, give each two characters that follow one another; one that stands alone gives itself.
- In other scripts a run of letters, marks and digits is a word, from its first letter or digit on; an English
  possessive 's is left out. A word with capitals inside, as programs have them, gives the words that these
  begin, too: `getUserById` is itself, and `get`, `user`, `by` and `id`.

A Snowball stemmer makes a word's stem, that of the language which goes with the script of its first letter
(`languages.py`), and marks that tell nothing apart in that language are left out (`folding.py`); a Vietnamese
word is counted with its marks and without. A word's term depends on nothing but the word, so documents and
queries in several scripts are read alike.

A long text is read part by part. Parts end where that shows in nothing: before white space, which is in
no word and which neither NFKC nor lower case joins to what is before it; or among letters that are read in
pairs, of which two parts then share one. Only a stretch that has no such place within `CHARACTERS_AT_ONCE` is
cut anywhere.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator

from Stemmer import Stemmer

from tercet.index.bm25.folding import OWN_LETTERS, STEMMED_LETTERS, folded
from tercet.index.bm25.languages import SCRIPT_LANGUAGES, Bm25Language, languages_by_script
from tercet.index.bm25.patterns import compiled

REMEMBERED_TERMS = 2**18
LONGEST_WORD = 128  # characters; what is longer is no word, and is cut into pieces of so many
CHARACTERS_AT_ONCE = 65_536  # a part has at least as many where more follow, and at most twice as many
FIRST_LETTER = r"\p{L}\p{N}"
_LETTER = rf"{FIRST_LETTER}\p{{M}}"
PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
PAIRED_LETTER = rf"[[{_LETTER}]&&[{PAIRED}]]"
WORD_LETTER = rf"[[{_LETTER}]--[{PAIRED}]]"
# Where a word begins inside another: a capital after a small letter, or before two, as the S of HTTPServer.
_BEGINNING = r"(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})"
# Paired letters that stay one letter in NFKC and join no letter before them.
_SEPARATE = r"[\p{Lo}&&[\p{Han}ぁ-ゖァ-ヺ가-힣ก-ะກ-ະក-អက-အ]]"
_INVISIBLE = r"\p{Default_Ignorable_Code_Point}+"
_WORD = rf"[[{FIRST_LETTER}]--[{PAIRED}]]{WORD_LETTER}{{0,{LONGEST_WORD - 1}}}"
_WORDS = rf"({_WORD})(?:'s(?!{WORD_LETTER}))?"
_ALONE = rf"(?<!{PAIRED_LETTER})[[{FIRST_LETTER}]&&[{PAIRED}]](?!{PAIRED_LETTER})"
# Matches at each place where a term of paired letters begins: two of them, or one that stands alone.
PAIRS = rf"(?=({PAIRED_LETTER}{{2}}|{_ALONE}))"
_VIETNAMESE = r"[ơưẠ-ỹ]"  # letters that no other language has
_LETTERS = rf"{WORD_LETTER}{{0,{LONGEST_WORD}}}"
_CUTS = rf"(?P<blank>\s)|(?<={_SEPARATE}{{2}}){_SEPARATE}"
_SCRIPTS = "|".join(rf"(?P<{script}>\p{{{script}}})" for script in SCRIPT_LANGUAGES)


class Analyzer:
    """Reads texts as a collection of one language does. A stemmer has a state: use one in one thread."""

    def __init__(self, language: Bm25Language) -> None:
        self._languages = languages_by_script(language)
        self._dotless = language == "turkish"
        self._stemmers: dict[str, Stemmer] = {}
        self._terms: dict[str, str] = {}

    def pieces(self, text: str) -> Iterator[list[str]]:
        """Words as they stand, with the words inside them, and pairs of characters, as
        often as they occur; of one part of the text after another, and in each words first.
        """
        for part in _parts(text):
            yield self._pieces(part)

    def _pieces(self, part: str) -> list[str]:
        composed = unicodedata.normalize("NFKC", part).replace("’", "'")
        lowered = self._lowered(composed)
        words: list[str] = compiled(_WORDS).findall(lowered)
        words += map(self._lowered, inner_words(composed))
        words += [folded(word, "") for word in words if not word.isascii() and self._keeps_marks(word)]
        return words if lowered.isascii() else words + compiled(PAIRS).findall(lowered)

    def _lowered(self, text: str) -> str:
        if self._dotless:  # Turkish has two letters i
            text = text.replace("İ", "i").replace("I", "ı")
        return text.lower()

    def term(self, piece: str) -> str:
        """What is counted for a piece: its stem, or the piece itself. The last ones are remembered."""
        term = self._terms.get(piece)
        if term is None:
            if len(self._terms) >= REMEMBERED_TERMS:
                self._terms.clear()
            term = self._terms[piece] = self._term(piece)
        return term

    def _term(self, piece: str) -> str:
        script = compiled(_SCRIPTS).search(piece)
        language = self._languages.get(script.lastgroup or "") if script else None
        if language is None or self._keeps_marks(piece):
            return piece
        own = OWN_LETTERS.get(language, "")
        return folded(self._stem(folded(piece, own + STEMMED_LETTERS.get(language, "")), language), own)

    def _keeps_marks(self, word: str) -> bool:
        """Whether a word is Vietnamese, in a collection that folds: without marks it is many words."""
        return "Latin" in self._languages and compiled(_VIETNAMESE).search(word) is not None

    def _stem(self, word: str, language: Bm25Language) -> str:
        if language == "none":
            return word
        if language not in self._stemmers:
            self._stemmers[language] = Stemmer(language)
        stem: str = self._stemmers[language].stemWord(word)
        return stem or word

    def counts(self, text: str) -> Counter[str]:
        """How often each term of a text occurs in it."""
        counted = Counter[str]()
        for pieces in self.pieces(text):
            counted.update(map(self.term, pieces))
        return counted


def inner_words(text: str) -> Iterator[str]:
    """The words inside words with capitals, such as `get`, `User` and `Id` of getUserId.

    Single letters are none, and where one word alone is left, as of iPhone, there is none.
    """
    end = 0
    for beginning in compiled(_BEGINNING).finditer(text):
        position = beginning.start()
        if position >= end:
            start = position
            while (
                start > max(end, position - LONGEST_WORD)
                and compiled(_LETTERS).match(text, start - 1, start).end() == start
            ):
                start -= 1
            while unicodedata.category(text[start]).startswith("M"):  # a word begins with a letter or digit
                start += 1
            end = compiled(_LETTERS).match(text, position).end()
            inside = [word for word in compiled(_BEGINNING).split(text[start:end]) if len(word) > 1]
            if len(inside) > 1:
                yield from inside


def _parts(text: str) -> Iterator[str]:
    """The text in parts of bounded length, whose pieces together are those of the text."""
    visible = text if text.isascii() else compiled(_INVISIBLE).sub("", text)
    start, length = 0, CHARACTERS_AT_ONCE
    while len(visible) - start > length:
        cut = compiled(_CUTS).search(visible, start + length, start + 2 * length)
        stop = start + 2 * length if cut is None else cut.start()
        yield visible[start:stop]
        start = stop - (cut is not None and cut["blank"] is None)
    yield visible[start:]
