"""Every `tercet` command line of the documentation names a command that exists, with flags that it takes."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tercet.cli.main import application

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/README.md")]
)
BLOCK = re.compile(r"```(?:sh|bash)\n(.*?)```", re.S)


@cache
def command_line(first: str) -> Any:
    """The root command, with the flags of `serve` and `encoder` where one of these comes first."""
    return typer.main.get_command(application([first]))


def documented(page: Path) -> list[list[str]]:
    """The words behind `tercet` of each line of a page that begins with it."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [
        shlex.split(line, comments=True)[1:]
        for line in lines
        if line.startswith("tercet ") and "<<" not in line
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_commands_exist(page: Path) -> None:
    for words in documented(page):
        command = command_line(words[0])
        for word in words:
            if not hasattr(command, "commands"):
                break
            assert word in command.commands or word.startswith("-"), f"tercet {shlex.join(words)}: {word}"
            command = command.commands.get(word, command)
        flags = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= flags, f"tercet {shlex.join(words)}: {given - flags}"
