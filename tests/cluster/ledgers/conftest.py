"""Servers' data roots whose collection has its ledger on a store, and stores that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.cluster.ledgers.store_ledger import StoreLedger
from tercet.cluster.objects.errors import UnreachableStoreError
from tercet.cluster.objects.folder import FolderStore
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tests.index.live.live_process import LIMITS, NAME, SETTINGS


class FailingStore(FolderStore):
    """A folder whose creations fail before or after they are made, as often as `failures` says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.failures: list[str] = []

    def create(self, path: str, content: bytes) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure == "before":
            raise UnreachableStoreError(f"{self.url} is lost")
        super().create(path, content)
        if failure == "after":
            raise UnreachableStoreError(f"{self.url} is lost")


class Machine:
    """A data root, whose collection is made with the first `open`."""

    def __init__(self, data: Path, store: FolderStore) -> None:
        self.data = data
        self.store = store

    def open(self) -> LiveCollection:
        """The collection, to be written."""
        root = self.data / "collections"
        root.mkdir(parents=True, exist_ok=True)
        there = (root / NAME).exists()
        collection = Collection.named(root, NAME) if there else Collection.create(root, NAME, SETTINGS)
        remote = StoreLedger(collection.layout, self.store, self.data / "snapshots")
        return LiveCollection(collection, LIMITS, remote=remote)


@pytest.fixture
def store(tmp_path: Path) -> FailingStore:
    """That of the collection."""
    return FailingStore(tmp_path / "store" / NAME)


@pytest.fixture
def machine(tmp_path: Path, store: FailingStore) -> Callable[[str], Machine]:
    """Makes data roots, by name."""
    return lambda name: Machine(tmp_path / name, store)
