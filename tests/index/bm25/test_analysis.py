"""Terms of texts in many scripts, written down by hand."""

from __future__ import annotations

from typing import get_args

import pytest
from Stemmer import Stemmer, algorithms

from index.bm25.analysis import LONGEST_WORD, Analyzer
from index.bm25.languages import Bm25Language, languages_by_script


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("Running dogs RUN.", ["run", "dog", "run"]),
        ("The university's dogs’ tails", ["the", "universiti", "dog", "tail"]),
        ("state-of-the-art, 3.14", ["state", "of", "the", "art", "3", "14"]),
        ("don't l'homme", ["don", "t", "l", "homm"]),
        ("snake_case", ["snake", "case"]),
        ("Ｆｕｌｌ ﬁne e\u0301te\u0301", ["full", "fine", "été"]),  # one form for each letter
        ("город города ГОРОДУ", ["город", "город", "город"]),
        ("Σίσυφος", ["σισυφ"]),
        ("किताबें", ["किताब"]),  # vowel signs are no ends of words
        ("검색 엔진은 산 A", ["a", "검색", "엔진", "진은", "산"]),
        ("東京タワー。山", ["東京", "京タ", "タワ", "ワー", "山"]),
        ("ｶﾀ", ["カタ"]),
        ("กขค", ["กข", "ขค"]),
        ("\ud800 lone", ["lone"]),
    ],
)
def test_words_give_their_stems_and_unspaced_scripts_pairs(text: str, terms: list[str]) -> None:
    assert Analyzer("english").terms(text) == terms


def test_the_language_is_that_of_words_in_its_own_script() -> None:
    text = "Häuser Bücher города"
    assert Analyzer("german").terms(text) == ["haus", "buch", "город"]
    assert Analyzer("russian").terms("houses города") == ["hous", "город"]
    assert Analyzer("none").terms("houses города 검색") == ["houses", "города", "검색"]


def test_serbian_is_written_in_two_scripts() -> None:
    assert languages_by_script("serbian")["Latin"] == languages_by_script("serbian")["Cyrillic"] == "serbian"
    latin, cyrillic = Analyzer("serbian").terms("knjigama књигама")
    assert latin == cyrillic


def test_turkish_has_two_letters_i() -> None:
    assert Analyzer("turkish").pieces("ISPARTA İZMİR") == ["ısparta", "izmir"]


def test_every_language_is_one_that_snowball_knows() -> None:
    names = set(get_args(Bm25Language)) - {"none"}
    assert names == set(algorithms()) - {"porter", "dutch_porter"}  # older ones, kept for old indexes
    assert set(languages_by_script("english").values()) <= names | {"none"}


def test_a_run_without_end_is_cut() -> None:
    assert [len(piece) for piece in Analyzer("none").pieces("a" * (2 * LONGEST_WORD + 5))] == [128, 128, 5]


def test_stems_are_those_that_collections_on_disk_were_written_with() -> None:
    """A Snowball that changes these changes what collections find: then raise the format version."""
    words = {
        "english": ("organization", "organiz"),
        "german": ("aufeinanderschlügen", "aufeinanderschlug"),
        "french": ("continuellement", "continuel"),
        "spanish": ("cheques", "chequ"),
        "russian": ("вавиловка", "вавиловк"),
        "greek": ("στρατιωτικός", "στρατιωτικ"),
        "arabic": ("الكتاب", "كتاب"),
        "hindi": ("लड़कियाँ", "लड़क"),
        "turkish": ("kitaplarımızdan", "kitap"),
    }
    assert {
        language: (word, Stemmer(language).stemWord(word)) for language, (word, _) in words.items()
    } == words
