"""What is published and followed goes on from what was: nothing takes its place but on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots.errors import NotContinuedError
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.published import newest_number
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.catalog.lineage import GAP, Lineage
from tercet.index.collection import Collection, delete_collection
from tercet.index.errors import PositionLostError
from tercet.index.live.collection import LiveCollection
from tercet.service.collections.registry import CollectionRegistry


@pytest.fixture
def published(demo: Collection, folder: FolderStore, stages: Path, write: Any) -> FolderStore:
    """A store with a snapshot of six documents, of a collection at position 1."""
    write(demo, "new")
    push(demo, folder, stages)
    return folder


@pytest.fixture
def follower(folder: FolderStore, tmp_path: Path) -> Iterator[tuple[Follower, CollectionRegistry]]:
    data = tmp_path / "follower"
    (data / "collections").mkdir(parents=True)
    registry, opened = CollectionRegistry(data / "collections"), Follower(folder.url, data)
    yield opened, registry
    opened.close()
    registry.close()


@pytest.fixture
def anew(demo: Collection, other: Path, write: Any) -> Collection:
    """The collection as a server makes it that lost its disk, with a document written since."""
    made = Collection.create(other / "collections", "demo", demo.settings.of_new_collection("demo"))
    for id in ("a", "b", "c"):
        write(made, id)
    return made


def documents_of(followed: tuple[Follower, CollectionRegistry]) -> int:
    follower, registry = followed
    follower.look(registry)
    return registry.snapshot("demo").documents


def test_a_writer_that_came_back_empty_empties_nobody(
    published: FolderStore, anew: Collection, follower: Any, other: Path
) -> None:
    assert documents_of(follower) == 6
    with pytest.raises(NotContinuedError, match=r"another collection of this name.*--force"):
        push(anew, published, other / "snapshots")
    assert newest_number(published) == 1
    assert documents_of(follower) == 6
    forced = push(anew, published, other / "snapshots", force=True).published
    assert (forced.number, forced.manifest.ledger_position > GAP) == (2, True)
    assert documents_of(follower) == 3
    assert push(Collection.open(other / "collections", "demo"), published, other / "snapshots").new is False


def test_an_older_copy_takes_nothing_back(
    published: FolderStore, demo: Collection, root: Path, other: Path, stages: Path, write: Any, follower: Any
) -> None:
    shutil.copytree(root / "demo", other / "collections" / "demo")  # such as a file system's backup
    write(demo, "later")
    push(demo, published, stages)
    copy = Collection.open(other / "collections", "demo")
    with pytest.raises(NotContinuedError, match="writes up to position 2, and this copy, at position 1"):
        push(copy, published, other / "snapshots")
    for id in ("a", "b", "c"):  # more than the other one has, at positions of their own
        write(copy, id)
    with pytest.raises(NotContinuedError, match="writes up to position 2"):
        push(copy, published, other / "snapshots")
    assert documents_of(follower) == 7
    push(copy, published, other / "snapshots", force=True)
    assert documents_of(follower) == 9
    with pytest.raises(NotContinuedError):
        push(demo, published, stages)


def test_who_pulls_goes_on_and_who_was_lost_does_not(
    published: FolderStore, demo: Collection, other: Path, stages: Path, write: Any, follower: Any
) -> None:
    pull(other / "collections", "demo", published, other / "snapshots")
    recovered = Collection.open(other / "collections", "demo")
    pull(other / "collections", "demo", published, other / "snapshots")  # again: nothing was written since
    write(recovered, "after")
    with pytest.raises(NotContinuedError, match="--force"):
        pull(other / "collections", "demo", published, other / "snapshots")
    assert documents_of(follower) == 6
    assert push(recovered, published, other / "snapshots").new
    assert documents_of(follower) == 7
    write(demo, "before")  # the former server, which comes back
    with pytest.raises(NotContinuedError):
        push(demo, published, stages)
    pull(demo.layout.folder.parent, "demo", published, stages, force=True)
    assert push(demo, published, stages).published.number == 3
    assert documents_of(follower) == 7


def test_a_position_of_a_lost_write_is_told_for_ever(
    published: FolderStore, demo: Collection, other: Path, stages: Path, write: Any, tiny: Any
) -> None:
    write(demo, "lost")  # at position 2, of which the store knows nothing
    pull(other / "collections", "demo", published, other / "snapshots")
    recovered = Collection.open(other / "collections", "demo")
    write(recovered, "one")
    write(recovered, "new", text="changed")
    with LiveCollection(recovered) as live:
        assert live.position > GAP
        with pytest.raises(
            PositionLostError, match="position 2 of collection 'demo' is of a write that was lost"
        ):
            live.patch("new", {"a": 1}, if_position=2)
        with pytest.raises(PositionLostError, match="read the documents again"):
            live.patch("new", {"a": 1}, if_position=live.position + 1)
        live.patch("new", {"a": 1}, if_position=live.position)


def test_what_was_emptied_and_pushed_again_is_seen(
    published: FolderStore, demo: Collection, stages: Path, write: Any, follower: Any, anew: Collection
) -> None:
    assert documents_of(follower) == 6
    for content in ("later", None):
        published.delete([each.path for each in published.list()])
        if content is not None:
            write(demo, content)
            assert push(demo, published, stages).published.number == 1
        else:
            push(anew, published, stages)
        assert documents_of(follower) == 7  # and not the other collection of this name


def test_a_collection_made_anew_after_it_was_deleted_takes_its_place(
    published: FolderStore, demo: Collection, root: Path, stages: Path, write: Any, follower: Any
) -> None:
    assert documents_of(follower) == 6
    delete_collection(root, "demo")
    made = Collection.create(root, "demo", demo.settings.of_new_collection("demo"))
    write(made, "a")
    assert push(made, published, stages).new
    assert documents_of(follower) == 1


def test_what_an_older_release_wrote_gets_a_lineage_with_its_next_write(
    demo: Collection, folder: FolderStore, stages: Path, write: Any, root: Path, follower: Any
) -> None:
    demo.layout.lineage.unlink()
    old = Collection.open(root, "demo")
    assert old.settings.lineage is None
    assert push(old, folder, stages).published.lineage is None
    assert not push(old, folder, stages).new
    assert documents_of(follower) == 5
    write(old, "new")
    pushed = push(Collection.open(root, "demo"), folder, stages).published
    assert pushed.lineage == Lineage.read(demo.layout.folder) is not None
    assert documents_of(follower) == 6
