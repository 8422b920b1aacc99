"""What counts as written in capitals, and that small letters keep every place in the text."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.models.tokens.capitals import in_small_letters


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("LIBRARY AUTOMATION IN INDIA, 1978.", "library automation in india, 1978."),
        ("ΗΛΕΚΤΡΙΚΗ ΕΓΚΑΤΑΣΤΑΣΗ", "ηλεκτρικη εγκατασταση"),
        ("ПОСТАНОВЛЕНИЕ № 12 ОТ 3 МАЯ", "постановление № 12 от 3 мая"),
        ("İSTANBUL BÜYÜKŞEHİR BELEDİYESİ", "istanbul büyükşehir belediyesi"),
        ("RESEARCH LIBRARIES (India)", "research libraries (india)"),
    ],
)
def test_texts_in_capitals(text: str, read: str) -> None:
    assert in_small_letters(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NATO SUMMIT IN 1997",  # 12 capitals
        "THE REPORT OF THE Board of Directors",
        "KOSPI KOSDAQ ETF 지수가 오늘 함께 올랐습니다",
        "삼성전자 SK하이닉스 LG에너지솔루션 ABCDEFGHIJK 주가 전망과 배당",
        "12345 67890 — 100%",
    ],
)
def test_texts_that_stay(text: str) -> None:
    assert in_small_letters(text) == text


def test_the_beginning_tells_how_a_long_text_is_written() -> None:
    assert in_small_letters("OLD RECORDS " * 1000 + "Ends So") == "old records " * 1000 + "ends so"
    assert in_small_letters("plain words " * 100 + "OLD RECORDS " * 1000)[-12:] == "OLD RECORDS "


def test_every_character_keeps_its_place() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert len(in_small_letters("A" * 1000 + every)) == 1000 + len(every)


@given(st.text())
def test_small_letters_stay_small(text: str) -> None:
    once = in_small_letters(text)
    assert len(once) == len(text)
    assert in_small_letters(once) == once
