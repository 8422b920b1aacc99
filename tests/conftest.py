"""Fixtures that several packages' tests use."""

from pathlib import Path

import pytest

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that at the end no process waits long for another."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
