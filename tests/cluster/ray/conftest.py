"""One Ray of this machine at a time: some ports of a head are fixed, and whichever starts first has them."""

from __future__ import annotations

import fcntl
import getpass
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def ray_alone() -> Iterator[None]:
    """Holds Ray for the tests of a module; those of another process wait."""
    with Path(tempfile.gettempdir(), f"tercet-tests-ray-{getpass.getuser()}").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
