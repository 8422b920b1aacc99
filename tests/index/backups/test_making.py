"""Backups: complete, verified, of one moment, and there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tercet.index.backups import copying
from tercet.index.backups.making import make_backup
from tercet.index.backups.records import Backup
from tercet.index.backups.store import BackupStore
from tercet.index.collection import Collection, delete_collection
from tercet.index.errors import (
    BackupNotFoundError,
    CollectionBusyError,
    DamagedIndexError,
    InvalidNameError,
    SearchIndexError,
    StorageError,
    UnforcedPublicationError,
)
from tercet.index.live.collection import LiveCollection
from tercet.index.verified import file_problems


def back_up(collection: Collection, store: BackupStore, live: LiveCollection | None = None) -> Backup:
    """A backup of all that was written."""
    if live is not None:
        live.flush()
    return make_backup(collection, store)


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_holds_every_write_before_it_and_none_after(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    put: Any,
    names: Any,
    answers: Any,
    opened: Any,
    defaults: Any,
) -> None:
    put(live, names, 1)
    live.flush()
    live.delete(names[:2])
    put(live, names[4:6], 2)
    live.patch(names[7], {"year": 1999})
    collection.store_defaults(defaults)
    before, position = answers(live.snapshot()), live.position
    backup = back_up(collection, store, live)
    assert (backup.collection, backup.position, backup.documents) == ("demo", position, 10)
    assert store.list("demo") == [backup]
    assert store.get("demo", backup.id) == backup
    put(live, names, 3)
    live.delete(names[:6])
    live.flush()
    live.merge()
    assert answers(live.snapshot()) != before
    assert answers(opened(backup).snapshot()) == before
    assert opened(backup).defaults() == defaults
    folder = store.layout(backup).folder
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "backup.json"]
    assert backup.size_bytes == sum(path.stat().st_size for path in files)


def test_files_are_linked_and_survive_merges_and_the_collections_end(
    collection: Collection, root: Path, store: BackupStore, put: Any, names: Any, answers: Any, opened: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, names, 1)
        live.flush()
        live.delete(names[:2])
        before = answers(live.snapshot())
        backup = back_up(collection, store, live)
        layout = store.layout(backup)
        for folder in ("segments", "deletes"):
            found = {
                p.relative_to(layout.folder): p.stat().st_ino for p in (layout.folder / folder).rglob("*.*")
            }
            assert found
            for path, inode in found.items():
                assert (collection.layout.folder / path).stat().st_ino == inode
        live.delete(names)
        live.flush()
        live.merge()
    delete_collection(root, "demo")
    assert answers(opened(backup).snapshot()) == before
    assert list(file_problems(layout, opened(backup).manifest())) == []
    assert store.list("demo") == [backup]


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()], ids=["io", "int"]
)
@pytest.mark.parametrize("done", [False, True])
def test_whichever_step_fails_there_is_no_backup(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    put: Any,
    names: Any,
    failing_at: Any,
    error: BaseException,
    done: bool,
    tmp_path: Path,
) -> None:
    put(live, names, 1)
    live.flush()
    live.delete(names[:2])
    live.flush()
    step = 0
    while True:
        with failing_at(step, error, done=done) as left:
            with suppress(KeyboardInterrupt, OSError, StorageError, UnforcedPublicationError):
                backup = back_up(collection, store, live)
            if left[0] >= 0:
                break
        assert store.list("demo") == [], step
        if (tmp_path / "backups" / "demo").exists():
            assert names_of(tmp_path / "backups" / "demo") in ([], ["LOCK"]), step
        step += 1
    assert step > 20
    assert store.list("demo") == [backup]


@pytest.mark.parametrize("done", [False, True])
def test_whenever_it_is_killed_a_backup_is_whole_or_not_there(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    put: Any,
    names: Any,
    opened: Any,
    failing_at: Any,
    done: bool,
    tmp_path: Path,
) -> None:
    put(live, names, 1)
    live.flush()
    live.delete(names[:2])
    live.flush()
    step, reached = 0, True
    while reached:
        with failing_at(step, OSError(errno.EIO, "killed"), done=done, killed=True) as left:
            with suppress(OSError, StorageError):
                make_backup(collection, store)
            reached = left[0] < 0
        for backup in store.list("demo"):
            assert list(file_problems(store.layout(backup), opened(backup).manifest())) == [], step
            assert opened(backup).snapshot().documents == 10
            store.delete("demo", backup.id)
        step += 1
    assert step > 15
    made = make_backup(collection, store)
    assert names_of(tmp_path / "backups" / "demo") == sorted([made.id, "LOCK"])


def test_a_publication_meanwhile_gives_the_one_moment_or_the_other(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    put: Any,
    names: Any,
    answers: Any,
    opened: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed, ids in enumerate((names[:6], names[6:])):
        put(live, ids, seed)
        live.flush()
    real, linked = copying.link_folder, []

    def link_and_merge(*arguments: Any) -> None:
        real(*arguments)
        linked.append(arguments)
        if len(linked) == 1:
            live.delete(names[:1])
            live.flush()
            assert live.merge() == 1  # removes the segments, one of which is linked already

    monkeypatch.setattr(copying, "link_folder", link_and_merge)
    backup = back_up(collection, store, live)
    assert len(linked) == 2  # the first of before, the one that was merged
    assert answers(opened(backup).snapshot()) == answers(live.snapshot())
    assert names_of(store.layout(backup).segments) == names_of(collection.layout.segments)


def test_each_backup_is_of_one_moment_while_documents_are_written(
    collection: Collection, store: BackupStore, put: Any, opened: Any
) -> None:
    """Each write gives two documents the same year: a backup with two years would be of no moment."""
    stopped, failures = threading.Event(), list[Exception]()
    with LiveCollection(collection) as live:

        def write() -> None:
            try:
                for seed in range(1, 100_000):
                    if stopped.is_set():
                        return
                    put(live, ["left", "right"], seed)
                    if seed % 5 == 0:
                        live.flush()
                        live.merge()
            except (SearchIndexError, OSError) as error:
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(10):
                least = live.position
                backup = back_up(collection, store, live)
                assert backup.position >= least
                snapshot = opened(backup).snapshot()
                left, right = snapshot.get("left"), snapshot.get("right")
                if backup.position:
                    assert left.metadata == right.metadata
        finally:
            stopped.set()
            writer.join()
    assert not failures


def test_whether_something_is_to_be_flushed_before_is_told(
    collection: Collection, store: BackupStore, put: Any, names: Any
) -> None:
    assert not collection.has_unpublished()
    with LiveCollection(collection) as live:
        put(live, names, 1)
        assert collection.has_unpublished()
        assert make_backup(collection, store).documents == 0  # of what is published
    assert collection.has_unpublished()
    with LiveCollection(collection) as live:
        live.flush()
        assert not collection.has_unpublished()
        assert make_backup(collection, store).documents == 12
    assert len(store.list("demo")) == 2


def test_a_collection_without_documents_has_backups_too(
    collection: Collection, store: BackupStore, opened: Any
) -> None:
    backup = back_up(collection, store)
    assert (backup.position, backup.documents) == (0, 0)
    assert opened(backup).snapshot().documents == 0


def test_a_damaged_collection_has_no_backup(
    collection: Collection, live: LiveCollection, store: BackupStore, put: Any, names: Any
) -> None:
    put(live, names, 1)
    live.flush()
    path = max(collection.layout.segments.rglob("*.*"), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedIndexError, match=rf"{path.name} does not have the checksum"):
        back_up(collection, store, live)
    collection.layout.settings.write_text(collection.layout.settings.read_text() + " ")
    with pytest.raises(DamagedIndexError, match="was altered since"):
        back_up(collection, store, live)
    assert store.list("demo") == []


def test_across_file_systems_files_are_copied(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    put: Any,
    names: Any,
    answers: Any,
    opened: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    put(live, names, 1)
    monkeypatch.setattr(os, "link", link)
    backup = back_up(collection, store, live)
    files = list(store.layout(backup).segments.rglob("*.*"))
    assert files
    assert all(path.stat().st_nlink == 1 for path in files)
    assert answers(opened(backup).snapshot()) == answers(live.snapshot())


def test_one_backup_at_a_time_and_what_a_killed_one_left_is_removed(
    collection: Collection, store: BackupStore, tmp_path: Path
) -> None:
    with store.locked("demo"), pytest.raises(CollectionBusyError, match="backups of collection 'demo'"):
        back_up(collection, store)
    left = tmp_path / "backups" / "demo" / "20261123t024501-ab12.partial"
    left.mkdir()
    (left / "backup.json").write_text("{}")
    assert store.list("demo") == []
    backup = back_up(collection, store)
    assert names_of(tmp_path / "backups" / "demo") == sorted([backup.id, "LOCK"])


def test_backups_are_deleted_one_by_one(collection: Collection, store: BackupStore, tmp_path: Path) -> None:
    first, second = (back_up(collection, store) for _ in range(2))
    store.delete("demo", first.id)
    assert store.list("demo") == [second]
    for id in (first.id, "..", "../demo", "20261123t024501-zzzz", "", f"{second.id}/segments"):
        for action in (store.get, store.delete):
            with pytest.raises(BackupNotFoundError, match="has no backup"):
                action("demo", id)
    with pytest.raises(InvalidNameError):
        store.get("../demo", second.id)
    (store.layout(second).folder / "backup.json").write_text("{")
    assert store.list("demo") == []
    with pytest.raises(DamagedIndexError, match=r"backup\.json"):
        store.get("demo", second.id)
    store.delete("demo", second.id)  # also a damaged one
    assert names_of(tmp_path / "backups" / "demo") == ["LOCK"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("position", -1),
        ("documents", "3"),
        ("size_bytes", True),
        ("collection", "../x"),
        ("created", "now"),
        ("id", "x"),
        ("more", 1),
        ("format_version", 2),
    ],
)
def test_a_wrong_record_is_damage(collection: Collection, store: BackupStore, key: str, value: Any) -> None:
    backup = back_up(collection, store)
    path = store.layout(backup).folder / "backup.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(DamagedIndexError, match=r"backup\.json"):
        store.get("demo", backup.id)
