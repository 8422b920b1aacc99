"""A tiny BEIR folder about three things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DOCUMENTS = {
    "bread": "Bread is baked from flour, water, salt and yeast.",
    "moon": "The moon circles the earth in about twenty-seven days.",
    "violin": "A violin has four strings and is played with a bow.",
    "tide": "Tides rise and fall because the moon pulls on the sea.",
}
QUERIES = {
    "q1": "How is bread made?",
    "q2": "What causes the tides of the sea?",
    "q3": "How many strings does a violin have?",
    "q4": "Who judged this?",
}
QRELS = [("q1", "bread", 1), ("q2", "tide", 2), ("q2", "moon", 1), ("q3", "violin", 1), ("q4", "moon", 0)]


@pytest.fixture
def beir_folder(tmp_path: Path) -> Path:
    """Four documents; three judged queries and one without a relevant document."""
    folder = tmp_path / "things"
    (folder / "qrels").mkdir(parents=True)
    documents = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(documents) + "\n")
    queries = [json.dumps({"_id": id, "text": text}) for id, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    judgments = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in QRELS)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments) + "\n")
    return folder
