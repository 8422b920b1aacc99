"""`tercet` alone, and the completion of names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_first_thing_is_the_demo(tercet: Run) -> None:
    done = tercet()
    assert done.returncode == 0
    commands = [line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert commands[0] == "tercet demo"
    assert commands[-2:] == ["tercet doctor", "tercet --help"]


@pytest.mark.usefixtures("built")
def test_what_comes_next_where_there_are_collections(tercet: Run) -> None:
    done = tercet()
    assert "Collections in data: small" in done.stdout
    assert "tercet demo" not in done.stdout
    assert done.stdout.index("tercet search NAME") < done.stdout.index("tercet collection build")


@pytest.mark.slow
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tercet search s", ["small"]),
        ("tercet collection verify ", ["small"]),
        ("tercet documents list --collection sm", ["small"]),
        ("tercet search x", []),
        ("tercet doc", ["doctor", "documents"]),
        ("tercet serve --trace-", ["--trace-endpoint", "--trace-sampling"]),
    ],
)
def test_shells_complete_names_commands_and_flags(
    words: str, offered: list[str], tmp_path: Path, environment: dict[str, str]
) -> None:
    asked = {
        "_TERCET_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tercet.cli.main"],
        cwd=tmp_path,
        env={**environment, **asked},
        capture_output=True,
        text=True,
    )
    assert sorted(done.stdout.split()) == offered, done.stderr


def test_the_script_for_a_shell(tercet: Run) -> None:
    # Else it is for the shell that runs the tests, which may be one without completion.
    done = tercet("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "complete -o default -F _tercet_completion tercet" in done.stdout
