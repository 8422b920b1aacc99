"""Nothing acknowledged is lost: short runs of what kills the process and takes its power."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run(repository: Path, name: str, *arguments: object) -> dict[str, Any]:
    """What a test of endurance prints as its record."""
    process = subprocess.run(
        [sys.executable, "-m", f"tests.endurance.live.{name}", *map(str, arguments)],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    record: dict[str, Any] = json.loads(process.stdout[process.stdout.index("{") :])
    return record


@pytest.mark.slow
def test_kills_lose_nothing_acknowledged(repository: Path, tmp_path: Path) -> None:
    found = run(repository, "crash", "--kills", 10, "--folder", tmp_path)
    assert found["kills"] == 10
    assert sum(found["acknowledged_writes"].values()) > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_loss_of_power_loses_nothing_acknowledged(repository: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    found = run(repository, "power_loss", "--stride", 150, "--random", 2)
    assert found["distinct_states_opened"] > 50


@pytest.mark.slow
def test_each_read_beside_writes_is_one_state_of_the_collection(repository: Path) -> None:
    found = run(repository, "concurrent_writes", "--minutes", 0.15)
    assert found["reads_not_explained"] == found["errors"] == found["problems_of_verify"] == 0
    assert found["reads_checked"] > 500
    assert found["upkeep"]["flushes"] > 0
