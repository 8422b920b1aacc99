"""From a text to units: words as they stand, and what is read of scripts without spaces.

A text is brought to Unicode's form NFKC. What is not seen (soft hyphens, joiners, variation selectors and the
other code points that Unicode calls default ignorable) is left out before, so that a word is the same with it
and without.

- Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Myanmar), and Hangul, whose words carry
  particles, give each two characters that follow one another; one that stands alone gives itself. Of what may
  be a word of one character inside such a run, that character is a unit of its own, with `MARK` before it: a
  Han character, and a Hangul syllable with nothing but particles after it, as in 책을.
- In other scripts a run of letters, marks and digits is a word, from its first letter or digit on; an English
  possessive 's is left out. Words that hyphens or underscores join are one unit, and so are abbreviations
  with points (U.S.A.) and numbers in groups of three digits (1,000,000).

A long text is read part by part. Parts end where that shows in nothing: before white space, which is in
no word and which NFKC does not join to what is before it; or among letters that are read in pairs, of which
two parts then share one. Only a stretch that has no such place within `CHARACTERS_AT_ONCE` is cut anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from operator import add
from typing import NamedTuple

from tercet.index.bm25.folding import simplified
from tercet.index.bm25.patterns import compiled

MARK = "~"  # in no word
LONGEST_WORD = 128  # characters; what is longer is no word, and is cut into pieces of so many
CHARACTERS_AT_ONCE = 65_536  # a part has at least as many where more follow, and at most twice as many
_FIRST_LETTER = r"\p{L}\p{N}"
_LETTER = rf"{_FIRST_LETTER}\p{{M}}"
PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
PAIRED_LETTER = rf"[[{_LETTER}]&&[{PAIRED}]]"
WORD_LETTER = rf"[[{_LETTER}]--[{PAIRED}]]"
FIRST_OF_WORD = rf"[[{_FIRST_LETTER}]--[{PAIRED}]]"
LETTER_OF_WORD = rf"[\p{{L}}--[{PAIRED}]]"
DIGIT = r"\p{Nd}"
JOINER = r"[-‐_.,]"
_MAYBE_PAIRED = "[\u0e00-\u1fff\u2e80-\U0010ffff]"  # found in a tenth of the time that the scripts take
# A run of letters that are read in pairs, or one that stands alone, which is no mark.
RUN = rf"{PAIRED_LETTER}{{2,}}|[[{_FIRST_LETTER}]&&[{PAIRED}]]"
# Letters that are no words of one letter, though what follows looks like a particle: stems of verbs,
# pronouns, bound nouns; and particles.
_FUNCTION_LETTERS = "있없받하되같많않싶돕이그저내제것수중때등년的了是在么麼吗嗎呢吧"
_HAN = rf"[\p{{Han}}--[{_FUNCTION_LETTERS}]]"
_PARTICLE = (
    "들?(?:[이가은는을를의에도만와과로랑께뿐]|으로|에서|에게|부터|까지|보다|처럼|마다|조차|밖에|이나|이란|"
    "이든|이며|이고|이다|입니다|인|이랑|하고|이라는?|라는)"
)
_PARTICLED = rf"(?<!\S)[\p{{Hangul}}--[{_FUNCTION_LETTERS}]](?={_PARTICLE}{{1,2}}(?!\S))"
_ONE_LETTER_WORD = rf"(?<!\p{{Han}}){_HAN}(?=\p{{Hiragana}})|{_PARTICLED}"
SINGLE = rf"(?<=\S){_HAN}|{_HAN}(?=\S)|{_PARTICLED}"
# Paired letters that stay one letter in NFKC, join no letter before them, and stand between no particles.
_SEPARATE = r"[\p{Lo}&&[\p{Han}ぁ-ゖァ-ヺก-ะກ-ະက-အក-អ]]"
_INVISIBLE = r"\p{Default_Ignorable_Code_Point}+"
_CUTS = rf"(?P<blank>\s)|(?<={_SEPARATE}{{2}}){_SEPARATE}"


def units_pattern(first: str, further: str, letter: str, digit: str, unseen: str = "") -> str:
    """The pattern of words that are joined, or of one, from the sets of a word's first and further
    characters. They stand as NFKC reads them, or in another width; unseen: what may follow what joins them.
    """
    word = rf"{first}{further}{{0,{LONGEST_WORD - 1}}}"
    points = rf"(?<=(?<!{further}){letter})(?:[.．]{unseen}{letter}(?!{further})){{2,}}"
    group = rf"(?<={digit})[,，]{unseen}{digit}{{3}}(?!{further})"
    return rf"({word}(?:[-‐‑﹣－_＿]{unseen}{word}|{points}|{group})*)(?:['’][sS](?!{further}))?"


_UNITS = units_pattern(FIRST_OF_WORD, WORD_LETTER, LETTER_OF_WORD, DIGIT)
_ASCII_UNITS = units_pattern("[A-Za-z0-9]", "[A-Za-z0-9]", "[A-Za-z]", "[0-9]")


class Part(NamedTuple):
    """What a part of a text has, as often as it occurs. units: words, joined ones as one; letters: terms of
    letters that are read in pairs.
    """

    units: list[str]
    letters: list[str]


def cut(text: str) -> Iterator[Part]:
    """One part of a text after another."""
    for part, shared in _parts(text):
        composed = unicodedata.normalize("NFKC", part)
        if composed.isascii():
            yield Part(re.findall(_ASCII_UNITS, composed), [])
        else:
            yield Part(compiled(_UNITS).findall(composed), _letters(runs_of(composed), shared))


def runs_of(composed: str) -> str:
    """The runs of letters of a text that are read in pairs, in their simplified form, with blanks between
    them.
    """
    if not re.search(_MAYBE_PAIRED, composed):
        return ""
    return simplified(" ".join(compiled(RUN).findall(composed)))


def _letters(runs: str, shared: int) -> list[str]:
    """The terms of runs, of which so many letters are shared with the part before."""
    letters: list[str] = []
    for run in runs.split():
        letters += map(add, run, run[1:]) if len(run) > 1 else run
    letters += [MARK + single for single in compiled(SINGLE).findall(runs, shared)]
    return letters


def one_letter_words(text: str) -> Iterator[str]:
    """Of a query's text: pairs whose first letter is a word, as particles or hiragana after it tell."""
    for part, _ in _parts(text):
        runs = runs_of(unicodedata.normalize("NFKC", part))
        for word in compiled(_ONE_LETTER_WORD).finditer(runs):
            yield runs[word.start() : word.start() + 2]


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """The text in parts of bounded length, whose units together are those of the text; and how many letters a
    part shares with the one before.
    """
    visible = text if text.isascii() else compiled(_INVISIBLE).sub("", text)
    start, length, shared = 0, CHARACTERS_AT_ONCE, 0
    while len(visible) - start > length:
        cut = compiled(_CUTS).search(visible, start + length, start + 2 * length)
        stop = start + 2 * length if cut is None else cut.start()
        yield visible[start:stop], shared
        shared = int(cut is not None and cut["blank"] is None)
        start = stop - shared
    yield visible[start:], shared
