"""The record of a run: one JSON line a step or evaluation, cut back to the saved step when a run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tercet.training.errors import RunStateError
from tercet.training.files import replacing

LOG_FILE = "log.jsonl"
UNDONE_FILE = "log-undone.jsonl"


class RunLog:
    """Appends lines to `log.jsonl` of a run's folder."""

    def __init__(self, folder: Path, steps_done: int) -> None:
        """Moves the lines after the first `steps_done` steps to `log-undone.jsonl`: a resumed run does these
        steps again. Without a step done all lines go there, since such a run begins with an evaluation.
        """
        self.path = folder / LOG_FILE
        lines = list(read_log(folder))
        kept = [line for line in lines if steps_done and line["step"] <= steps_done]
        if undone := lines[len(kept) :]:  # lines are in the order of their steps
            with (folder / UNDONE_FILE).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in undone)
        with replacing(self.path) as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept).encode())

    def write(self, line: Mapping[str, Any]) -> None:
        """Adds a line; it is on its way to the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run, in order; a last line that a kill cut off is passed over.

    Raises RunStateError for any other line that is damaged.
    """
    path = folder / LOG_FILE
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                return
            try:
                value = json.loads(line)
                whole = isinstance(value["step"], int)
            except (ValueError, TypeError, KeyError) as error:
                raise RunStateError(f"{path}:{number}: damaged ({error}); remove the line") from error
            if not whole:
                raise RunStateError(f"{path}:{number}: damaged (step {value['step']!r}); remove the line")
            yield value
