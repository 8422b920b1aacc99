"""Reads a data set in BEIR's layout: corpus, `queries.jsonl` or `.jsonl.gz`, and `qrels/<split>.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.judgments import (
    JudgedQueries,
    add_query,
    json_objects,
    judged_queries,
    qrels_of,
    text_lines,
)

QUERY_FILES = ("queries.jsonl", "queries.jsonl.gz")
TEST = "test"
QRELS_HEADER = ["query-id", "corpus-id", "score"]


def read_dataset(folder: Path, split: str = TEST) -> Dataset:
    """The data set of a folder, with the judgments of its test queries or of another split.

    Its documents are read later, as a stream. Raises DatasetError naming file and line.
    """
    judged = read_judged_queries(folder, split)
    return Dataset(
        judged.queries,
        judged.qrels,
        judged.unjudged_queries,
        name=folder.resolve().name,
        split=split,
        corpus=Corpus((folder,)),
        judgments=f"qrels/{split}.tsv",
    )


def read_judged_queries(folder: Path, split: str) -> JudgedQueries:
    """What `qrels/<split>.tsv` judges; needs no corpus. Raises DatasetError naming file and line."""
    path = folder / "qrels" / f"{split}.tsv"
    if not folder.is_dir():
        raise DatasetError(f"{folder}: no such folder; give one in BEIR's layout with qrels/{split}.tsv")
    queries = read_queries(folder)
    return judged_queries(queries, qrels_of(_judgments(path), queries), path)


def read_queries(folder: Path) -> dict[str, str]:
    """Query text by id, in file order."""
    path = next((folder / name for name in QUERY_FILES if (folder / name).is_file()), None)
    if path is None:
        raise DatasetError(f"{folder}: holds neither {' nor '.join(QUERY_FILES)}")
    queries: dict[str, str] = {}
    for value, where in json_objects(path, '"_id" and "text"'):
        id, text = value.get("_id"), value.get("text")
        if not isinstance(id, str) or not isinstance(text, str):
            raise DatasetError(f'{where}: "_id" and "text" must be strings')
        add_query(queries, id, text, where)
    return queries


def _judgments(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Query, document, grade, file and line of tab-separated lines; a header line is passed over."""
    if not path.is_file():
        others = sorted(other.stem for other in path.parent.glob("*.tsv"))
        raise DatasetError(
            f"{path}: no such file; it holds the judgments, tab-separated"
            + (f", and is there for {', '.join(others)}; give --split {others[0]}" if others else "")
        )
    for line, where in text_lines(path):
        columns = line.split("\t")
        if columns == QRELS_HEADER:
            continue
        if len(columns) != len(QRELS_HEADER):
            raise DatasetError(f"{where}: expected 3 tab-separated columns, found {len(columns)}")
        query, document, grade = columns
        yield query, document, grade, where
