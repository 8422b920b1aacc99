"""One Ray of this machine at a time: some ports of a head are fixed, and whichever starts first has them."""

from __future__ import annotations

import fcntl
import getpass
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tercet.cluster.ray.session import prepare


@pytest.fixture(scope="session", autouse=True)
def first_import() -> None:
    """Ray reads at its first import in a process whether there are tokens: no test is to decide that."""
    if find_spec("ray") is not None:
        prepare(None)
        import ray  # noqa: F401 - for what it reads then


@pytest.fixture(scope="module")
def ray_alone() -> Iterator[None]:
    """Holds Ray for the tests of a module; those of another process wait."""
    with Path(tempfile.gettempdir(), f"tercet-tests-ray-{getpass.getuser()}").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
