"""Fixtures that several packages' tests use."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test collections beside the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the test collections (../shared/data) are not here")
    return folder


@pytest.fixture(scope="session")
def embedded_checkpoint() -> Path:
    """The checkpoint that ships with the project."""
    return ROOT / "checkpoints" / "minilm-m3"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder that all processes of the run share; it is not to be changed.

    Called with the folder's name and the function that writes it, where no process has done so yet.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def make(name: str, write: Callable[[Path], object]) -> Path:
        folder = root / "made-once" / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                unfinished = folder.with_suffix(".unfinished")
                write(unfinished)
                unfinished.rename(folder)
        return folder

    return make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that at the end no process waits long for another."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
