"""Words as people write them: each spelling finds the others, and itself first."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tercet.index.bm25.alternatives import SHARE
from tercet.index.bm25.query import WordCounts, words_of
from tercet.index.candidates import CandidateLimits, Weights

ONLY_BM25 = Weights(0, 0, 0, 1)
FILLING = "of the other things that a text of some length has besides"
SPELLINGS = (
    ("ABC123", "ABC-123", "abc 123"),
    ("WF-M5799DWF", "m5799"),
    ("1,000,000", "1000000"),
    ("e-mail", "email"),
    ("U.S.A.", "USA"),
    ("getUserById", "get user by id", "get_user_by_id"),
    ("C++",),
    ("책", "책을", "책에서는"),
    ("집", "집으로"),
    ("돈", "돈이"),
    ("茶", "茶道", "绿茶"),
    ("猫", "猫が"),
    ("图书馆", "圖書館", "図書館"),
    ("가방", "\u1100\u1161\u1107\u1161\u11bc"),
    ("ガス", "ｶﾞｽ"),
)


def found(collection_of: Any, query: Any, texts: dict[str, str], text: str) -> list[str]:
    snapshot = collection_of(texts, bm25_language="english").snapshot()
    limits = CandidateLimits(0, 0, len(texts))
    hits = snapshot.search(query, text=text, weights=ONLY_BM25, candidates=limits, top_k=100).hits
    return [hit.document.id for hit in hits if hit.score > 0]


def test_every_spelling_finds_the_others_and_itself_first(collection_of: Any, random_texts: Any) -> None:
    texts = {spelling: f"{spelling} {FILLING}" for spellings in SPELLINGS for spelling in spellings}
    query = random_texts(1, 9)
    snapshot = collection_of({**texts, "none": FILLING}, bm25_language="english").snapshot()
    limits = CandidateLimits(0, 0, 100)
    for spellings in SPELLINGS:
        for asked in spellings:
            hits = snapshot.search(query, text=asked, weights=ONLY_BM25, candidates=limits, top_k=100).hits
            scores = {hit.document.id: hit.score for hit in hits}
            assert scores.keys() >= {other for other in spellings if one_letter(asked, other)}, asked
            assert scores[asked] == max(scores.values()), asked


def one_letter(asked: str, other: str) -> bool:
    """Whether a query finds a text: a letter finds a run that it is in, and not the other way round."""
    return not (asked in ("茶道", "绿茶") and other != asked)


def test_each_of_30_part_numbers_is_first(collection_of: Any, random_texts: Any) -> None:
    numbers = [
        f"{series}-{number}{end}"
        for series, number, end in product(("WF", "M"), range(571, 576), ("DW", "D", ""))
    ]
    texts = {number: f"Ink for the printer {number}, black, of {FILLING}" for number in numbers}
    snapshot = collection_of(texts, bm25_language="english").snapshot()
    limits = CandidateLimits(0, 0, 30)
    for number in numbers:
        (hit,) = snapshot.search(
            random_texts(1, 9), text=f"ink for {number}", weights=ONLY_BM25, candidates=limits, top_k=1
        ).hits
        assert hit.document.id == number


def test_alternatives_have_a_share_of_the_words_weight() -> None:
    words = words_of("ABC-123", "english")
    assert words.terms == ("123", "abc", "abc123", "~123", "~abc")
    weighed = words.weighed(WordCounts(1000, 9000, np.array([500, 500, 1, 1, 1])))
    exact = np.log(2)
    assert weighed.idf == pytest.approx([exact, exact, exact / 2, exact / 4, exact / 4])
    assert weighed.idf[2:].sum() == pytest.approx(SHARE * weighed.idf[:2].sum())


def test_other_spellings_do_not_make_a_document_longer(collection_of: Any, random_texts: Any) -> None:
    texts = {"joined": "tea ABC123 getUserById", "plain": "tea abc one"}
    snapshot = collection_of(texts, bm25_language="english").snapshot()
    hits = snapshot.search(random_texts(1, 9), text="tea", weights=ONLY_BM25).hits
    assert hits[0].score == hits[1].score
