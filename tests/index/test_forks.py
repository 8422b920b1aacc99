"""A forked process searches and builds, and is refused what only its parent's threads could do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fork_process.py")


@pytest.mark.slow
def test_a_forked_process_waits_for_no_thread_of_its_parent(tmp_path: Path, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "searched True",
        "threads True",
        "built True",
        "put True",
        "snapshot True",
        "child 0",
        "there 2",
        "again 2",
    ], done.stderr
