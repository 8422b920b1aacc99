"""Terms of texts in many scripts, written down by hand."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from Stemmer import Stemmer, algorithms

from tercet.index.bm25 import cutting
from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.cutting import CHARACTERS_AT_ONCE, LONGEST_WORD, cut
from tercet.index.bm25.languages import Bm25Language, languages_by_script

# Letters, marks and signs of many scripts: of words and of pairs, some that NFKC joins or takes apart.
SIGNS = "aZ1'’s.-, \u3000\u0301\u00ad\u200d\ufe0fΣσİIﷺé한글가ᄀ\u1161ᆨ日本々ーヿか\u3099カｶﾞกำั០ကံ㌀🍵"


M5799DWF = ["~5799", "~dwf", "~m5799", "~5799dwf"]


def terms_of(language: Bm25Language, text: str) -> list[str]:
    analyzer, terms = Analyzer(language), list[str]()
    for part in cut(text):
        terms.extend(term for unit in part.units for term in analyzer.terms(unit))
        terms.extend(part.letters)
    return terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("Running dogs RUN.", ["run", "dog", "run"]),
        ("The university's dogs’ tails", ["the", "universiti", "dog", "tail"]),
        ("state-of-the-art, 3.14", ["state", "of", "the", "art", "~stateoftheart", "3", "14"]),
        ("don't l'homme", ["don", "t", "l", "homm"]),
        ("snake_case", ["snake", "case", "~snakecas"]),
        ("Ｆｕｌｌ ﬁne e\u0301te\u0301", ["full", "fine", "ete"]),  # one form for each letter
        ("город города ГОРОДУ", ["город", "город", "город"]),
        ("Σίσυφος", ["σισυφ"]),
        ("किताबें", ["किताब"]),  # vowel signs are no ends of words
        ("검색 엔진은 산 A", ["a", "검색", "엔진", "진은", "산"]),
        ("東京タワー。山", ["东京", "京タ", "タワ", "ワー", "山", "~东", "~京"]),
        ("ｶﾀ", ["カタ"]),
        ("กขค", ["กข", "ขค"]),
        ("\ud800 lone", ["lone"]),
        ("I ❤️ tea \u0301 ั", ["i", "tea"]),  # a mark is no word of its own
        ("a\u0301\u0301 \u0301b", ["a", "b"]),
        (
            "résumés naïve İstanbul tiếng Việt",
            ["resum", "naiv", "istanbul", "tiếng", "tieng", "việt", "viet"],
        ),
        ("שָׁלוֹם го\u0301род ёлка", ["שלום", "город", "елк"]),
        ("getUserById", ["getuserbyid", "~get", "~user", "~by", "~id"]),
        (
            "XMLHttpRequest HTTPServer",
            ["xmlhttprequest", "~xml", "~http", "~request", "httpserver", "~http", "~server"],
        ),
        ("getURLs APIs PDFs", ["geturl", "~get", "~url", "api", "pdfs"]),
        ("iPhone isValidX ÜberFluss", ["iphon", "isvalidx", "~is", "~valid", "uberfluss", "~uber", "~fluss"]),
        ("ABC123 WF-M5799DWF", ["abc123", "~abc", "~123", "wf", "m5799dwf", "~wfm5799dwf", *M5799DWF]),
        (
            "E-mail U.S.A. 1,000,000",
            ["e", "mail", "~email", "u", "s", "a", "~usa", "1", "000", "000", "~1000000"],
        ),
        ("C++ e.g. a1b2c3d4 LIBRARY'S", ["c", "e", "g", "a1b2c3d4", "librari"]),
        ("책을 책임 책", ["책을", "책임", "책", "~책"]),
        ("茶と緑茶、茶", ["茶と", "と绿", "绿茶", "茶", "~茶", "~绿", "~茶"]),
        ("图书馆 圖書館", ["图书", "书馆", "图书", "书馆", *("~" + letter for letter in "图书馆图书馆")]),
    ],
)
def test_words_give_their_stems_and_unspaced_scripts_pairs(text: str, terms: list[str]) -> None:
    assert terms_of("english", text) == terms
    assert Analyzer("english").counts(text) == Counter(terms)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("葛\U000e0100城市", "葛城市"),
        ("co\u00adopera\u00adtion", "cooperation"),
        ("tea\u200bpot", "teapot"),
        ("می\u200cخواهم", "میخواهم"),
        ("क्\u200dषि", "क्षि"),
        ("e\u034f\u0301te", "éte"),
    ],
)
def test_what_is_not_seen_does_not_count(written: str, plain: str) -> None:
    assert terms_of("none", written) == terms_of("none", plain) != []


def test_the_language_is_that_of_words_in_its_own_script() -> None:
    text = "Häuser Bücher города"
    assert terms_of("german", text) == ["haus", "buch", "город"]
    assert terms_of("russian", "houses города") == ["hous", "город"]
    assert terms_of("none", "houses города 검색") == ["houses", "города", "검색"]


def test_serbian_is_written_in_two_scripts() -> None:
    assert languages_by_script("serbian")["Latin"] == languages_by_script("serbian")["Cyrillic"] == "serbian"
    latin, cyrillic = terms_of("serbian", "knjigama књигама")
    assert latin == cyrillic


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("turkish", "şeker ışık"),
        ("swedish", "kött lås"),
        ("spanish", "año"),
        ("polish", "łaska"),
        ("none", "café שָׁלוֹם"),  # every word as it is
    ],
)
def test_a_letter_of_its_own_keeps_its_mark(language: Bm25Language, words: str) -> None:
    plain = "".join(c for c in unicodedata.normalize("NFD", words) if not unicodedata.combining(c))
    plain = plain.replace("ı", "i").replace("ł", "l")
    for written, bare in zip(terms_of(language, words), terms_of(language, plain), strict=True):
        assert written != bare


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("english", "Café RÉSUMÉ straße", "cafe resume strasse"),
        ("german", "Straße Häuser café", "Strasse Hauser cafe"),
        ("french", "garçons élève", "garcons eleve"),
        ("turkish", "İzmir kâğıt", "izmir kağıt"),
        ("swedish", "idé", "ide"),
        ("greek", "καφές", "καφες"),
        ("russian", "соба\u0301ка", "собака"),
        ("english", "مُحَمَّد", "محمد"),
    ],
)
def test_marks_that_tell_nothing_apart_do_not_count(language: Bm25Language, one: str, other: str) -> None:
    assert terms_of(language, one) == terms_of(language, other)


def test_vietnamese_is_found_with_its_marks_and_better_than_without() -> None:
    analyzer = Analyzer("english")
    document = analyzer.counts("tiếng Việt")
    assert sorted(document) == ["tieng", "tiếng", "viet", "việt"]
    assert (document & analyzer.counts("tieng viet")).total() == 2
    assert (document & analyzer.counts("tiếng việt")).total() == 4
    assert (document & analyzer.counts("tiệng viết")).total() == 2  # other words, alike without marks


def test_turkish_has_two_letters_i() -> None:
    assert terms_of("turkish", "ISPARTA İZMİR") == ["ıspar", "izmir"]


def test_every_language_is_one_that_snowball_knows() -> None:
    names = set(get_args(Bm25Language)) - {"none"}
    assert names == set(algorithms()) - {"porter", "dutch_porter"}  # older ones, kept for old indexes
    assert set(languages_by_script("english").values()) <= names | {"none"}


def test_the_page_names_every_language(repository: Path) -> None:
    page = (repository / "docs" / "http-ranking.md").read_text(encoding="utf-8")
    listed = page.split("one of Snowball's languages, not its code: ")[1].split(" leaves")[0]
    assert regex.findall(r"`(\w+)`", listed) == [*get_args(Bm25Language)[1:], "none"]


def test_a_run_without_end_is_cut() -> None:
    assert [len(term) for term in terms_of("none", "a" * (2 * LONGEST_WORD + 5))] == [128, 128, 5]


@given(st.lists(st.text(SIGNS, max_size=6), max_size=30), st.sampled_from(get_args(Bm25Language)))
def test_parts_have_the_pieces_of_the_whole(words: list[str], language: Bm25Language) -> None:
    text = " ".join(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "CHARACTERS_AT_ONCE", 10**6)
        whole = Analyzer(language).counts(text)
        patch.setattr(cutting, "CHARACTERS_AT_ONCE", 8)  # a blank or a cut comes within 8 more
        assert Analyzer(language).counts(text) == whole


@given(st.text("日本カキกขກຂကခ", max_size=60))
def test_parts_of_a_text_without_blanks_share_one_letter(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "CHARACTERS_AT_ONCE", 10**6)
        whole = Analyzer("none").counts(text)
        patch.setattr(cutting, "CHARACTERS_AT_ONCE", 3)
        assert Analyzer("none").counts(text) == whole


@pytest.mark.slow
@pytest.mark.parametrize("text", ["가나" * 200_000, "tea " * 200_000, "a" * 500_000, "ﷺ" * 200_000])
def test_no_part_is_long(text: str) -> None:
    longest = max(len(part.units) + len(part.letters) for part in cut(text))
    assert longest <= 10 * CHARACTERS_AT_ONCE  # of ﷺ, which NFKC makes four words


@pytest.mark.slow
def test_where_a_text_is_cut_nothing_joins() -> None:
    """White space and the letters at which a part may begin: NFKC leaves them apart from what is before."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    joining = {second for letter in every for second in unicodedata.normalize("NFD", letter)[1:]}
    joining |= {chr(code) for code in range(0x1161, 0x1200)}  # vowels and finals of Hangul
    separate = regex.compile(cutting._SEPARATE, regex.V1)
    paired = regex.compile(cutting.PAIRED_LETTER, regex.V1)
    for letter in every:
        if letter.isspace() or separate.match(letter):
            form = unicodedata.normalize("NFKC", letter).lower()
            assert form[0] not in joining
            assert unicodedata.combining(form[0]) == 0
            assert letter.isspace() or (len(form) == 1 and paired.match(form))


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
