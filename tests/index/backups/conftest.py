"""A live collection, and where its backups lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.backups.records import Backup
from tercet.index.backups.store import BackupStore
from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits


@pytest.fixture
def names() -> list[str]:
    """Ids of documents."""
    return [f"d{number:02d}" for number in range(12)]


@pytest.fixture
def defaults() -> SearchDefaults:
    tuning = Tuning("000001", 225, 5, 3, plain=0.45, tuned=0.46)
    return SearchDefaults(Weights(1.25, 0.5, 1), CandidateLimits(50, 100), tuning)


@pytest.fixture
def store(tmp_path: Path) -> BackupStore:
    return BackupStore(tmp_path / "backups")


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    """An empty one with all sides."""
    settings = make_settings(random_texts(1, 0), "demo", fields={"year": "integer"}, lexical="idf", bm25=True)
    return Collection.create(root, "demo", settings)


@pytest.fixture
def live(collection: Collection) -> Iterator[LiveCollection]:
    """The collection, opened to be written to; it flushes and merges only where it is told to."""
    with LiveCollection(collection, LiveLimits(flush_seconds=3600, merge_width=2)) as live:
        yield live


@pytest.fixture
def put(random_texts: Any) -> Callable[..., None]:
    """Writes documents of these ids, whose contents other seeds make differently."""

    def write(live: LiveCollection, ids: list[str], seed: int) -> None:
        documents = [Document(id, f"text {seed} {id}", None, {"year": 2000 + seed}) for id in ids]
        live.put(documents, random_texts(len(ids), seed))

    return write


@pytest.fixture
def answers(random_texts: Any) -> Callable[[Any], list[Any]]:
    """Every hit of some queries, with all its scores."""
    queries = random_texts(4, 99)

    def search(snapshot: Any) -> list[Any]:
        return [
            [(hit.document, hit.score, hit.scores) for hit in result.hits]
            for row in range(len(queries))
            for result in [snapshot.search(queries.take(np.array([row])), text="text 3", top_k=40)]
        ]

    return search


@pytest.fixture
def opened(store: BackupStore) -> Callable[[Backup], Collection]:
    """The collection within a backup."""

    def open_backup(backup: Backup) -> Collection:
        layout = store.layout(backup)
        return Collection(layout, CollectionSettings.read(layout.settings))

    return open_backup


@pytest.fixture
def failing_at() -> Callable[..., Any]:
    """Lets one step at the disk fail, of those within the context: a force, a link, a name or a folder.

    killed: every later step fails, too, and nothing is removed any more, as where the process has died.
    """

    @contextmanager
    def fail(
        step: int, error: BaseException, *, done: bool = False, killed: bool = False
    ) -> Iterator[list[int]]:
        left = [step]

        def failing(function: Callable[..., Any]) -> Callable[..., Any]:
            def act(*arguments: Any, **options: Any) -> Any:
                left[0] -= 1
                if left[0] >= 0 or (left[0] < -1 and not killed):
                    return function(*arguments, **options)
                if done and left[0] == -1:
                    function(*arguments, **options)
                raise error

            return act

        def remove(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments, **options: left[0] < 0 or function(*arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", failing(os.fsync))
            patch.setattr(os, "link", failing(os.link))
            for name in ("replace", "rename", "mkdir"):
                patch.setattr(Path, name, failing(getattr(Path, name)))
            if killed:
                patch.setattr(Path, "unlink", remove(Path.unlink))
                patch.setattr(shutil, "rmtree", remove(shutil.rmtree))
            yield left

    return fail
