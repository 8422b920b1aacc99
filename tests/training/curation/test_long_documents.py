"""Which documents are long, and what of them a language model is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tercet.models.checkpoint import ENGLISH, resolve_checkpoint
from tercet.models.loader import load_tokenizer
from tercet.models.tokenizer import Tokenizer
from tercet.training.curation.long_documents import DocumentChoice, LongDocument, whole_parts
from tercet.training.errors import TrainingDataError

PARAGRAPH = "Bees dance to tell the others where flowers are and how far away they lie."


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(resolve_checkpoint(ENGLISH))


def chosen(path: Path, tokenizer: Tokenizer, least: int, excerpt: int) -> list[LongDocument]:
    return list(DocumentChoice(path, tokenizer, least, excerpt).documents())


def test_documents_of_enough_tokens(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "corpus.jsonl"
    texts = ["short", "tea " * 9, "tea " * 10]
    path.write_text("\n".join(json.dumps({"text": text, "title": "T"}) for text in texts))
    [document] = chosen(path, tokenizer, 11, 100)
    assert document.where == f"{path}:3"
    assert document.text == document.excerpt == "T\n" + "tea " * 9 + "tea"
    assert document.excerpt_tokens == 11


def test_plain_text_has_a_document_a_line(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("short\n" + "tea " * 20 + "\n")
    assert [document.where for document in chosen(path, tokenizer, 20, 100)] == [f"{path}:2"]


def test_an_excerpt_has_whole_paragraphs_and_is_the_same_each_time(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    path = tmp_path / "corpus.jsonl"
    texts = ["\n".join(f"{PARAGRAPH} {number}-{line}." for line in range(40)) for number in range(8)]
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    documents = chosen(path, tokenizer, 100, 100)
    assert documents == chosen(path, tokenizer, 100, 100)
    for document, text in zip(documents, texts, strict=True):
        assert document.text == text
        assert document.excerpt_tokens == 100
        assert set(document.excerpt.splitlines()) <= set(text.splitlines())
        assert 2 <= len(document.excerpt.splitlines()) <= 5
    assert len({document.excerpt.splitlines()[0].split()[-1].split("-")[1] for document in documents}) > 3


def test_parts_of_a_text_by_hand() -> None:
    text = "one two\nthree four\nfive six\nseven eight"
    assert whole_parts(text, 0, len(text)) == text
    assert whole_parts(text, 3, 22) == "three four"
    assert whole_parts("aaa bbb ccc ddd", 1, 9) == "bbb"
    assert whole_parts("aaaaaaaaaa", 2, 8) == "aaaaaa"
    assert whole_parts(text, 8, 18) == "three four"


def test_a_bad_line_is_named(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "x"}\n{"title": "x"}')
    with pytest.raises(TrainingDataError, match=r'corpus.jsonl:2: "text" must be a text'):
        chosen(path, tokenizer, 1, 10)
