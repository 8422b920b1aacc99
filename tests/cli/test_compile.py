"""`tercet compile`: what is compiled serves later processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_everything_is_there_for_the_next_process(tercet: Run, repository: Path) -> None:
    done = tercet("compile")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compiled in ")
    if "NUMBA_CACHE_DIR" not in os.environ:
        assert list((repository / "index" / "dense" / "__pycache__").glob("scan.scan-*.nbi"))
