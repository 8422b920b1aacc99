"""The list of lines to break stays true: each is there once, and so is what is to notice."""

import json
from pathlib import Path

import pytest

from tests.broken_lines.run import HERE, ROOT, BrokenLine, read_lines

LINES = read_lines()


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_a_line_is_there_once_and_is_broken_by_what_parses(line: BrokenLine) -> None:
    sound = (ROOT / line.file).read_text(encoding="utf-8")
    assert sound.count(line.text) == 1
    assert line.broken != line.text
    compile(sound.replace(line.text, line.broken), line.file, "exec")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_what_notices_a_line_is_there(line: BrokenLine) -> None:
    assert line.tests
    for test in line.tests:
        path, _, name = test.partition("::")
        assert f"def {name.rpartition('::')[2].partition('[')[0]}" in Path(ROOT / path).read_text("utf-8")


def test_names_differ_and_each_was_caught_when_all_were_run_last() -> None:
    names = [line.name for line in LINES]
    assert len(set(names)) == len(names)
    caught = json.loads((HERE / "results.json").read_text(encoding="utf-8"))["caught_by"]
    assert list(caught) == names
    assert all(caught.values())
