"""Documents from files, and pairs made of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tercet.training.data.documents import (
    LEAST_REST_WORDS,
    LONGEST_SPAN,
    SHORTEST_SPAN,
    TrainingText,
    read_texts,
    repeated_pairs,
    span_pairs,
    title_pairs,
)
from tercet.training.errors import TrainingDataError

DOCUMENTS = [
    {"_id": "1", "title": "Tea", "text": "Tea is brewed.", "lang": "en"},
    {"_id": "2", "text": "김치는 배추를 절인다.", "lang": "ko"},
    {"_id": "3", "title": None, "text": "Bees dance.", "lang": "en"},
]
TEXTS = [
    TrainingText("Tea", "Tea is brewed."),
    TrainingText("", "김치는 배추를 절인다."),
    TrainingText("", "Bees dance."),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    return path


def numbered(count: int, words: int) -> list[TrainingText]:
    return [TrainingText("", " ".join(f"d{d}w{w}" for w in range(words))) for d in range(count)]


def test_json_lines_plain_and_packed(corpus: Path, tmp_path: Path) -> None:
    assert list(read_texts(corpus)) == TEXTS
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    assert list(read_texts(tmp_path / "packed.jsonl.gz")) == TEXTS


def test_one_language_and_a_span_of_lines(corpus: Path) -> None:
    assert list(read_texts(corpus, language="en")) == [TEXTS[0], TEXTS[2]]
    assert list(read_texts(corpus, (2, 3))) == TEXTS[1:]
    assert list(read_texts(corpus, (2, 3), "en")) == [TEXTS[2]]


def test_the_language_may_be_in_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    documents = [
        {"text": "a", "metadata": {"lang": "en"}},
        {"text": "b", "metadata": {"lang": "ko"}},
        {"text": "c", "lang": "en", "metadata": {"lang": "ko"}},
        {"text": "d", "metadata": None},
        {"text": "e"},
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    assert [document.text for document in read_texts(path, language="en")] == ["a", "c"]
    assert [document.text for document in read_texts(path, language="ko")] == ["b"]


def test_the_demo_corpus_has_its_languages(repository: Path) -> None:
    corpus = repository / "examples" / "demo" / "corpus.jsonl"
    every = list(read_texts(corpus))
    english, korean = (list(read_texts(corpus, language=language)) for language in ("en", "ko"))
    assert 0 < len(korean) < len(english) < len(every)


@pytest.mark.parametrize("name", ["plain.txt", "plain.txt.gz"])
def test_plain_text_is_a_document_a_line(tmp_path: Path, name: str) -> None:
    content = b'First one.\n\n  {"text": "as it is"}  \n'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    expected = [TrainingText("", "First one."), TrainingText("", '{"text": "as it is"}')]
    assert list(read_texts(tmp_path / name)) == expected


def test_positives_of_pairs_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "q", "pos": ["a", "b"], "neg": ["c"]}\n')
    assert [document.text for document in read_texts(path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("3", "expected an object"),
        ('{"text": " "}', '"text" must be a text that is not empty'),
        ('{"text": 3}', '"text" must be a text'),
        ('{"text": "a", "title": 3}', '"title" must be a text'),
        ('{"pos": ["a", ""]}', '"pos" must be a list of texts'),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "a"}\n' + line + "\n")
    with pytest.raises(TrainingDataError, match=complaint) as raised:
        list(read_texts(path))
    assert f"{path}:2" in str(raised.value)


def test_titles_ask_for_their_texts() -> None:
    (pair,) = title_pairs(iter(TEXTS))
    assert (pair.query, pair.positives, pair.negatives) == ("Tea", ("Tea is brewed.",), ())


def test_a_text_may_be_its_own_positive() -> None:
    texts = [TrainingText("Bees", "Bees dance."), TrainingText("", "Bees dance."), TrainingText("", "Ants.")]
    assert [(pair.query, *pair.positives) for pair in repeated_pairs(iter(texts))] == [
        ("Bees dance.", "Bees dance."),
        ("Bees dance.", "Bees dance."),
        ("Ants.", "Ants."),
    ]


def test_a_span_asks_for_the_rest_of_its_text() -> None:
    texts = numbered(400, 30)
    pairs = list(span_pairs(iter(texts), seed=1))
    kept = 0
    for document, pair in zip(texts, pairs, strict=True):
        assert f" {pair.query} " in f" {document.text} "
        words = pair.query.split()
        assert SHORTEST_SPAN <= len(words) <= 30 - LEAST_REST_WORDS
        (rest,) = pair.positives
        if rest == document.text:
            kept += 1
        else:
            first = document.text.split().index(words[0])
            assert rest.split() == document.text.split()[:first] + document.text.split()[first + len(words) :]
    assert 20 <= kept <= 60  # a tenth, give or take three standard deviations


def test_spans_depend_on_the_seed_alone() -> None:
    texts = numbered(20, 30)
    assert list(span_pairs(iter(texts), 1)) == list(span_pairs(iter(texts), 1))
    assert list(span_pairs(iter(texts), 1)) != list(span_pairs(iter(texts), 2))


def test_spans_have_a_limit_and_short_texts_make_none() -> None:
    shortest = SHORTEST_SPAN + LEAST_REST_WORDS
    assert list(span_pairs(iter(numbered(5, shortest - 1)), 1)) == []
    assert all(
        len(pair.query.split()) == SHORTEST_SPAN for pair in span_pairs(iter(numbered(5, shortest)), 1)
    )
    lengths = {len(pair.query.split()) for pair in span_pairs(iter(numbered(600, 200)), 1)}
    assert lengths == set(range(SHORTEST_SPAN, LONGEST_SPAN + 1))
