"""Where a text has words that a query has, too, as BM25 reads both: by stems, without marks, in pairs.

`analysis.py` reads a text in another form than it stands in, so words are found as they stand, and each is
read by itself: its terms depend on nothing but the word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from tercet.index.bm25.analysis import (
    FIRST_LETTER,
    PAIRED,
    PAIRED_LETTER,
    PAIRS,
    WORD_LETTER,
    Analyzer,
)
from tercet.index.bm25.languages import Bm25Language
from tercet.index.bm25.patterns import compiled

Span = tuple[int, int]
"""First character and end of a part of a text."""

_VOICING = "\uff9e\uff9f"  # marks of half-width kana, which are in no script
_UNSEEN = r"\p{Default_Ignorable_Code_Point}"
_WORD = rf"[[{FIRST_LETTER}]--[{PAIRED}]](?:{WORD_LETTER}|{_UNSEEN})*"
_PAIRED = rf"{PAIRED_LETTER}(?:[{_UNSEEN}{_VOICING}]*{PAIRED_LETTER})*[{_VOICING}]*"
# Words as they stand, with what is not seen in them; or stretches of letters that are read in pairs.
_STRETCHES = rf"(?P<word>{_WORD})(?:['’]s(?!{WORD_LETTER}))?|(?P<paired>{_PAIRED})"
_CHARACTERS = r"\X"


class QueryWords:
    """The words of a query, to find them in texts. For one thread, as an `Analyzer` is."""

    def __init__(self, query: str, language: Bm25Language) -> None:
        """language: of texts and query, as for an `Analyzer`."""
        self._analyzer = Analyzer(language)
        self._terms = frozenset(self._analyzer.counts(query))
        self._known: dict[str, bool] = {}

    def spans(self, text: str) -> list[Span]:
        """Where they are, in order: whole words, and of letters that are read in pairs those two."""
        spans: list[Span] = []
        for stretch in compiled(_STRETCHES).finditer(text):
            if stretch["word"] is None:
                spans.extend(self._pairs(stretch.group(), stretch.start()))
            elif self._has(stretch["word"]):
                spans.append(stretch.span("word"))
        return spans

    def _has(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = not self._terms.isdisjoint(self._analyzer.counts(word))
        return known

    def _pairs(self, stretch: str, first: int) -> Iterator[Span]:
        """Spans in a stretch of paired letters, which begins at the character `first`."""
        letters, starts, ends = _read(stretch)
        for term in compiled(PAIRS).finditer(letters):
            if term[1] in self._terms:
                yield first + starts[term.start(1)], first + ends[term.end(1) - 1]


def _read(stretch: str) -> tuple[str, list[int], list[int]]:
    """The letters of a stretch in the form that they are read in, and where each stands: start and end."""
    if unicodedata.is_normalized("NFKC", stretch) and not compiled(_UNSEEN).search(stretch):
        return stretch, list(range(len(stretch))), list(range(1, len(stretch) + 1))
    letters, starts, ends = "", list[int](), list[int]()
    for character in compiled(_CHARACTERS).finditer(stretch):
        read = unicodedata.normalize("NFKC", compiled(_UNSEEN).sub("", character.group()))
        letters += read
        starts += [character.start()] * len(read)
        ends += [character.end()] * len(read)
    return letters, starts, ends
