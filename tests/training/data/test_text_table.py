"""Documents for pre-training: which are taken, and in which batches they come."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tercet.models.tokenizer import Tokenizer
from tercet.training.data.text_table import plan_texts, read_text_table
from tercet.training.data.token_store import TokenStore
from tercet.training.errors import TrainingDataError
from tercet.training.settings.data import LengthGroup, TextData, TextSource

SOURCE = TextSource(path="documents.jsonl", title="D", licence="CC0 1.0", format="texts")
DOCUMENTS = [{"title": "word1", "text": "word2 word3"}] + [{"text": f"word{n}"} for n in range(4, 14)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in DOCUMENTS))
    return tmp_path


def read(data: Path, tokenizer: Tokenizer, source: TextSource, *held_out: str, seed: int = 1) -> TokenStore:
    settings = TextData(sources=(source,), passage_tokens=16, held_out=held_out)
    (store,) = read_text_table(settings, data, data, tokenizer, seed)
    return store


def words(store: TokenStore) -> list[list[int]]:
    """The numbers of the words of each document: ids between [CLS] and [SEP], from 5 on."""
    return [(store.take(np.array([row])).token_ids[1:-1] - 5).tolist() for row in range(len(store))]


def test_a_title_comes_before_its_text(data: Path, tokenizer: Tokenizer) -> None:
    assert words(read(data, tokenizer, SOURCE)) == [[1, 2, 3], *([n] for n in range(4, 14))]


def test_most_takes_documents_at_random_in_their_order(data: Path, tokenizer: Tokenizer) -> None:
    few = SOURCE.model_copy(update={"most": 4})
    taken = words(read(data, tokenizer, few))
    assert len(taken) == 4
    assert taken == sorted(taken)
    assert taken == words(read(data, tokenizer, few))
    assert any(words(read(data, tokenizer, few, seed=seed)) != taken for seed in range(2, 6))
    assert len(read(data, tokenizer, SOURCE.model_copy(update={"most": 100}))) == len(DOCUMENTS)


def test_documents_inside_held_out_collections_are_left_out(data: Path, tokenizer: Tokenizer) -> None:
    (data / "beir").mkdir()
    (data / "beir" / "corpus.jsonl").write_text('{"_id": "1", "text": "Word2, word3 and more."}\n')
    assert words(read(data, tokenizer, SOURCE, "beir")) == [[n] for n in range(4, 14)]


def test_a_source_without_documents_and_a_bad_line_are_named(data: Path, tokenizer: Tokenizer) -> None:
    (data / "empty.txt").write_text("\n")
    with pytest.raises(TrainingDataError, match=r"empty\.txt: no document is left"):
        read(data, tokenizer, SOURCE.model_copy(update={"path": "empty.txt"}))
    with (data / "documents.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(TrainingDataError, match=r"documents\.jsonl:12: .text. must be"):
        read(data, tokenizer, SOURCE)


def test_a_plan_has_every_long_enough_document_once(data: Path, tokenizer: Tokenizer) -> None:
    store = read(data, tokenizer, SOURCE)
    groups = (LengthGroup(tokens=3, batch=2), LengthGroup(tokens=16, batch=2))
    plan = plan_texts([store], groups, devices=1, least_tokens=3, seed=1, epoch=0)
    rows = np.concatenate([rows for _, rows in plan.batches])
    # The one document of five tokens fills no batch of its group.
    assert sorted(rows.tolist()) == list(range(1, 11))
    assert len(plan_texts([store], groups, devices=1, least_tokens=4, seed=1, epoch=0)) == 0
    other = plan_texts([store], groups, devices=1, least_tokens=3, seed=1, epoch=1)
    assert [rows.tolist() for _, rows in other.batches] != [rows.tolist() for _, rows in plan.batches]
