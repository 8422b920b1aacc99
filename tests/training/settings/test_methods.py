"""`docs/methods.md`: every setting, command and test that it names exists."""

import ast
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from tercet.cli.main import application
from tests.training.settings.keys import keys

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "methods.md"
ROWS = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if "`tests/" in line]
CODE = re.compile(r"`([^`]+)`")
SETTING = re.compile(r'([a-z_]+(?:\.[a-z_]+)*)(?: = "(\w+)")?')


def choices(annotation: Any) -> set[Any]:
    """The values of all literals in an annotation."""
    arguments = get_args(annotation)
    return {each for each in arguments if isinstance(each, str)}.union(*map(choices, arguments))


def require_setting(name: str, value: str | None) -> None:
    *place, key = name.split(".")
    found = {each for field in keys(tuple(place))[key] for each in choices(field.annotation)}
    assert value is None or value in found, f"{name} = {value}"


def require_command(words: list[str]) -> None:
    command: Any = typer.main.get_command(application(words))
    for word in words:
        command = command.commands[word]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].removeprefix("| ")[:40])
def test_what_a_row_names_exists(row: list[str]) -> None:
    for code in CODE.findall(row[2]):
        setting = SETTING.fullmatch(code)
        if code.startswith("tercet "):
            require_command(code.split()[1:])
        elif setting is not None and ("." in code or "=" in code):
            require_setting(*setting.groups())
    for code in CODE.findall(row[3]):
        path, _, name = code.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = [
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        assert name in functions, code


def test_the_page_has_the_tables_of_all_papers() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(ROWS) > 30
    for paper in ("2205.12035", "2104.08253", "2108.05540", "2402.03216", "2302.11529"):
        assert f"https://arxiv.org/abs/{paper}" in text
