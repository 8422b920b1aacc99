"""Words of a query in texts: by stems, without marks, in pairs, where they stand in the text as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.matches import QueryWords
from tercet.index.bm25.query import words_of


def marked(query: str, text: str, language: str = "english") -> str:
    """The text with brackets around what is found."""
    shown, place = "", 0
    for start, end in QueryWords(query, language).spans(text):  # type: ignore[arg-type]
        if start < place:  # pairs overlap
            shown = shown[:-1] + text[place:end] + "]"
        else:
            shown += text[place:start] + "[" + text[start:end] + "]"
        place = end
    return shown + text[place:]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("running shoe", "He runs in Shoes; runner, RUN!", "He [runs] in [Shoes]; runner, [RUN]!"),
        ("cafe", "Das Café, CAFE\u0301, caf\u00adés.", "Das [Café], [CAFE\u0301], [caf\u00adés]."),
        ("café", "a cafe", "a [cafe]"),
        ("tom", "Tom's s", "[Tom]'s s"),
        ("user", "call getUserById(id)", "call [getUserById](id)"),
        ("ﬁnd", "to find", "to [find]"),
        ("서울 식당", "서울에서 좋은 식당", "[서울]에서 좋은 [식당]"),
        ("緑茶", "日本の緑茶は緑、茶", "日本の[緑茶]は緑、茶"),
        ("绿茶的", "绿茶的茶", "[绿茶的]茶"),
        ("緑茶", "绿茶和綠茶", "[绿茶]和[綠茶]"),
        ("茶", "a 茶 and 茶道", "a [茶] and [茶]道"),
        ("책을", "책은 책 책임", "[책]은 [책] 책임"),
        ("ガス", "ｶﾞｽとガス", "[ｶﾞｽ]と[ガス]"),
        ("緑", "緑ﾞ กﾞ緑", "[緑ﾞ] กﾞ[緑]"),  # a mark of voicing where there is no voiced form
        ("a", "\u0301aÉ1", "\u0301aÉ1"),  # single letters inside words are none
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8은", "[\u1112\u1161\u11ab\u1100\u116e\u11a8]은"),
        ("email", "an E-mail, e-\u00admail.", "an [E-mail], [e-\u00admail]."),
        ("abc123", "ABC-123 or abc-x", "[ABC-123] or [abc]-x"),
        ("1000000", "of 1,000,000 or 1，000，000", "of [1,000,000] or [1，000，000]"),
        ("USA", "the U.S.A.'s", "the [U.S.A].'s"),
        ("tea", "", ""),
        ("?!", "tea?!", "tea?!"),
    ],
)
def test_words_are_found_where_they_stand(query: str, text: str, expected: str) -> None:
    assert marked(query, text) == expected


def test_the_language_decides_what_is_the_same() -> None:
    assert marked("Häuser", "ein Haus, Hausen", "german") == "ein [Haus], [Hausen]"
    assert marked("Häuser", "ein Haus", "english") == "ein Haus"
    assert marked("sis", "şiş sis", "turkish") == "şiş [sis]"


@given(
    st.text("abéÉ'’ \u00ad\u0301茶绿緑サｻﾞ한국은ก.,－-1", max_size=40),
    st.text("abé茶緑한국을 -1", max_size=12),
)
def test_what_is_found_is_what_bm25_counts(text: str, query: str) -> None:
    """A text has a span if it has a term of the query, and no span is without one."""
    analyzer = Analyzer("english")
    terms = set(words_of(query, "english").terms)
    spans = QueryWords(query, "english").spans(text)
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert terms & analyzer.counts(text[start:end]).keys()
    assert spans == sorted(spans)
    if not spans and terms & analyzer.counts(text).keys():
        raise AssertionError(terms & analyzer.counts(text).keys())
