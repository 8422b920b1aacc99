"""The log of a run: a cut-off line is passed over, and a resumed run takes its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tercet.training.errors import RunStateError
from tercet.training.runs.log import LOG_FILE, UNDONE_FILE, RunLog, read_log


def written(folder: Path, steps: int) -> None:
    log = RunLog(folder, 0)
    log.write({"step": 0, "development": {}})
    for step in range(1, steps + 1):
        log.write({"step": step, "losses": {"loss": 1.0}})
        if step % 2 == 0:
            log.write({"step": step, "development": {}})


def steps(folder: Path) -> list[int]:
    return [line["step"] for line in read_log(folder)]


def test_lines_are_read_back_in_order(tmp_path: Path) -> None:
    assert list(read_log(tmp_path)) == []
    written(tmp_path, 3)
    assert steps(tmp_path) == [0, 1, 2, 2, 3]


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, 3)
    with (tmp_path / LOG_FILE).open("a") as file:
        file.write('{"step": 4, "loss')
    assert steps(tmp_path) == [0, 1, 2, 2, 3]
    RunLog(tmp_path, 3).write({"step": 4})
    assert steps(tmp_path) == [0, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("line", ["not JSON", "[]", '{"losses": {}}', '{"step": "4"}'])
def test_any_other_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    written(tmp_path, 3)
    with (tmp_path / LOG_FILE).open("a") as file:
        file.write(f'{line}\n{{"step": 4}}\n')
    with pytest.raises(RunStateError, match=r"log\.jsonl:6: damaged .*; remove the line"):
        steps(tmp_path)


def undone(folder: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (folder / UNDONE_FILE).read_text().splitlines()]


def test_a_resumed_run_puts_aside_what_it_does_again(tmp_path: Path) -> None:
    written(tmp_path, 5)
    RunLog(tmp_path, 2)
    assert steps(tmp_path) == [0, 1, 2, 2]
    assert undone(tmp_path) == [3, 4, 4, 5]


def test_a_run_that_begins_again_puts_its_whole_log_aside(tmp_path: Path) -> None:
    written(tmp_path, 2)
    RunLog(tmp_path, 0).write({"step": 0})
    RunLog(tmp_path, 0)
    assert steps(tmp_path) == []
    assert undone(tmp_path) == [0, 1, 2, 2, 0]
