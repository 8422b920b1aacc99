"""Where a text has words that a query has, too, as BM25 reads both: by stems, without marks, in pairs, in
other spellings.

`cutting.py` reads a text in another form than it stands in, so words are found as they stand, and each is
read by itself: its terms depend on nothing but the word, and those that it is joined with.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from tercet.index.bm25.alternatives import query_terms
from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.cutting import (
    DIGIT,
    FIRST_OF_WORD,
    LETTER_OF_WORD,
    MARK,
    PAIRED_LETTER,
    RUN,
    SINGLE,
    WORD_LETTER,
    cut,
    units_pattern,
)
from tercet.index.bm25.folding import simplified
from tercet.index.bm25.languages import Bm25Language
from tercet.index.bm25.patterns import compiled

Span = tuple[int, int]
"""First character and end of a part of a text."""

_VOICING = "\uff9e\uff9f"  # marks of half-width kana, which are in no script
_UNSEEN = r"\p{Default_Ignorable_Code_Point}"
_FURTHER = rf"[{WORD_LETTER}{_UNSEEN}]"
_WORD = rf"{FIRST_OF_WORD}{_FURTHER}*"
_PAIRED = rf"{PAIRED_LETTER}(?:[{_UNSEEN}{_VOICING}]*{PAIRED_LETTER})*[{_VOICING}]*"
# Units as they stand, with what is not seen in them; or stretches of letters that are read in pairs.
_UNITS = units_pattern(FIRST_OF_WORD, _FURTHER, LETTER_OF_WORD, DIGIT, f"{_UNSEEN}*")
_STRETCHES = rf"{_UNITS}|(?P<paired>{_PAIRED})"
_CHARACTERS = r"\X"


class QueryWords:
    """The words of a query, to find them in texts. For one thread, as an `Analyzer` is."""

    def __init__(self, query: str, language: Bm25Language) -> None:
        """language: of texts and query, as for an `Analyzer`."""
        self._analyzer = Analyzer(language)
        counts, shares = query_terms(query, self._analyzer)
        self._terms = counts.keys() | {term for _, term in shares}
        self._known: dict[str, bool] = {}

    def spans(self, text: str) -> list[Span]:
        """Where they are, in order: whole words, all that are joined where these are found as one, and of
        letters that are read in pairs those two, or one that is a word.
        """
        spans: list[Span] = []
        for stretch in compiled(_STRETCHES).finditer(text):
            if stretch["paired"] is not None:
                spans.extend(self._in_letters(stretch["paired"], stretch.start()))
            elif self._has_joined(stretch[1]):
                spans.append(stretch.span(1))
            else:
                words = compiled(_WORD).finditer(text, *stretch.span(1))
                spans.extend(word.span() for word in words if self._has(word.group()))
        return sorted(spans)

    def _has(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = not self._terms.isdisjoint(self._analyzer.counts(word))
        return known

    def _has_joined(self, unit: str) -> bool:
        """Whether a unit's words are found as one."""
        if unit.isascii() and unit.isalnum():  # one word, as most are
            return False
        joined = [self._analyzer.spelling(unit).joined for part in cut(unit) for unit in part.units]
        return len(joined) == 1 and joined[0] is not None and MARK + joined[0] in self._terms

    def _in_letters(self, stretch: str, first: int) -> Iterator[Span]:
        """Spans in a stretch of paired letters, which begins at the character `first`."""
        letters, starts, ends = _read(stretch)
        for run in compiled(RUN).finditer(letters):
            width = min(2, len(run.group()))
            for start in range(run.start(), run.end() - width + 1):
                if letters[start : start + width] in self._terms:
                    yield first + starts[start], first + ends[start + width - 1]
            for single in compiled(SINGLE).finditer(run.group()):
                if MARK + single.group() in self._terms:
                    place = run.start() + single.start()
                    yield first + starts[place], first + ends[place]


def _read(stretch: str) -> tuple[str, list[int], list[int]]:
    """The letters of a stretch in the form that they are read in, and where each stands: start and end."""
    if unicodedata.is_normalized("NFKC", stretch) and not compiled(_UNSEEN).search(stretch):
        return simplified(stretch), list(range(len(stretch))), list(range(1, len(stretch) + 1))
    letters, starts, ends = "", list[int](), list[int]()
    for character in compiled(_CHARACTERS).finditer(stretch):
        read = unicodedata.normalize("NFKC", compiled(_UNSEEN).sub("", character.group()))
        letters += simplified(read)
        starts += [character.start()] * len(read)
        ends += [character.end()] * len(read)
    return letters, starts, ends
