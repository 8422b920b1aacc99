"""From a text to the terms that BM25 counts: stems of words, pairs of characters, and other spellings of
both.

`cutting.py` cuts a text into units. A Snowball stemmer makes a word's stem, that of the language which goes
with the script of its first letter (`languages.py`), and marks that tell nothing apart in that language are
left out (`folding.py`), as what tells the simplified and the traditional form of a Han character apart is; a
Vietnamese word is counted with its marks and without. A unit's terms depend on nothing but the unit, so
documents and queries in several scripts are read alike.

What is joined in one text is apart in another: e-mail and email, ABC-123 and ABC123, getUserById and "user
id", 책을 and 책. A document has the other spellings of its words as further terms, with `MARK` before them:
joined words as one, the parts of a word with capitals or digits inside, single characters of a run. They are
terms of their own, so that a word is not counted twice, and they do not count in the document's length. A
query has each of its words with the mark, too, and its words' other spellings without it: its alternatives.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from operator import add

from Stemmer import Stemmer

from tercet.index.bm25.cutting import JOINER, LONGEST_WORD, MARK, cut
from tercet.index.bm25.folding import OWN_LETTERS, STEMMED_LETTERS, folded
from tercet.index.bm25.languages import SCRIPT_LANGUAGES, Bm25Language, languages_by_script
from tercet.index.bm25.patterns import compiled

REMEMBERED_UNITS = 2**18
MOST_RUNS = 6  # of letters and digits in a word; one with more is a checksum or the like, and has no parts
# Where a word begins inside another: a capital after a small letter, or before two, as the S of HTTPServer.
_BEGINNING = r"(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})"
_RUNS = re.compile(r"\d+|\D+")
_VIETNAMESE = r"[ơưẠ-ỹ]"  # letters that no other language has
_SCRIPTS = "|".join(rf"(?P<{script}>\p{{{script}}})" for script in SCRIPT_LANGUAGES)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The terms of a unit. words: as it stands; joined: its words as one, None where it is one; parts: of
    each of its words, by the word's term.
    """

    words: tuple[str, ...]
    joined: str | None
    parts: dict[str, tuple[str, ...]]

    @property
    def terms(self) -> tuple[str, ...]:
        """What a document has: words, and the others with the mark."""
        joined = () if self.joined is None else (self.joined,)
        return self.words + tuple(MARK + term for term in chain(joined, *self.parts.values()))


class Analyzer:
    """Reads texts as a collection of one language does. A stemmer has a state: use one in one thread."""

    def __init__(self, language: Bm25Language) -> None:
        self._languages = languages_by_script(language)
        self._dotless = language == "turkish"
        self._stemmers: dict[str, Stemmer] = {}
        self._terms: dict[str, tuple[str, ...]] = {}

    def terms(self, unit: str) -> tuple[str, ...]:
        """What a document has of a unit, see `Spelling`. The last ones are remembered."""
        terms = self._terms.get(unit)
        if terms is None:
            if len(self._terms) >= REMEMBERED_UNITS:
                self._terms.clear()
            terms = self._terms[unit] = self.spelling(unit).terms
        return terms

    def spelling(self, unit: str) -> Spelling:
        """The terms of a unit."""
        words = re.split(JOINER, unit)
        lowered = list(map(self._lowered, words))
        joined = "".join(lowered)
        unmarked = [folded(word, "") for word in lowered if not word.isascii() and self._keeps_marks(word)]
        return Spelling(
            tuple(map(self._term, lowered + unmarked)),
            self._term(joined) if len(words) > 1 and len(joined) <= LONGEST_WORD else None,
            {
                self._term(lower): tuple(self._term(self._lowered(part)) for part in parts)
                for word, lower in zip(words, lowered, strict=True)
                if (parts := parts_of(word))
            },
        )

    def _lowered(self, text: str) -> str:
        if self._dotless:  # Turkish has two letters i
            text = text.replace("İ", "i").replace("I", "ı")
        return text.lower()

    def _term(self, word: str) -> str:
        """What is counted for a word in lower case: its stem, without marks that tell nothing apart."""
        script = None if word.isascii() else compiled(_SCRIPTS).search(word)
        language = self._languages.get(
            script.lastgroup or "" if script else "Latin" if word.isascii() else ""
        )
        if language is None or self._keeps_marks(word):
            return word
        own = OWN_LETTERS.get(language, "")
        return folded(self._stem(folded(word, own + STEMMED_LETTERS.get(language, "")), language), own)

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
        """How often a document of this text has each term, those of other spellings too."""
        counted = Counter[str]()
        for part in cut(text):
            counted.update(part.letters)
            counted.update(chain.from_iterable(map(self.terms, part.units)))
        return counted


def parts_of(word: str) -> list[str]:
    """The words inside a word with capitals or digits, such as `get`, `User` and `Id` of getUserId, or `ABC`
    and `123` of ABC123; of M5799DWF, which changes more than once, `M5799` and `5799DWF` as well.

    Single characters are none, and where capitals leave one word alone, as of iPhone, there is none.
    """
    if word.isalpha() and (word.islower() or word.isupper() or word.istitle()):
        return []
    inside = [part for part in compiled(_BEGINNING).split(word) if len(part) > 1]
    parts = inside if len(inside) > 1 else []
    runs = _RUNS.findall(word)
    if 1 < len(runs) <= MOST_RUNS:
        parts += [run for run in runs if len(run) > 1]
        if len(runs) > 2:
            parts += map(add, runs, runs[1:])
    return list(dict.fromkeys(parts))
