"""Passages that contain an answer count as relevant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tercet.evaluation.answers import judgments_of, words
from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.metrics import figures, parse_measures

PASSAGES = {
    "a": ("Moon", "It was Neil Armstrong who stepped out first."),
    "b": ("", "Armstrongs are many; Neil is one."),
    "c": ("Paris", "The tower stands there since 1889."),
}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    records = [{"_id": id, "title": title, "text": text} for id, (title, text) in PASSAGES.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    return Dataset(
        queries={"q1": "who?", "q2": "where?", "q3": "when?"},
        qrels={},
        unjudged_queries=0,
        name="de",
        split="test",
        corpus=Corpus((tmp_path,)),
        judgments="answers",
        answers={"q1": ("neil armstrong", "Buzz"), "q2": ("paris",), "q3": ("1889",)},
    )


def test_success_is_counted_by_answers(dataset: Dataset) -> None:
    # q1 finds its answer second, q2 in a title at once; q3 finds nothing.
    run = {"q1": ["b", "a"], "q2": ["c"]}
    qrels = judgments_of(dataset, [run], None)
    assert qrels == {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}, "q3": {}}
    found = figures(qrels, run, parse_measures(["Success@1,Success@2"]))
    assert found.means == pytest.approx({"Success@1": 1 / 3, "Success@2": 2 / 3})
    assert found.by_query["q3"] == {"Success@1": 0.0, "Success@2": 0.0}


def test_only_ranks_that_are_looked_at_are_read(dataset: Dataset) -> None:
    qrels = judgments_of(dataset, [{"q1": ["b", "a"]}, {"q1": ["c", "a"]}], 1)
    assert qrels == {"q1": {"b": 0, "c": 0}, "q2": {}, "q3": {}}
    # A query whose passages hold no answer counts 0.
    found = figures(qrels, {"q1": ["b", "a"]}, parse_measures(["Success@1"]))
    assert found.means == {"Success@1": 0.0}


@pytest.mark.parametrize(
    ("answer", "passage", "found"),
    [
        ("Jean-Luc", "It is JEAN–LUC’s.", True),
        ("cafe", "A café.", False),
        ("café", "A cafe\u0301.", True),
        ("art", "They start.", False),
        ("U.S.", "In the U.S. only", True),
        ("10%", "by 10 %", True),
    ],
)
def test_words_are_found_whole_in_any_case_and_form(answer: str, passage: str, found: bool) -> None:
    assert (words(answer) in words(passage)) is found
