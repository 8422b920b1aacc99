"""A collection that is written now and then, and the answers that tell its snapshots apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots.pushing import push
from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.models.encoder import Encoder, encode
from tercet.service.collections.registry import CollectionRegistry

Write = Callable[..., None]
Answers = Callable[[Snapshot], list[Any]]


@pytest.fixture
def root(data: Path) -> Path:
    """The collections of a data root with `demo`."""
    return data / "collections"


@pytest.fixture
def stages(data: Path) -> Path:
    return data / "snapshots"


@pytest.fixture
def demo(root: Path) -> Collection:
    return Collection.open(root, "demo")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The data root of another machine."""
    folder = tmp_path / "other"
    (folder / "collections").mkdir(parents=True)
    return folder


@pytest.fixture
def write(tiny: Encoder) -> Write:
    """Writes and flushes documents of these ids, and deletes others."""

    def run(
        collection: Collection, *ids: str, text: str = "green tea", without: tuple[str, ...] = ()
    ) -> None:
        with LiveCollection(collection) as live:
            if without:
                live.delete(list(without))
            texts = [f"{text} {id}" for id in ids]
            live.put([Document(id, text) for id, text in zip(ids, texts, strict=True)], encode(tiny, texts))
            live.flush()

    return run


@pytest.fixture
def answers(tiny: Encoder) -> Answers:
    """Every hit of some queries, with all its scores."""

    def search(snapshot: Snapshot) -> list[Any]:
        return [
            (hit.document, hit.score, hit.scores)
            for text in ("green tea", "the train", "steam")
            for hit in snapshot.search(encode(tiny, [text], input_type="query"), top_k=40).hits
        ]

    return search


Publish = Callable[..., None]


@pytest.fixture
def published(demo: Collection, folder: FolderStore, stages: Path) -> FolderStore:
    """A store with a first snapshot, of five documents."""
    push(demo, folder, stages)
    return folder


@pytest.fixture
def publish(demo: Collection, folder: FolderStore, stages: Path, write: Any) -> Publish:
    """Publishes the collection with more documents, without others."""

    def run(*ids: str, without: tuple[str, ...] = ()) -> None:
        write(demo, *ids, without=without)
        push(demo, folder, stages)

    return run


@pytest.fixture
def registry(other: Path) -> Iterator[CollectionRegistry]:
    found = CollectionRegistry(other / "collections")
    yield found
    found.close()
