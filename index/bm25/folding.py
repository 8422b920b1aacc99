"""Words without the marks that do not tell them apart, so that `cafe` finds `café`.

What is a mark and what a letter of its own is a matter of the language. In German or English é is an e with
a mark, in Turkish ş is another letter than s. Marks go from Latin and Greek letters but those that the
language of the collection counts as its own, from Hebrew and Arabic letters (points, harakat), and from
Cyrillic ones where they show the stress alone. Vowel signs of Indic scripts are letters, not marks.

Traditional, simplified and Japanese forms of a Han character count as one, so that 图书馆 finds 圖書館. Their
table, `han_forms.txt`, is made of OpenCC's by `tests/index/bm25/make_han_forms.py`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tercet.index.bm25.languages import Bm25Language
from tercet.index.bm25.patterns import compiled

# Letters that Unicode does not take apart.
_ALONE = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "þ": "th"}
)
_STRESS = "\u0300\u0301"
OWN_LETTERS: Mapping[Bm25Language, str] = MappingProxyType(
    {
        "basque": "ñ",
        "catalan": "ç",
        "czech": "áčďéěíňóřšťúůýž",
        "danish": "æøå",
        "esperanto": "ĉĝĥĵŝŭ",
        "estonian": "õäöüšž",
        "finnish": "åäö",
        "hungarian": "áéíóöőúüű",
        "irish": "áéíóú",
        "lithuanian": "ąčęėįšųūž",
        "norwegian": "æøå",
        "polish": "ąćęłńóśźż",
        "romanian": "ăâîșțşţ",
        "serbian": "čćđšž",
        "spanish": "ñ",
        "swedish": "åäö",
        "turkish": "çğıöşü",
    }
)
"""By language, the letters that are other ones than those they look like."""
STEMMED_LETTERS: Mapping[Bm25Language, str] = MappingProxyType(
    {
        "catalan": "àáèéíïòóúü",
        "dutch": "áäèéëíïóöúü",
        "french": "àâæçèéêëîïôœùû",
        "german": "äöüß",
        "italian": "àáèéìíòóùú",
        "portuguese": "àáâãçéêíóôõú",
        "russian": "ё",
        "spanish": "áéíóúü",
    }
)
"""By language, the letters whose marks its stemmer reads before they fold."""


_LETTERS = r"\P{M}\p{M}*"
# Letters that lose all marks, and those that lose a stress.
_LOSES = r"(?P<all>[\p{Latin}\p{Greek}\p{Hebrew}\p{Arabic}])|(?P<stress>\p{Cyrillic})"


def folded(word: str, kept: str) -> str:
    """A word in lower case without marks, but for the letters in `kept`."""
    if word.isascii():
        return word
    letters = compiled(_LETTERS).findall(unicodedata.normalize("NFC", word))
    plain = [letter if letter in kept else _plain(letter) for letter in letters]
    return unicodedata.normalize("NFC", "".join(plain))


def _plain(letter: str) -> str:
    """A letter, with the marks that follow it, without those that fold."""
    decomposed = unicodedata.normalize("NFD", letter)
    base, marks = decomposed[0], decomposed[1:]
    loses = compiled(_LOSES).match(base)
    if loses is None:
        return letter
    if loses["all"]:
        return base.translate(_ALONE)
    return base + "".join(mark for mark in marks if mark not in _STRESS)


def simplified(text: str) -> str:
    """A text with the simplified form of each Han character that has one."""
    return text if text.isascii() else text.translate(_simplified_forms())


@cache
def _simplified_forms() -> dict[int, str]:
    lines = Path(__file__).with_name("han_forms.txt").read_text(encoding="utf-8").split()
    return {ord(form): line[0] for line in lines for form in line[1:]}
