"""Judged queries, and the lines of queries and judgments that several layouts share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.evaluation.errors import DatasetError
from tercet.ingest.sources.lines import LineFile

GRADE_DIGITS = 9
GRADE = re.compile(rf"[+-]?[0-9]{{1,{GRADE_DIGITS}}}")
TREC_QRELS = "query Q0 document grade"

Qrels = dict[str, dict[str, int]]
"""Grades by document id, by query id."""


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Judged queries of a data set and their judgments.

    queries: text by query id, only those with a judgment above 0. qrels: grade by document id, by query
    id; a judged document that the corpus lacks stays, and counts as one that was not found.
    unjudged_queries: how many were left out because no document is judged relevant for them.
    """

    queries: dict[str, str]
    qrels: Qrels
    unjudged_queries: int


def judged_queries(queries: Mapping[str, str], qrels: Qrels, path: Path) -> JudgedQueries:
    """The queries with a judgment above 0. path: of the judgments. Raises DatasetError without any."""
    judged = {id: text for id, text in queries.items() if any(g > 0 for g in qrels.get(id, {}).values())}
    if not judged:
        raise DatasetError(f"{path}: no judgment is above 0, so there is nothing to measure")
    return JudgedQueries(judged, {id: qrels[id] for id in judged}, len(queries) - len(judged))


def qrels_of(judgments: Iterable[tuple[str, str, str, str]], queries: Mapping[str, str]) -> Qrels:
    """Grades by document and query, of (query id, document id, grade, file and line).

    Raises DatasetError for an unknown query, a grade that is no number, and two grades of one document.
    """
    qrels: Qrels = {}
    for query, document, grade, where in judgments:
        if query not in queries:
            raise DatasetError(f"{where}: query id {query!r} is not in the queries file")
        if not GRADE.fullmatch(grade):
            raise DatasetError(
                f"{where}: the score {grade[:40]!r} is not a whole number of at most {GRADE_DIGITS} digits"
            )
        if qrels.setdefault(query, {}).setdefault(document, int(grade)) != int(grade):
            raise DatasetError(f"{where}: query {query!r} and document {document!r} have another score above")
    return qrels


def read_trec_qrels(path: Path, queries: Mapping[str, str]) -> Qrels:
    """Grades of a qrels file of TREC: `query Q0 document grade` a line, parted by tabs or blanks."""
    return qrels_of(_trec_judgments(path), queries)


def _trec_judgments(path: Path) -> Iterator[tuple[str, str, str, str]]:
    for line, where in text_lines(path):
        columns = line.split()
        if len(columns) != len(TREC_QRELS.split()):
            raise DatasetError(f"{where}: expected the 4 columns `{TREC_QRELS}`, found {len(columns)}")
        yield columns[0], columns[2], columns[3], where


def read_topics(path: Path) -> dict[str, str]:
    """Query text by id, in file order, of lines of id, tab and text. Raises DatasetError naming the line."""
    queries: dict[str, str] = {}
    for line, where in text_lines(path):
        id, tab, text = line.partition("\t")
        if not tab:
            raise DatasetError(f"{where}: expected a query id, a tab and the query")
        add_query(queries, id, text, where)
    return queries


def add_query(queries: dict[str, str], id: str, text: str, where: str) -> None:
    """Adds a query. Raises DatasetError for an id that was there before."""
    if id in queries:
        raise DatasetError(f"{where}: query id {id!r} occurs a second time")
    queries[id] = text


def json_objects(path: Path, expected: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a file of JSON lines, with file and line. expected: what they hold, for messages."""
    for line, where in text_lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{where}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise DatasetError(f"{where}: expected an object with {expected}")
        yield value, where


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
