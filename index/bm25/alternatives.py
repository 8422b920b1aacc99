"""A query's terms, and the other spellings that documents may have in their place.

However rare an alternative is, it has at most a share of the weight of what it stands in for, so that the
spelling of the query comes first: all alternatives of a word together have `SHARE`. A letter that stands
alone counts in full inside a run of letters, too.
"""

from __future__ import annotations

from collections import Counter

from tercet.index.bm25.analysis import Analyzer, Spelling
from tercet.index.bm25.cutting import MARK, PAIRED_LETTER, cut, one_letter_words
from tercet.index.bm25.patterns import compiled

SHARE = 0.5

Shares = dict[tuple[str, str], float]
"""By a term of a query and an alternative of it: the part of the term's weight that it has at most."""


def query_terms(text: str, analyzer: Analyzer) -> tuple[Counter[str], Shares]:
    """How often a query has each of its words' terms; and the alternatives, which are not among these."""
    counts, shares = Counter[str](), Shares()
    for part in cut(text):
        counts.update(letters for letters in part.letters if not letters.startswith(MARK))
        for unit in part.units:
            spelling = analyzer.spelling(unit)
            counts.update(spelling.words)
            shares |= _of_words(spelling)
    shares |= {
        (letter, MARK + letter): 1
        for letter in counts
        if len(letter) == 1 and compiled(PAIRED_LETTER).match(letter)
    }
    for pair in one_letter_words(text):
        shares |= {(pair, pair[0]): SHARE, (pair, MARK + pair[0]): SHARE}
    return counts, {(word, term): share for (word, term), share in shares.items() if term not in counts}


def _of_words(spelling: Spelling) -> Shares:
    """A word's alternatives are the word as another spelling, the joined form of its unit, and its parts."""
    shares = Shares()
    for word in spelling.words:
        parts = spelling.parts.get(word, ())
        share = SHARE / (1 + (spelling.joined is not None) + bool(parts))
        shares[word, MARK + word] = share
        if spelling.joined is not None:
            shares[word, spelling.joined] = share
        for part in parts:
            shares[word, part] = shares[word, MARK + part] = share / len(parts)
    return shares
