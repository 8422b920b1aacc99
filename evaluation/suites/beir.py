"""Reads the sets of BEIR, NQ among them: a folder with one, or with several next to each other.

As https://github.com/beir-cellar/beir publishes each: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`.
"""

from __future__ import annotations

from pathlib import Path

from tercet.evaluation.beir import QUERY_FILES, TEST, read_dataset
from tercet.evaluation.dataset import Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.suites.files import folders_here_and_below

SPLITS = {"msmarco": "dev"}  # where BEIR reports another split than test


def read_beir(folder: Path, split: str | None) -> list[Dataset]:
    """The data sets of a folder, by name. Those of `cqadupstack` stand one level deeper.

    Raises DatasetError where there is none, and for a line that cannot be used.
    """
    folders = {
        path: None
        for parent in folders_here_and_below(folder)
        for path in folders_here_and_below(parent)
        if (path / "qrels").is_dir()
    }
    if not folders:
        raise DatasetError(
            f"{folder}: not BEIR: looked for corpus.jsonl, {QUERY_FILES[0]} and qrels/{split or TEST}.tsv, "
            "here and in the folders below"
        )
    return [read_dataset(path, split or SPLITS.get(path.name, TEST)) for path in folders]
