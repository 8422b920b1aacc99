"""The JavaScript client's own tests, against a server as users start it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2] / "clients" / "javascript" / "tests"
SECONDS = 240


def node_major() -> int:
    """The version of Node; 0 where there is none."""
    if shutil.which("node") is None:
        return 0
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"v(\d+)", printed)
    return int(found[1]) if found else 0


@pytest.mark.slow
@pytest.mark.skipif(node_major() < 20, reason="needs Node 20 or later")
def test_every_method_works(server: str) -> None:
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", f"{TESTS}/"],
        env={**os.environ, "TERCET_URL": server, "TERCET_CLIENT_KEY": "secret"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# skipped 0" in done.stdout, done.stdout
