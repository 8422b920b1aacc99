"""Files that a publisher's layout needs; what is missing is said with what was looked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tercet.evaluation.errors import DatasetError

PACKED = ("", ".gz")


def first_file(candidates: Iterable[Path], what: str) -> Path:
    """The first of the candidates that is a file, as it is or packed. Raises DatasetError naming all of them.

    what: that the file holds, for the message.
    """
    paths = [path.with_name(path.name + ending) for path in candidates for ending in PACKED]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise DatasetError(f"there is no file of {what}; looked for {', '.join(map(str, paths))}")
    return found


def folders_here_and_below(folder: Path) -> list[Path]:
    """A folder and those directly in it, by name. Raises DatasetError where there is no such folder."""
    if not folder.is_dir():
        raise DatasetError(f"{folder}: no such folder; give the one that holds the suite's files")
    return [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
