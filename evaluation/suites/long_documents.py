"""Reads MLDR and NarrativeQA: queries with their passages, and a corpus of long documents.

As https://huggingface.co/datasets/Shitao/MLDR lays the files out, which FlagEmbedding's evaluation reads:
`mldr-v1.0-LANG/SPLIT.jsonl.gz` (query_id, query, and the docids of positive_passages and negative_passages)
and `mldr-v1.0-LANG/corpus.jsonl.gz` (docid, text). NarrativeQA has one such folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.judgments import add_query, json_objects, judged_queries, qrels_of
from tercet.evaluation.suites.files import first_file, folders_here_and_below
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.reading import Reading

MLDR = "mldr-v1.0-"
CORPUS = "corpus.jsonl"
TEST = "test"
READING = Reading(ColumnChoice(text="text", id="docid", metadata=()))
GRADES = {"positive_passages": "1", "negative_passages": "0"}


def read_long_documents(folder: Path, split: str | None) -> list[Dataset]:
    """A data set for each folder with a corpus, this one or those in it, by name.

    Raises DatasetError where there is none, and for a line that cannot be used.
    """
    folders = [path for path in folders_here_and_below(folder) if any(path.glob(f"{CORPUS}*"))]
    if not folders:
        raise DatasetError(
            f"{folder}: looked for {CORPUS}.gz and {split or TEST}.jsonl.gz, here and in the folders below, "
            f"such as {MLDR}en"
        )
    return [_language(path, split or TEST) for path in folders]


def _language(folder: Path, split: str) -> Dataset:
    path = first_file([folder / f"{split}.jsonl"], f"the queries of {split}")
    queries: dict[str, str] = {}
    judged = judged_queries(queries, qrels_of(_judgments(path, queries), queries), path)
    return Dataset(
        judged.queries,
        judged.qrels,
        judged.unjudged_queries,
        name=folder.resolve().name.removeprefix(MLDR),
        split=split,
        corpus=Corpus((first_file([folder / CORPUS], "documents"),), READING),
        judgments=path.name,
    )


def _judgments(path: Path, queries: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Query, document, grade, file and line; the queries are added to those given as they are read."""
    for value, where in json_objects(path, '"query_id", "query" and "positive_passages"'):
        id, text = _id(value, "query_id", where), value.get("query")
        if not isinstance(text, str):
            raise DatasetError(f'{where}: "query" must be a string')
        add_query(queries, id, text, where)
        # A passage that is positive stays so where it is among the negatives, too.
        judged: set[str] = set()
        for name, grade in GRADES.items():
            for passage in _passages(value, name, where):
                document = _id(passage, "docid", where)
                if document not in judged:
                    judged.add(document)
                    yield id, document, grade, where


def _passages(value: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    passages = value.get(name) or []
    if not isinstance(passages, list) or not all(isinstance(passage, dict) for passage in passages):
        raise DatasetError(f'{where}: "{name}" must be a list of objects with "docid"')
    return passages


def _id(value: dict[str, Any], name: str, where: str) -> str:
    id = value.get(name)
    if not isinstance(id, (str, int)) or isinstance(id, bool):
        raise DatasetError(f'{where}: "{name}" must be a string or a whole number')
    return str(id)
