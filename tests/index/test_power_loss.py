"""What is acknowledged outlives a loss of power, at whichever moment it comes.

tests/index/live/test_durability.py does the same at moments between any two system calls, where there is
strace to show them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.index.backups.making import make_backup
from tercet.index.backups.restoring import restore_as, restore_into
from tercet.index.backups.store import BackupStore
from tercet.index.backups.verifying import require_sound
from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection, delete_collection, list_collections, open_stage
from tercet.index.errors import StorageError, UnforcedPublicationError
from tercet.index.ledger.file import log_of
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import LedgerReader
from tercet.index.ledger.records import LedgerEntry
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tercet.index.verify import verify
from tests.index.forced_disk import ForcedDisk

IDS = [f"d{number}" for number in range(8)]
KEPT: dict[str, Callable[[Path], bool]] = {
    "no name": lambda _: False,
    "every name": lambda _: True,
    "names below a collection": lambda folder: folder.name in ("segments", "manifests", "deletes"),
}
LIMITS = LiveLimits(flush_seconds=3600, merge_width=2)
DEFAULTS = SearchDefaults(Weights(1, 0.5, 1), CandidateLimits(50, 60), Tuning("000001", 10, 5, 0, 0.4, 0.5))
EFFORT = DenseEffort(100, 8, "flat", "000001", 0.9, 0.95, 10, 20, "documents")


class World:
    """Collections and their backups below one folder, and what an operation does with them."""

    def __init__(self, base: Path, texts: Any, disk: ForcedDisk) -> None:
        self.disk = disk
        self.root = base / "data" / "collections"
        self.backups = BackupStore(base / "data" / "backups")
        self.texts = texts

    def documents(self, ids: list[str], seed: int) -> tuple[list[Document], Any]:
        return [Document(id, f"text {seed} of {id}", None, {"year": 2000 + seed}) for id in ids], self.texts(
            len(ids), seed
        )

    def story(self, settings: Any) -> Iterator[str]:
        """Operations, each acknowledged when it yields its name."""
        collection = Collection.create(self.root, "demo", settings)
        yield "created"
        with collection.writer() as writer:
            writer.add(*self.documents(IDS[:4], 1))
            writer.publish()
        yield "built"
        with LiveCollection(collection, LIMITS):
            pass  # its ledger is there, so that the folder is forced for what is published alone
        with collection.writer() as writer:
            writer.add(*self.documents(IDS[:4], 7))
            self.disk.failing = collection.layout.folder
            with pytest.raises(UnforcedPublicationError):
                writer.publish()
        with collection.writer():
            pass
        yield "opened to be built again"
        collection.store_defaults(DEFAULTS)
        yield "defaults stored"
        collection.store_effort(EFFORT)
        yield "effort stored"
        with LiveCollection(collection, LIMITS) as live:
            live.put(*self.documents(IDS[3:6], 2))
            yield "put"
            live.delete([IDS[0]])
            yield "deleted"
            live.flush()
            yield "flushed"
            live.put(*self.documents(IDS[5:7], 6))
            self.disk.failing = collection.layout.folder
            with pytest.raises(UnforcedPublicationError):
                live.flush()
        with LiveCollection(collection, LIMITS) as live:
            live.merge()  # which opening begins: it must not publish beside what is compared
            yield "opened to be written again"
            live.patch(IDS[4], {"year": 1990})
            yield "patched"
            live.flush()
            live.merge()
            yield "merged"
            backup = make_backup(collection, self.backups)
            yield "backed up"
            collection.remove_effort()
            collection.remove_defaults()
            yield "defaults removed"
            build = live.begin_build()
            stage = open_stage(collection, "abc")
            with stage.writer(mark="abc") as writer:
                writer.add(*self.documents(IDS[2:7], 3))
                writer.publish()
            live.put(*self.documents(IDS[:1], 4))
            live.adopt(build, stage.layout, "replace", "abc")
            build.close()
            yield "adopted"
            live.put(*self.documents(IDS[1:2], 5))
            restore_into(collection, live, self.backups, backup)
            yield "restored"
        yield "closed"
        Aliases(self.root).put("other", "demo")
        yield "named"
        restore_as(self.root, "copy", self.backups, backup)
        yield "restored as another"
        Aliases(self.root).remove("other")
        yield "unnamed"
        self.backups.delete("demo", backup.id)
        yield "backup deleted"
        delete_collection(self.root, "demo")
        yield "collection deleted"


def sound(base: Path) -> None:
    """Whatever is there can be opened and verified."""
    root, store = base / "data" / "collections", BackupStore(base / "data" / "backups")
    for name in list_collections(root):
        problems = verify(root, name)
        if not Collection.open(root, name).layout.current.exists():  # within the first publication
            problems = [problem for problem in problems if "first build was interrupted" not in problem]
        assert problems == []
    for folder in (base / "data" / "backups").glob("*/*"):
        if folder.is_dir() and folder.suffix != ".partial":
            backup = store.get(folder.parent.name, folder.name)
            layout = store.layout(backup)
            current = layout.read_current()
            assert current is not None
            require_sound(layout, Manifest.read(layout.manifest(current)), lambda *_: None)


def told(base: Path) -> dict[str, Any]:
    """All that a person has acknowledged: collections, their documents and defaults, aliases, backups."""
    root, store = base / "data" / "collections", BackupStore(base / "data" / "backups")
    found: dict[str, Any] = {"aliases": dict(Aliases(root).all())}
    found["backups"] = [backup.id for backup in store.list("demo")]
    for name in list_collections(root):
        collection = Collection.open(root, name)
        current = collection.current()  # before a merge begins, as it may with the opening
        with LiveCollection(collection, LIMITS) as live:
            snapshot = live.snapshot()
            documents = [snapshot.get(id) for id in IDS]
            found[name] = (
                collection.settings,
                current,
                documents,
                collection.defaults(),
                collection.effort(),
            )
    return found


@pytest.mark.slow
def test_what_is_acknowledged_outlives_a_loss_of_power(
    tmp_path: Path, random_texts: Any, make_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, numbers = tmp_path / "base", iter(range(10_000))
    base.mkdir()
    disk = ForcedDisk(base)

    def laid_out(check: Callable[[Path], Any], kept: str) -> Any:
        place = tmp_path / f"left{next(numbers)}"
        try:
            return check(disk.lay_out(place, KEPT[kept]))
        finally:
            shutil.rmtree(place)

    checking = False

    def renamed() -> None:
        nonlocal checking
        if not checking:  # opening what is left renames, too
            checking = True
            for kept in KEPT:
                laid_out(sound, kept)
            checking = False

    settings = make_settings(
        random_texts(1, 0), "demo", fields={"year": "integer"}, lexical="idf", bm25=True, dense_kind="flat"
    )
    with disk.followed(monkeypatch, renamed):
        acknowledged = 0
        for operation in World(base, random_texts, disk).story(settings):
            checking = True
            copied = shutil.copytree(base, tmp_path / f"copy{next(numbers)}")
            expected = told(copied)
            for kept in KEPT:
                assert laid_out(told, kept) == expected, (operation, kept)
            checking = False
            acknowledged += 1
    disk.close()
    assert acknowledged == 21
    assert list(expected) == ["aliases", "backups", "copy"]


@pytest.mark.parametrize("failing", [None, 0, 1, 3])
def test_a_ledger_outlives_a_loss_of_power_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int | None
) -> None:
    """Also what is acknowledged after a force that failed."""
    base, there = tmp_path / "base", list[str]()
    base.mkdir()
    disk = ForcedDisk(base)
    with disk.followed(monkeypatch, lambda: None), Ledger.open(base / "ledger.sqlite") as ledger:
        for number in range(5):
            if number == failing:
                disk.failing = log_of(base / "ledger.sqlite")
                with pytest.raises(StorageError):
                    ledger.append([LedgerEntry(f"{number}", bytes(3000))])
            else:
                ledger.append([LedgerEntry(f"{number}", bytes(3000))])
                there.append(f"{number}")
            left = disk.lay_out(tmp_path / f"left{number}", KEPT["no name"])
            with LedgerReader.open(left / "ledger.sqlite") as reader:
                assert [entry.kind for _, entry in reader.entries(0)] == there
    disk.close()
