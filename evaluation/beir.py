"""Reads a data set in BEIR's layout: corpus, `queries.jsonl` or `.jsonl.gz`, and `qrels/<split>.tsv`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tercet.evaluation.errors import DatasetError
from tercet.index.candidates import Document
from tercet.ingest.sources.lines import LineFile
from tercet.ingest.sources.reader import read_documents

QUERY_FILES = ("queries.jsonl", "queries.jsonl.gz")
TEST = "test"
GRADE_DIGITS = 9
GRADE = re.compile(rf"[+-]?[0-9]{{1,{GRADE_DIGITS}}}")
QRELS_HEADER = ["query-id", "corpus-id", "score"]


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Judged queries of a data set and their judgments.

    queries: text by query id, only those with a judgment above 0. qrels: grade by document id, by query
    id; a judged document that the corpus lacks stays, and counts as one that was not found.
    unjudged_queries: how many were left out because no document is judged relevant for them.
    """

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    unjudged_queries: int


@dataclass(frozen=True, slots=True)
class Dataset(JudgedQueries):
    """A data set, named after its folder: its documents as well."""

    name: str
    documents: list[Document]


def read_dataset(folder: Path, split: str = TEST) -> Dataset:
    """The data set of a folder, with the judgments of its test queries or of another split.

    Raises DatasetError for queries and judgments and SourceError for the corpus, naming file and line.
    """
    judged = read_judged_queries(folder, split)
    return Dataset(
        judged.queries,
        judged.qrels,
        judged.unjudged_queries,
        name=folder.resolve().name,
        documents=list(read_documents(folder)),
    )


def read_judged_queries(folder: Path, split: str) -> JudgedQueries:
    """What `qrels/<split>.tsv` judges; needs no corpus. Raises DatasetError naming file and line."""
    path = folder / "qrels" / f"{split}.tsv"
    if not folder.is_dir():
        raise DatasetError(f"{folder}: no such folder; give one in BEIR's layout with qrels/{split}.tsv")
    queries = read_queries(folder)
    qrels = read_qrels(path, queries)
    judged = {id: text for id, text in queries.items() if any(g > 0 for g in qrels.get(id, {}).values())}
    if not judged:
        raise DatasetError(f"{path}: no judgment is above 0, so there is nothing to measure")
    return JudgedQueries(judged, {id: qrels[id] for id in judged}, len(queries) - len(judged))


def read_queries(folder: Path) -> dict[str, str]:
    """Query text by id, in file order."""
    path = next((folder / name for name in QUERY_FILES if (folder / name).is_file()), None)
    if path is None:
        raise DatasetError(f"{folder}: holds neither {' nor '.join(QUERY_FILES)}")
    queries: dict[str, str] = {}
    for line, where in text_lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{where}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise DatasetError(f'{where}: expected an object with "_id" and "text"')
        id, text = value.get("_id"), value.get("text")
        if not isinstance(id, str) or not isinstance(text, str):
            raise DatasetError(f'{where}: "_id" and "text" must be strings')
        if id in queries:
            raise DatasetError(f"{where}: query id {id!r} occurs a second time")
        queries[id] = text
    return queries


def read_qrels(path: Path, queries: dict[str, str]) -> dict[str, dict[str, int]]:
    """Grades by document id, by query id, from tab-separated lines; a header line is passed over."""
    if not path.is_file():
        others = sorted(other.stem for other in path.parent.glob("*.tsv"))
        raise DatasetError(
            f"{path}: no such file; it holds the judgments, tab-separated"
            + (f", and is there for {', '.join(others)}; give --split {others[0]}" if others else "")
        )
    qrels: dict[str, dict[str, int]] = {}
    for line, where in text_lines(path):
        columns = line.split("\t")
        if columns == QRELS_HEADER:
            continue
        if len(columns) != len(QRELS_HEADER):
            raise DatasetError(f"{where}: expected 3 tab-separated columns, found {len(columns)}")
        query, document, grade = columns
        if query not in queries:
            raise DatasetError(f"{where}: query id {query!r} is not in the queries file")
        if not GRADE.fullmatch(grade):
            raise DatasetError(
                f"{where}: the score {grade[:40]!r} is not a whole number of at most {GRADE_DIGITS} digits"
            )
        if qrels.setdefault(query, {}).setdefault(document, int(grade)) != int(grade):
            raise DatasetError(f"{where}: query {query!r} and document {document!r} have another score above")
    return qrels


def text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Lines that are not blank, without their line break, with file and line number for messages."""
    lines = LineFile(path)
    for number, line in lines:
        where = f"{path} line {number}"
        if line is None:
            raise DatasetError(f"{where}: longer than {lines.limit_bytes} bytes, the limit")
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DatasetError(f"{where}: not UTF-8: {error}") from error
        if text.strip():
            yield text, where
