"""Restored backups answer as their collection did; a damaged one changes nothing."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tercet.index import verified
from tercet.index.backups.making import make_backup
from tercet.index.backups.records import Backup
from tercet.index.backups.restoring import restore_as, restore_into
from tercet.index.backups.store import BackupStore
from tercet.index.catalog.aliases import Aliases
from tercet.index.collection import Collection, delete_collection, list_collections
from tercet.index.errors import (
    CollectionBusyError,
    CollectionExistsError,
    DamagedIndexError,
    FingerprintMismatchError,
    InvalidNameError,
    StorageError,
    UnforcedPublicationError,
)
from tercet.index.files.lock import ExclusiveLock
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify


def back_up(collection: Collection, store: BackupStore, live: LiveCollection | None = None) -> Backup:
    """A backup of all that was written."""
    if live is not None:
        live.flush()
    return make_backup(collection, store)


@pytest.fixture
def backup(
    collection: Collection, live: LiveCollection, store: BackupStore, put: Any, names: Any, defaults: Any
) -> Backup:
    """Of three segments' writes, some of which are deleted again, with defaults; then all is changed."""
    for seed, ids in enumerate((names[:5], names[5:9], names[8:])):
        put(live, ids, seed)
        live.flush()
    live.delete(names[:2])
    collection.store_defaults(defaults)
    made = back_up(collection, store, live)
    collection.remove_defaults()
    put(live, [*names[3:7], "later"], 7)
    live.delete(names[9:])
    return made


@pytest.fixture
def former(backup: Backup, opened: Any, answers: Any) -> list[Any]:
    """What the collection answered when the backup was made."""
    return answers(opened(backup).snapshot())


def test_a_collection_answers_as_before_to_the_last_digit(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    backup: Backup,
    former: Any,
    answers: Any,
    defaults: Any,
    root: Path,
    put: Any,
) -> None:
    position = live.position
    assert answers(live.snapshot()) != former
    name = restore_into(collection, live, store, backup)
    assert collection.current() == name
    assert answers(live.snapshot()) == answers(collection.snapshot()) == former
    assert collection.defaults() == defaults
    put(live, ["new"], 8)
    assert live.position > position
    assert live.snapshot().documents == backup.documents + 1
    live.flush()
    live.merge()
    assert verify(root, "demo") == []
    restore_into(collection, live, store, backup)  # it is as it was
    assert answers(live.snapshot()) == former
    assert verify(root, "demo") == []


def test_what_was_restored_is_not_verified_again(
    store: BackupStore, backup: Backup, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored = restore_as(root, "restored", store, backup)
    monkeypatch.setattr(verified, "file_problems", lambda *_: pytest.fail("verified again"))
    restored.snapshot()


def test_what_is_written_while_a_backup_is_restored_stays(
    collection: Collection, live: LiveCollection, store: BackupStore, backup: Backup, put: Any, names: Any
) -> None:
    def write(done: int, total: int) -> None:
        if done == total:
            put(live, ["during"], 9)
            live.delete(names[2:3])

    restore_into(collection, live, store, backup, write)
    ids = {id for id in [*names, "during", "later"] if live.snapshot().get(id) is not None}
    assert ids == {*names[3:], "during"}


def test_defaults_that_there_were_not_are_removed(
    collection: Collection, live: LiveCollection, store: BackupStore, defaults: Any
) -> None:
    backup = back_up(collection, store, live)
    collection.store_defaults(defaults)
    restore_into(collection, live, store, backup)
    assert collection.defaults() is None


def test_an_empty_backup_empties_a_collection(
    collection: Collection, live: LiveCollection, store: BackupStore, put: Any, names: Any, root: Path
) -> None:
    backup = back_up(collection, store, live)
    put(live, names, 1)
    restore_into(collection, live, store, backup)
    assert live.snapshot().documents == 0
    assert restore_as(root, "other", store, backup).snapshot().documents == 0
    assert verify(root, "other") == []


def test_a_backup_becomes_a_collection_of_another_name(
    store: BackupStore, backup: Backup, former: Any, answers: Any, defaults: Any, root: Path, put: Any
) -> None:
    restored = restore_as(root, "other", store, backup)
    assert (restored.settings.name, list_collections(root)) == ("other", ["demo", "other"])
    assert answers(Collection.open(root, "other").snapshot()) == former
    assert restored.defaults() == defaults
    assert verify(root, "other") == []
    assert not list(root.glob(".*"))
    with LiveCollection(restored) as live:
        put(live, ["new"], 8)
        assert live.position == backup.position + 1
    with LiveCollection(restored) as live:  # a position that was given twice would be taken for an old write
        assert live.snapshot().get("new") is not None
        live.flush()
        live.merge()
    assert verify(root, "other") == []
    assert restored.snapshot().documents == backup.documents + 1


def test_the_backup_of_a_deleted_collection_brings_it_back(
    collection: Collection, store: BackupStore, put: Any, names: Any, root: Path, answers: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, names, 1)
        former = answers(live.snapshot())
        backup = back_up(collection, store, live)
    delete_collection(root, "demo")
    assert answers(restore_as(root, "demo", store, backup).snapshot()) == former
    assert verify(root, "demo") == []


def test_merges_of_what_was_restored_leave_the_backup_as_it_is(
    store: BackupStore, backup: Backup, former: Any, answers: Any, opened: Any, root: Path, names: Any
) -> None:
    restored = restore_as(root, "other", store, backup)
    with LiveCollection(restored) as live:
        live.delete(names)
        live.flush()
    delete_collection(root, "other")
    assert answers(opened(backup).snapshot()) == former
    assert answers(restore_as(root, "other", store, backup).snapshot()) == former


def test_names_that_are_taken_are_refused(
    store: BackupStore, backup: Backup, root: Path, tmp_path: Path
) -> None:
    Aliases(root).put("alias", "demo")
    (root / "folder").mkdir()
    for name in ("demo", "alias", "folder"):
        with pytest.raises(CollectionExistsError, match="another name"):
            restore_as(root, name, store, backup)
    for name in ("../x", "", "A"):
        with pytest.raises(InvalidNameError):
            restore_as(root, name, store, backup)
    assert list_collections(root) == ["demo"]
    assert not (tmp_path / "x").exists()


def test_a_name_that_is_taken_meanwhile_is_refused(store: BackupStore, backup: Backup, root: Path) -> None:
    def take(done: int, total: int) -> None:
        if done == total:
            Aliases(root).put("other", "demo")

    with pytest.raises(CollectionExistsError, match="'other' is an alias"):
        restore_as(root, "other", store, backup, take)
    assert not list(root.glob(".*"))


def damage(folder: Path, what: str) -> None:
    """Harms a backup; the collection's own files stay as they are."""
    if what == "byte":
        path = max((folder / "segments").rglob("*.*"), key=lambda path: path.stat().st_size)
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.unlink()
        path.write_bytes(content)
    elif what == "marks":
        path = next((folder / "deletes").iterdir())
        path.unlink()
    elif what == "manifest":
        path = next((folder / "manifests").iterdir())
        path.write_text(path.read_text().replace('"tokens": ', '"tokens": 1'))
        path.write_text(path.read_text()[:-20])
    else:
        (folder / what).unlink()


@pytest.mark.parametrize("what", ["byte", "marks", "manifest", "collection.json", "CURRENT", "backup.json"])
def test_a_damaged_backup_is_refused_and_nothing_changes(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    backup: Backup,
    answers: Any,
    root: Path,
    what: str,
) -> None:
    before = answers(live.snapshot())
    damage(store.layout(backup).folder, what)
    with pytest.raises(DamagedIndexError):
        restore_into(collection, live, store, store.get("demo", backup.id))
    with pytest.raises(DamagedIndexError):
        restore_as(root, "other", store, store.get("demo", backup.id))
    assert answers(live.snapshot()) == before
    assert collection.defaults() is None
    assert list_collections(root) == ["demo"]
    assert not list(root.glob(".*"))
    live.begin_build().close()  # none is under way


def test_a_collection_made_anew_with_other_settings_refuses_the_backup(
    collection: Collection, store: BackupStore, root: Path, random_texts: Any, make_settings: Any
) -> None:
    backup = back_up(collection, store)
    delete_collection(root, "demo")
    other = Collection.create(root, "demo", make_settings(random_texts(1, 0), "demo"))
    with LiveCollection(other) as live, pytest.raises(FingerprintMismatchError, match="under a new name"):
        restore_into(other, live, store, backup)


@pytest.mark.slow
@pytest.mark.parametrize("done", [False, True])
def test_whichever_step_fails_a_collection_is_as_before_or_restored(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    backup: Backup,
    former: Any,
    answers: Any,
    put: Any,
    failing_at: Any,
    root: Path,
    done: bool,
) -> None:
    step, restored = 0, False
    while not restored:
        put(live, ["other"], step % 3)
        before = answers(live.snapshot())
        with failing_at(step, OSError(errno.EIO, "Input/output error"), done=done) as left:
            try:
                restore_into(collection, live, store, backup)
            except UnforcedPublicationError:
                pass
            except (OSError, StorageError):
                assert answers(live.snapshot()) in (before, former)
            restored = left[0] >= 0
        assert answers(live.snapshot()) in (before, former), step
        live.flush()
        assert verify(root, "demo") == [], step
        step += 1
    assert step > 20
    assert answers(live.snapshot()) == former


@pytest.mark.parametrize("done", [False, True])
def test_whichever_step_fails_there_is_no_new_collection(
    store: BackupStore, backup: Backup, former: Any, answers: Any, failing_at: Any, root: Path, done: bool
) -> None:
    step = 0
    while True:
        with failing_at(step, OSError(errno.EIO, "Input/output error"), done=done) as left:
            with suppress(OSError, StorageError):
                restore_as(root, "other", store, backup)
            if left[0] >= 0:
                break
        assert list_collections(root) == ["demo"], step
        assert not list(root.glob(".restored-*")), step
        step += 1
    assert step > 20
    assert answers(Collection.open(root, "other").snapshot()) == former


@pytest.mark.slow
@pytest.mark.parametrize("done", [False, True])
def test_whenever_it_is_killed_a_new_collection_is_whole_or_not_there(
    store: BackupStore, backup: Backup, former: Any, answers: Any, failing_at: Any, root: Path, done: bool
) -> None:
    step, reached = 0, True
    while reached:
        with failing_at(step, OSError(errno.EIO, "killed"), done=done, killed=True) as left:
            with suppress(OSError, StorageError):
                restore_as(root, "other", store, backup)
            reached = left[0] < 0
        if list_collections(root) != ["demo"]:
            assert list_collections(root) == ["demo", "other"], step
            assert verify(root, "other") == []
            assert answers(Collection.open(root, "other").snapshot()) == former
            delete_collection(root, "other")
        step += 1
    assert step > 15
    restore_as(root, "other", store, backup)
    assert not list(root.glob(".*"))


def test_what_a_killed_restore_left_is_removed_and_not_what_one_under_way_has(
    store: BackupStore, backup: Backup, root: Path
) -> None:
    for name in (".restored-left-00", ".restored-busy-00"):
        (root / name).mkdir()
        (root / name / "collection.json").write_text("{}")
    lock = ExclusiveLock(root / ".restored-busy-00" / "LOCK", "a restore")
    lock.acquire()
    restore_as(root, "other", store, backup)
    assert [path.name for path in root.glob(".restored-*")] == [".restored-busy-00"]
    lock.release()
    restore_as(root, "another", store, backup)
    assert not list(root.glob(".restored-*"))


def test_one_restore_at_a_time(
    collection: Collection, live: LiveCollection, store: BackupStore, backup: Backup, root: Path
) -> None:
    with store.locked("demo"), pytest.raises(CollectionBusyError):
        restore_into(collection, live, store, backup)
    with store.locked("demo"), pytest.raises(CollectionBusyError):
        restore_as(root, "other", store, backup)
    with live.begin_build(), pytest.raises(CollectionBusyError, match="build or restore"):
        restore_into(collection, live, store, backup)


def test_a_backup_that_was_copied_elsewhere_is_restored(
    collection: Collection, store: BackupStore, backup: Backup, former: Any, answers: Any, tmp_path: Path
) -> None:
    """As after the loss of a disk: the folder of backups is all that is left."""
    shutil.copytree(tmp_path / "backups", tmp_path / "new" / "backups")
    other = BackupStore(tmp_path / "new" / "backups")
    root = tmp_path / "new" / "collections"
    restored = restore_as(root, "demo", other, other.list("demo")[0])
    assert answers(restored.snapshot()) == former
