"""Writes whose ledger is on a store: none is lost with a disk, and one server at a time is the writer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.cluster.ledgers.chain import Trimming, batch_path, listed_numbers
from tercet.cluster.ledgers.promoting import Promoted, ledgers_at, promote
from tercet.cluster.objects.errors import DamagedObjectError
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots.published import newest_published
from tercet.index.collection import Collection
from tercet.index.errors import (
    CollectionBusyError,
    DamagedIndexError,
    StorageError,
    StorageFullError,
    WriterReplacedError,
    WriteUnknownError,
)
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import WriteKey
from tests.cluster.ledgers.conftest import FailingStore, Machine
from tests.index.live.live_process import NAME, SETTINGS, batches, put

Machines = Callable[[str], Machine]


def promoted(machine: Machine) -> Promoted:
    return promote(NAME, FolderStore(Path(machine.store.url.removeprefix("file://")).parent), machine.data)


def test_a_new_disk_gets_all_that_was_acknowledged(machine: Machines) -> None:
    key = WriteKey("k", "0" * 64)
    with machine("a").open() as live:
        put(live, 1)
        live.flush()
        put(live, 2)
        live.delete(["1-0", "1-1", "1-2"], key=key)
    assert promoted(machine("b")) == Promoted(NAME, 4, 3)
    with machine("b").open() as live:
        assert batches(live) == [2]
        assert live.delete(["1-0", "2-0"], key=WriteKey("k", "0" * 64)).documents == 3
        assert put(live, 3) == 4
    assert promoted(machine("c")).position == 4


def test_a_former_writer_is_refused_also_while_batches_are_removed(
    machine: Machines, store: FailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine("a").open() as live:
        put(live, 1)
    promoted(machine("b"))
    lists = iter([[*listed_numbers(store), 99], [*listed_numbers(store), 99]])

    def listed(other: FolderStore) -> list[int]:
        """With one that is removed until it is read."""
        return next(lists, None) or listed_numbers(other)

    monkeypatch.setattr("tercet.cluster.ledgers.chain.listed_numbers", listed)
    with pytest.raises(WriterReplacedError), machine("a").open():
        pass
    assert not list(lists)


def test_a_collection_that_was_written_before_is_published_first(machine: Machines) -> None:
    a = machine("a")
    with LiveCollection(a.open()._collection) as live:
        put(live, 1)
        put(live, 2)
    with a.open() as live:
        put(live, 3)
    assert promoted(machine("b")).position == 3
    with machine("b").open() as live:
        assert batches(live) == [1, 2, 3]
    with pytest.raises(CollectionBusyError, match=r"remove .*remote\.json to go on without"):
        LiveCollection(a.open()._collection).__enter__()


def test_a_former_writer_is_refused(machine: Machines, store: FailingStore) -> None:
    a, b = machine("a"), machine("b")
    with a.open() as former:
        put(former, 1)
        assert promoted(b).position == 1
        with b.open() as live:
            put(live, 2)
            for _ in range(2):
                with pytest.raises(WriterReplacedError, match=r"since epoch 2 of its ledger.*promote"):
                    put(former, 3)
            assert batches(former) == [1]
            put(live, 4)
            live.flush()
            live._remote.publish()  # type: ignore[union-attr]
        Trimming()(store, 3)
    with pytest.raises(WriterReplacedError), a.open():  # also after it came back
        pass
    with pytest.raises(WriterReplacedError), machine("empty").open():
        pass
    assert promoted(a).position == 3
    with a.open() as live:
        assert batches(live) == [1, 2, 4]
    with pytest.raises(WriterReplacedError), b.open():
        pass


def test_what_snapshots_hold_leaves_the_ledger_and_a_former_writer_is_refused_still(
    machine: Machines, store: FailingStore
) -> None:
    a, b, trim = machine("a"), machine("b"), Trimming()
    with a.open() as former:
        put(former, 1)
        promoted(b)
        with b.open() as live:
            for number in range(2, 6):
                put(live, number)
            live.flush()
            live._remote.publish()  # type: ignore[union-attr]
            put(live, 6)
            published = newest_published(store)
            assert published is not None
            assert published.manifest.ledger_position == 5
            for _ in range(2):
                trim(store, 5)
            assert listed_numbers(store) == [1, 3, 4, 9]  # who became the writer, and what is newer
            with pytest.raises(WriterReplacedError):
                put(former, 7)
            put(live, 8)
    assert promoted(machine("c")).position == 7
    with machine("c").open() as live:
        assert batches(live) == [1, 2, 3, 4, 5, 6, 8]


@pytest.mark.parametrize("failure", ["before", "after", "disk"])
@pytest.mark.parametrize("again", [False, True])
def test_a_write_that_fails_in_the_middle_is_there_whole_or_not_at_all(
    machine: Machines, store: FailingStore, monkeypatch: pytest.MonkeyPatch, failure: str, *, again: bool
) -> None:
    with machine("a").open() as live:
        put(live, 1)
        with monkeypatch.context() as patched:
            if failure == "disk":
                patched.setattr(Ledger, "append", _full)
            else:
                store.failures.append(failure)
            with pytest.raises(WriteUnknownError):
                put(live, 2)
        assert batches(live) == [1]
        if again:  # nobody can be asked whether it was made
            store.failures = ["before"]
            with pytest.raises(StorageError):
                put(live, 3)
            assert batches(live) == [1]
        there = [] if failure == "before" else [2]
        assert put(live, 4) == 2 + len(there)
        assert batches(live) == [1, *there, 4]
    with machine("a").open() as live:
        assert batches(live) == [1, *there, 4]
    promoted(machine("b"))
    with machine("b").open() as live:
        assert batches(live) == [1, *there, 4]


def _full(*_args: object, **_options: object) -> int:
    raise StorageFullError("full")


def test_who_took_over_meanwhile_has_the_number_of_a_write_in_doubt(
    machine: Machines, store: FailingStore
) -> None:
    with machine("a").open() as former:
        put(former, 1)
        store.failures.append("before")
        with pytest.raises(WriteUnknownError):
            put(former, 2)
        promoted(machine("b"))
        with pytest.raises(WriterReplacedError):
            put(former, 3)
        assert batches(former) == [1]


def test_a_torn_batch_is_told_and_what_has_no_name_yet_counts_nothing(
    machine: Machines, store: FailingStore
) -> None:
    with machine("a").open() as live:
        put(live, 1)
        put(live, 2)
    last = Path(store.url.removeprefix("file://")) / batch_path(3)
    content = last.read_bytes()
    (last.parent / f".{last.name}.0.new").write_bytes(content[:100])  # of a machine that lost its power
    assert promoted(machine("b")).position == 2
    torn = Path(store.url.removeprefix("file://")) / batch_path(2)
    for cut in (content[:-1], content[:40], b""):
        torn.write_bytes(cut)
        with pytest.raises(
            (DamagedIndexError, DamagedObjectError), match="000000000002 does not have the checksum"
        ):
            promoted(machine("c"))


@pytest.mark.slow
def test_a_kill_between_the_store_and_the_answer_loses_nothing(repository: Path, tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from tests.cluster.ledgers.conftest import FailingStore, Machine
from tests.index.live.live_process import put
class Killing(FailingStore):
    def create(self, path, content):
        super().create(path, content)
        if b"batch 2" in content:
            os.kill(os.getpid(), signal.SIGKILL)
folder = Path({str(tmp_path)!r})
with Machine(folder / "a", Killing(folder / "store" / "demo")).open() as live:
    put(live, 1)
    put(live, 2)
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=repository, check=False)
    assert killed.returncode == -9
    store = FailingStore(tmp_path / "store" / NAME)
    promoted(Machine(tmp_path / "copy", store))  # a wiped disk
    with Machine(tmp_path / "copy", store).open() as live:
        assert batches(live) == [1, 2]
    promoted(Machine(tmp_path / "a", store))
    with Machine(tmp_path / "a", store).open() as live:  # and that disk
        assert batches(live) == [1, 2]
        assert put(live, 3) == 3


def test_the_same_disk_goes_on_after_a_kill(machine: Machines, store: FailingStore) -> None:
    a = machine("a")
    with a.open() as live:
        put(live, 1)
        store.failures.append("after")
        with pytest.raises(WriteUnknownError):
            put(live, 2)
    with a.open() as live:  # it never heard of it
        assert batches(live) == [1, 2]
        assert put(live, 3) == 3


def test_an_older_copy_of_a_disk_is_not_taken_for_the_newest(machine: Machines, tmp_path: Path) -> None:
    a = machine("a")
    with a.open() as live:
        put(live, 1)
    shutil.copytree(a.data, tmp_path / "older")
    with a.open() as live:
        put(live, 2)
    with machine("older").open() as live:
        assert batches(live) == [1, 2]  # the ledger has it
        put(live, 3)
    shutil.copytree(machine("older").data, tmp_path / "oldest")
    with machine("older").open() as live:
        for number in (4, 5):
            put(live, number)
        live.flush()
        live._remote.publish()  # type: ignore[union-attr]
        put(live, 6)
    Trimming()(a.store, 5)
    with pytest.raises(DamagedIndexError, match="operations 4 to 5 are missing"), machine("oldest").open():
        pass


@pytest.mark.parametrize("last", ["fields", "build"])
def test_fields_and_builds_outlast_the_disk(machine: Machines, tmp_path: Path, last: str) -> None:
    (tmp_path / "built").mkdir()
    source = Collection.create(tmp_path / "built", NAME, SETTINGS)
    with LiveCollection(source) as live:
        put(live, 1)
        live.flush()
    with machine("a").open() as live:
        put(live, 2)
        if last == "fields":
            live.declare({"year": "integer"})
        else:
            live.adopt(live.begin_build(), source.layout)
        put(live, 3)
    with pytest.raises(CollectionBusyError, match=r"remove .*remote\.json to go on without"):
        Collection.named(tmp_path / "a" / "collections", NAME).writer().__enter__()
    promoted(machine("b"))
    with machine("b").open() as live:
        assert live.settings.fields == ({"year": "integer"} if last == "fields" else {})
        assert batches(live) == ([2, 3] if last == "fields" else [1, 3])


def test_a_deleted_collection_is_not_recovered(
    machine: Machines, store: FailingStore, tmp_path: Path
) -> None:
    above = FolderStore(tmp_path / "store")
    with machine("a").open() as live:
        put(live, 1)
        assert ledgers_at(above) == [NAME]
        live.end_remotely()
        with pytest.raises(WriterReplacedError):
            put(live, 2)
    assert ledgers_at(above) == []
    with machine("b").open() as live:  # another one of the name
        assert put(live, 3) == 1
    promoted(machine("c"))
    with machine("c").open() as live:
        assert batches(live) == [3]
