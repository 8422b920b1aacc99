"""Folders in the layouts of benchmarks' publishers, of a few lines each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str, Iterable[Any]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes lines below the test's folder, objects as JSON, packed where the name ends in .gz."""

    def written(name: str, lines: Iterable[Any]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return written


@pytest.fixture
def miracl(tmp_path: Path, write: Write) -> Path:
    """Two languages; the corpus of Swahili in two parts."""
    for language, query in (("sw", "Mto mrefu ni upi?"), ("ko", "가장 긴 강은?")):
        name = f"miracl-v1.0-{language}"
        write(f"miracl/{name}/topics/topics.{name}-dev.tsv", [f"7\t{query}", "8\tunjudged"])
        write(f"miracl/{name}/qrels/qrels.{name}-dev.tsv", ["7\tQ0\t10#0\t1", "7\tQ0\t10#1\t0"])
        passages = [
            {"docid": "10#0", "title": "Nile", "text": f"The longest river ({language})."},
            {"docid": "10#1", "title": "Nile", "text": "Boats sail on it."},
        ]
        for part, passage in enumerate(passages):
            write(f"corpus/miracl-corpus-v1.0-{language}/docs-{part}.jsonl.gz", [passage])
    return tmp_path


@pytest.fixture
def mldr(tmp_path: Path, write: Write) -> Path:
    """Two languages of one query each, and a document that is positive and negative."""
    for language in ("de", "en"):
        write(
            f"mldr-v1.0-{language}/test.jsonl.gz",
            [
                {
                    "query_id": f"q-{language}-1",
                    "query": "Who built the mill?",
                    "positive_passages": [{"docid": "doc-1", "text": "Anna built the mill."}],
                    "negative_passages": [{"docid": "doc-2"}, {"docid": "doc-1"}],
                }
            ],
        )
        write(
            f"mldr-v1.0-{language}/corpus.jsonl.gz",
            [
                {"docid": "doc-1", "text": "Anna built the mill. " * 20},
                {"docid": "doc-2", "text": "Snow fell on the hills."},
            ],
        )
    return tmp_path


def question(number: int, answers: list[dict[str, Any]], **queries: str) -> dict[str, Any]:
    texts = {"en": "asked in English", **queries}
    return {"example_id": number, "query": texts["en"], "queries": texts, "answers": {"en": answers}}


@pytest.fixture
def mkqa(tmp_path: Path, write: Write) -> Path:
    """Three questions, one of them without a short answer, and passages of which two hold an answer."""
    write(
        "mkqa.jsonl.gz",
        [
            question(
                5,
                [
                    {
                        "type": "entity",
                        "entity": "Q1",
                        "text": "Ada Lovelace",
                        "aliases": ["Countess Lovelace"],
                    }
                ],
                de="Wer schrieb das erste Programm?",
                da="Hvem skrev det første program?",
            ),
            question(6, [{"type": "date", "text": "1843-10", "aliases": ["October 1843"]}], de="Wann?"),
            question(7, [{"type": "unanswerable", "text": None}], de="Warum?", da="Hvorfor?"),
        ],
    )
    write(
        "nq/corpus.jsonl",
        [
            {
                "_id": "doc0",
                "title": "Program",
                "text": "The first was written by ADA LOVELACE.",
                "metadata": {},
            },
            {"_id": "doc1", "title": "Notes", "text": "They appeared in October 1843.", "metadata": {}},
            {"_id": "doc2", "title": "Loom", "text": "Cards steer a loom.", "metadata": {}},
        ],
    )
    return tmp_path


@pytest.fixture
def msmarco(tmp_path: Path, write: Write) -> Path:
    """Passages with quotes that nobody closes, and the small and the whole queries of dev."""
    write("collection.tsv", ['0\tHe said "no.', '1\t"Yes" is what 5" means', "2\tA third passage"])
    write("queries.dev.tsv", ["11\twhat is yes", "12\twho said no", "13\tunjudged"])
    write("qrels.dev.tsv", ["11\t0\t1\t1", "12\t0\t0\t1"])
    write("queries.dev.small.tsv", ["12\twho said no"])
    write("qrels.dev.small.tsv", ["12\t0\t0\t1"])
    return tmp_path


def beir_set(write: Write, folder: str, split: str, answer: str) -> None:
    write(
        f"{folder}/corpus.jsonl", [{"_id": "d1", "title": "", "text": answer}, {"_id": "d2", "text": "Fog."}]
    )
    write(f"{folder}/queries.jsonl", [{"_id": "q1", "text": answer}])
    write(f"{folder}/qrels/{split}.tsv", ["query-id\tcorpus-id\tscore", "q1\td1\t1"])


@pytest.fixture
def beir(tmp_path: Path, write: Write) -> Path:
    """Three sets, one of them a level deeper, and one that BEIR reports on another split."""
    beir_set(write, "scifact", "test", "Iron rusts in rain.")
    beir_set(write, "cqadupstack/english", "test", "Commas part clauses.")
    beir_set(write, "msmarco", "dev", "Cats purr.")
    return tmp_path
