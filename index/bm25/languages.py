"""Languages whose words BM25 can reduce to their stems, and the scripts that they are written in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

# As Snowball calls its stemmers; "none" leaves every word as it is.
Bm25Language = Literal[
    "none",
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "english",
    "esperanto",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "sesotho",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
]
DEFAULT_LANGUAGE: Bm25Language = "english"

# The language of words in a script, by its Unicode name, that is not one of the collection's language.
SCRIPT_LANGUAGES: Mapping[str, Bm25Language] = MappingProxyType(
    {
        "Latin": "english",
        "Cyrillic": "russian",
        "Greek": "greek",
        "Arabic": "arabic",
        "Devanagari": "hindi",
        "Armenian": "armenian",
        "Tamil": "tamil",
        "Hebrew": "none",
    }
)
# Scripts of the languages that are not, or not only, written in Latin letters.
_OTHER_SCRIPTS: Mapping[Bm25Language, tuple[str, ...]] = MappingProxyType(
    {
        "arabic": ("Arabic",),
        "armenian": ("Armenian",),
        "greek": ("Greek",),
        "hindi": ("Devanagari",),
        "nepali": ("Devanagari",),
        "persian": ("Arabic",),
        "russian": ("Cyrillic",),
        "serbian": ("Cyrillic", "Latin"),
        "tamil": ("Tamil",),
        "yiddish": ("Hebrew",),
    }
)


def languages_by_script(language: Bm25Language) -> dict[str, Bm25Language]:
    """The language of words in each script, in a collection of this language."""
    if language == "none":
        return {}
    own: dict[str, Bm25Language] = dict.fromkeys(_OTHER_SCRIPTS.get(language, ("Latin",)), language)
    return {**SCRIPT_LANGUAGES, **own}
