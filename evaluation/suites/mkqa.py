"""Reads MKQA: questions in many languages, whose answers are looked for in English passages.

As https://github.com/apple/ml-mkqa publishes `mkqa.jsonl.gz` (example_id, query, queries by language, and
answers by language, each with type, text and aliases), and BEIR's NQ its `corpus.jsonl`. As M3-Embedding's
evaluation has it (FlagEmbedding, `research/C_MTEB/MKQA`), a passage is right if it holds an English answer,
questions without a short answer are left out, which leaves 6,619 of 10,000, and nothing is asked in English.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tercet.evaluation.answers import words
from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.judgments import json_objects
from tercet.evaluation.suites.files import first_file

ENGLISH = "en"
TEST = "test"
NO_SHORT_ANSWER = {"unanswerable", "binary", "long_answer"}
FIELDS = '"example_id", "queries" and "answers"'


def read_mkqa(folder: Path, split: str | None) -> list[Dataset]:
    """A data set for each language but English; all share one corpus.

    Raises DatasetError for a file that is missing and for a line that cannot be used.
    """
    if split not in (None, TEST):
        raise DatasetError(f"MKQA has no split {split!r:.80}; leave --split out")
    path = first_file([folder / "mkqa.jsonl", folder / "dataset" / "mkqa.jsonl"], "questions")
    corpus = first_file([folder / "corpus.jsonl", folder / "nq" / "corpus.jsonl"], "passages (BEIR's NQ)")
    queries: dict[str, dict[str, str]] = {}  # text by id, by language
    answers: dict[str, tuple[str, ...]] = {}
    left_out = 0
    for value, where in json_objects(path, FIELDS):
        id, texts = value.get("example_id"), value.get("queries")
        if not isinstance(id, (str, int)) or not isinstance(texts, dict):
            raise DatasetError(f"{where}: expected {FIELDS}")
        if str(id) in answers:
            raise DatasetError(f"{where}: example_id {id} occurs a second time")
        short = _short_answers(value, where)
        if not short:
            left_out += 1
            continue
        answers[str(id)] = short
        for language, text in texts.items():
            if language != ENGLISH and isinstance(text, str):
                queries.setdefault(language, {})[str(id)] = text
    if not queries:
        raise DatasetError(f"{path}: no question has a short answer in English and another language")
    return [
        Dataset(
            queries[language],
            {},
            left_out,
            name=language,
            split=TEST,
            corpus=Corpus((corpus,)),
            judgments=path.name,
            answers={id: answers[id] for id in queries[language]},
        )
        for language in sorted(queries)
    ]


def _short_answers(value: dict[str, Any], where: str) -> tuple[str, ...]:
    """The English answers of a question and their aliases; none where one of them is no short answer."""
    answers = value.get("answers")
    english = answers.get(ENGLISH) if isinstance(answers, dict) else None
    if not isinstance(english, list) or not all(isinstance(answer, dict) for answer in english):
        raise DatasetError(f'{where}: "answers" must have a list of objects for "{ENGLISH}"')
    if any(answer.get("type") in NO_SHORT_ANSWER for answer in english):
        return ()
    texts = [text for answer in english for text in (answer.get("text"), *(answer.get("aliases") or ()))]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and words(text).strip()))
