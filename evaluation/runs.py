"""Writes rankings as run files of TREC, which other tools measure and compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tercet.evaluation.errors import DatasetError
from tercet.index.files.directory import write_atomically


def check_run_ids(ids: Iterable[str]) -> None:
    """Raises DatasetError for an id that would not be one column."""
    spaced = next((id for id in ids if id.split() != [id]), None)
    if spaced is not None:
        raise DatasetError(
            f"id {spaced!r:.80} has blanks, and a run file parts its columns by them; use other ids, "
            "or leave the run files out"
        )


def write_runs(folder: Path, rankings: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """`<ranking>.run` in a folder for each: `query Q0 document rank score name` a line, ranks from 1.

    rankings: document ids, best first, by query id, by ranking. As in `metrics.measure`, the score is the
    rank below zero, since tools order by scores and would break ties of others in their own way.
    """
    for name, ranking in rankings.items():
        lines = (
            f"{query} Q0 {document} {rank} -{rank} {name}\n".encode()
            for query, documents in ranking.items()
            for rank, document in enumerate(documents, start=1)
        )
        write_atomically(folder / f"{name}.run", lines)
