"""Highlights of hits: pieces and words together, and how much of a long text is read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.candidates import Document, Hit, Scores, Window
from tercet.index.collection import Collection
from tercet.models.encoder import encode
from tercet.service.search import highlights
from tercet.service.search.highlights import HitHighlights, highlights_of


def hit(text: str, title: str | None = None, window: Window | None = None) -> Hit:
    return Hit(Document("a", text, title), 1.0, Scores(1, 1, 1), window)


@pytest.fixture
def found(built_data: Any, tiny: Any) -> Any:
    """The highlights of hits of a query, in the collection `demo`, which has no BM25."""
    settings = Collection.open(built_data / "collections", "demo").settings

    def highlighted(query: str, *hits: Hit, words: bool = True) -> list[HitHighlights]:
        representations = encode(tiny, [query], "query")
        text = query if words else None
        return highlights_of(settings, None, tiny.tokenizer, text, representations, hits)

    return highlighted


def parts(text: str, spans: Any) -> list[str]:
    return [text[each["start"] : each["end"]] for each in spans]


def test_text_and_title_have_theirs(found: Any) -> None:
    text = "Tea is brewed. 茶 🍵 The teas"
    (one,) = found("hot tea", hit(text, "A tea"))
    assert parts(text, one.text) == ["Tea", "teas"]  # whole characters before the last: offsets are theirs
    assert one.title == [{"start": 2, "end": 5}]
    (untitled,) = found("tea", hit("x"))
    assert (untitled.text, untitled.title) == ([], [])


def test_without_a_text_the_lexical_weights_tell(found: Any) -> None:
    text = "hot water, hotter tea"
    (one,) = found("hot tea", hit(text), words=False)
    assert parts(text, one.text) == ["hot", "tea"]


def test_what_says_little_of_the_query_is_left_out(built_data: Any, tiny: Any) -> None:
    """Of "hot tea water" the second word has less than 15 percent of the first one's weight times idf."""
    collection = Collection.open(built_data / "collections", "demo")
    query = encode(tiny, ["hot tea water"], "query")
    assert query.sparse is not None
    token_ids, weights = query.sparse.row(0)
    tea = tiny.tokenizer.spans("tea").token_ids[0]
    weights = np.where(token_ids == tea, 0.1 * weights.max(), weights.max()).astype(np.float32)
    query = replace(query, sparse=replace(query.sparse, weights=weights))
    text = "hot teas in hot water, and tea"
    asked = (collection.settings, None, tiny.tokenizer, "hot tea water", query, [hit(text)])
    (one,) = highlights_of(*asked)
    assert parts(text, one.text) == ["hot", "hot", "water"]


def test_only_a_part_of_a_long_text_is_read(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlights, "MOST_CHARACTERS", 300)
    text = "tea water " * 60
    (one,) = found("tea", hit(text))
    assert [each["start"] for each in one.text] == list(range(0, 300, 10))
    (one,) = found("tea", hit(text, window=Window(2, 400, 560)))
    assert [each["start"] for each in one.text] == list(range(400, 600, 10))
    monkeypatch.setattr(highlights, "MOST_OF_ALL", 400)
    two = found("tea", hit(text), hit(text))
    assert [len(each.text) for each in two] == [20, 20]
    cut = "a " * 96 + " " + "teapots " * 40
    assert cut[:300].endswith(" tea")
    (one,) = found("tea", hit(cut))
    assert one.text == []  # of no word is a part read


def test_there_are_at_most_so_many(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlights, "MOST_HIGHLIGHTS", 7)
    (one,) = found("tea", hit("tea water " * 60))
    assert [each["start"] for each in one.text] == list(range(0, 70, 10))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12))
def test_spans_are_merged_in_order_and_apart(given_spans: list[tuple[int, int]]) -> None:
    spans = np.array([(start, start + length) for start, length in given_spans], np.int64).reshape(-1, 2)
    merged = highlights._merged(spans).tolist()
    covered = {place for start, end in spans.tolist() for place in range(start, end)}
    assert {place for start, end in merged for place in range(start, end)} == covered
    assert all(start < end for start, end in merged)
    assert all(before[1] < after[0] for before, after in pairwise(merged))
