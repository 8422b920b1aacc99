"""Run files of TREC: writes rankings so that every tool reads the same order, and reads any system's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from tercet.evaluation.errors import DatasetError
from tercet.evaluation.judgments import text_lines
from tercet.evaluation.rankings import Ranking
from tercet.index.files.directory import write_atomically
from tercet.models.representations import Float32

COLUMNS = "query Q0 document rank score name"
LOWEST = np.float32(-np.inf)
LARGEST = float(np.finfo(np.float32).max)


def check_run_ids(ids: Iterable[str]) -> None:
    """Raises DatasetError for an id that would not be one column."""
    spaced = next((id for id in ids if id.split() != [id]), None)
    if spaced is not None:
        raise DatasetError(
            f"id {spaced!r:.80} has blanks, and a run file parts its columns by them; use other ids, "
            "or leave the run files out"
        )


def write_runs(folder: Path, rankings: Mapping[str, Mapping[str, Ranking]]) -> None:
    """`<ranking>.run` in a folder for each: `query Q0 document rank score name` a line, ranks from 1.

    rankings: scores by document id, best first, by query id, by ranking. trec_eval reads scores as float32
    and orders equal ones by falling id. So a score that is not below the one before is written as the next
    float32 below that, and every tool finds the order that was given.
    """
    for name, ranking in rankings.items():
        lines = (
            f"{query} Q0 {document} {rank} {score:.9g} {name}\n".encode()
            for query, documents in ranking.items()
            for rank, (document, score) in enumerate(_falling(documents), start=1)
        )
        write_atomically(folder / f"{name}.run", lines)


def _falling(ranking: Ranking) -> Iterator[tuple[str, np.float32]]:
    above = np.float32(np.inf)
    for document, score in ranking.items():
        above = min(np.float32(score), np.nextafter(above, LOWEST))
        yield document, above


def read_run(path: Path, depth: int | None = None) -> dict[str, Ranking]:
    """The rankings of a run file by query id, each of its best `depth` documents, in trec_eval's order.

    That is by score, read as float32, and equal scores by falling id; what the file says of ranks counts for
    nothing. Raises DatasetError that names the line that cannot be used.
    """
    if not path.is_file():
        raise DatasetError(f"{path}: no such file; give a run file of TREC, `{COLUMNS}` a line")
    scores: dict[str, Ranking] = {}
    for line, where in text_lines(path):
        columns = line.split()
        if len(columns) != len(COLUMNS.split()):
            raise DatasetError(f"{where}: expected the 6 columns `{COLUMNS}`, found {len(columns)}")
        query, _, document, _, score, _ = columns
        ranking = scores.setdefault(query, {})
        if document in ranking:
            raise DatasetError(
                f"{where}: document {document!r:.80} occurs a second time for query {query!r:.80}"
            )
        ranking[document] = _score(score, where)
    if not scores:
        raise DatasetError(f"{path}: holds no line; give a run file of TREC, `{COLUMNS}` a line")
    return {query: _in_order(ranking, depth) for query, ranking in scores.items()}


def _score(text: str, where: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not abs(score) <= LARGEST:
        raise DatasetError(f"{where}: the score {text[:40]!r} is no number that a float32 holds")
    return score


def _in_order(ranking: Ranking, depth: int | None) -> Ranking:
    singles: Float32 = np.array(list(ranking.values()), np.float32)
    order = sorted(
        zip(singles.tolist(), ranking, strict=True),
        key=lambda pair: (pair[0], pair[1].encode()),
        reverse=True,
    )
    return {document: score for score, document in order[:depth]}
