"""The bundled corpus: what `tercet demo` promises a newcomer."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
LANGUAGES = {"en", "ko", "ja", "zh", "de"}

# What a text in each language must contain at least once.
SCRIPTS = {
    "en": re.compile(r"\b(the|a|an|and|of|in|is)\b", re.IGNORECASE),
    "de": re.compile(r"\b(der|die|das|den|dem|und|ist|mit|ein|eine|in)\b", re.IGNORECASE),
    "ko": re.compile(r"[가-힣]{2}"),
    "ja": re.compile(r"[ぁ-ん]"),
    "zh": re.compile(r"[一-鿿]{4}"),
}


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    return read_lines("corpus.jsonl")


def test_it_has_enough_documents_in_every_language(corpus: list[dict[str, Any]]) -> None:
    languages = Counter(document["metadata"]["lang"] for document in corpus)
    assert len(corpus) >= 220
    assert set(languages) == LANGUAGES
    assert languages["en"] >= 160
    assert min(languages.values()) >= 15


def test_every_document_has_the_declared_shape(corpus: list[dict[str, Any]]) -> None:
    for document in corpus:
        assert set(document) == {"id", "title", "text", "metadata"}, document["id"]
        assert set(document["metadata"]) == {"lang", "topic"}, document["id"]
        assert re.fullmatch(r"[a-z]{2}-[a-z0-9]+(-[a-z0-9]+)*", document["id"]), document["id"]
        assert document["id"].startswith(document["metadata"]["lang"] + "-"), document["id"]
        assert document["title"].strip() == document["title"] != ""


def test_ids_and_texts_are_unique(corpus: list[dict[str, Any]]) -> None:
    for key in ("id", "text"):
        repeated = [value for value, count in Counter(d[key] for d in corpus).items() if count > 1]
        assert not repeated, repeated


def test_texts_are_two_to_four_sentences_in_their_language(corpus: list[dict[str, Any]]) -> None:
    for document in corpus:
        text, language = document["text"], document["metadata"]["lang"]
        # A full stop inside a date, an abbreviation or a number ends no sentence.
        sentences = re.findall(r"[^.。?!]+(?:[.](?=\s|$)|[。?!])", text)
        assert 2 <= len(sentences) <= 6, (document["id"], len(sentences))
        assert 40 <= len(text) <= 600, document["id"]
        assert SCRIPTS[language].search(text), document["id"]
        assert text == text.strip(), document["id"]
        assert "  " not in text, document["id"]


def test_subjects_vary_and_have_near_neighbours(corpus: list[dict[str, Any]]) -> None:
    topics = Counter(document["metadata"]["topic"] for document in corpus)
    assert len(topics) >= 14
    assert min(topics.values()) >= 2, "a lone topic leaves nothing to rank against"
    assert max(topics.values()) <= len(corpus) // 6


def test_the_first_queries_are_english_questions() -> None:
    queries = read_lines("queries.jsonl")
    assert all(set(query) == {"query", "language"} for query in queries)
    assert {query["language"] for query in queries} == LANGUAGES
    for query in queries[:3]:
        assert query["language"] == "en"
        assert query["query"].endswith("?")
