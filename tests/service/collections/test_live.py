"""Collections that a server writes: opened when needed, found again after a restart, deleted and closed."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, CollectionNotFoundError, InvalidNameError
from tercet.index.files.lock import ExclusiveLock
from tercet.index.live.adoption import Adoption
from tercet.index.live.collection import LiveCollection
from tercet.models.encoder import encode
from tercet.service.collections.counts import PublishedCounts
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.exceptions import NotReadyError


def write(live: LiveCollection, encoder: Any, *ids: str) -> None:
    live.put([Document(id, f"tea {id}") for id in ids], encode(encoder, [f"tea {id}" for id in ids]))


def ids_of(registry: CollectionRegistry) -> list[str]:
    return [document.id for document in registry.snapshot("demo").page(None, 100)]


BUILT = ["black", "leaf", "rail", "steam/engine", "tea"]


def test_each_write_is_in_the_next_snapshot_and_earlier_ones_stay(root: Path, tiny: Any) -> None:
    registry = CollectionRegistry(root)
    published = registry.snapshot("demo")
    with registry.writing("demo") as live:
        write(live, tiny, "x")
        first = registry.snapshot("demo")
        write(live, tiny, "y")
    assert [published.documents, first.documents, registry.snapshot("demo").documents] == [5, 6, 7]
    assert registry.describe("demo").documents == 7
    assert [each.documents for each in registry.list()] == [7]
    registry.close()


async def test_a_snapshot_is_made_once_for_each_write(root: Path, tiny: Any) -> None:
    registry = CollectionRegistry(root)
    assert (await registry.open_to_write("demo")).name == "demo"
    first = await registry.open("demo")
    assert await registry.open("demo") is first
    with registry.writing("demo") as live:
        write(live, tiny, "x")
        second = await registry.open("demo")
        assert (second.documents, await registry.open("demo") is second) == (6, True)
        live.flush()
    registry.release_superseded()
    third = await registry.open("demo")
    assert (third.name, third.documents) == ("000002", 6)
    assert registry.describe("demo").snapshot == "000002"
    registry.close()


def test_what_was_acknowledged_is_found_after_a_restart(root: Path, tiny: Any) -> None:
    first = CollectionRegistry(root)
    with first.writing("demo") as live:
        write(live, tiny, "x")
    first.close()
    second = CollectionRegistry(root)
    assert ids_of(second) == BUILT  # as other processes see it
    second.open_written()
    assert ids_of(second) == [*BUILT, "x"]
    with second.writing("demo") as live:
        live.flush()
    second.close()
    third = CollectionRegistry(root)
    third.open_written()
    assert ids_of(third) == [*BUILT, "x"]
    with Collection.open(root, "demo").writer():  # all was published, so it was left alone
        pass


def test_one_that_is_damaged_or_busy_is_logged_and_hides_no_other(
    root: Path, tiny: Any, build: Any, caplog: Any
) -> None:
    for name in ("another", "third"):
        build(root.parent, tiny, name)
    first = CollectionRegistry(root)
    for name in ("another", "demo", "third"):
        with first.writing(name) as live:
            write(live, tiny, "x")
    first.close()
    (root / "another" / "ledger.sqlite").write_bytes(b"nonsense" * 1000)
    held = LiveCollection(Collection.open(root, "demo"))
    with held:
        second = CollectionRegistry(root)
        second.open_written()
        documents = [second.snapshot(name).documents for name in ("another", "demo", "third")]
        assert documents == [5, 5, 6]
        assert [record.args[0] for record in caplog.records if record.levelname == "ERROR"] == [
            "another",
            "demo",
        ]
        with pytest.raises(CollectionBusyError), second.writing("demo"):
            pass
    with second.writing("demo"):
        assert second.snapshot("demo").documents == 6
    second.close()


def test_deleting_waits_for_writes_that_have_begun(root: Path, tiny: Any) -> None:
    registry = CollectionRegistry(root)
    entered, leave, deleted = threading.Event(), threading.Event(), threading.Event()

    def writes() -> None:
        with registry.writing("demo") as live:
            entered.set()
            assert leave.wait(60)
            write(live, tiny, "x")

    def deletes() -> None:
        registry.delete("demo")
        deleted.set()

    threads = [threading.Thread(target=work) for work in (writes, deletes)]
    threads[0].start()
    assert entered.wait(60)
    threads[1].start()
    assert not deleted.wait(0.1)
    leave.set()
    for thread in threads:
        thread.join(60)
    assert deleted.is_set()
    for call in (lambda: registry.writing("demo").__enter__(), lambda: registry.snapshot("demo")):
        with pytest.raises(CollectionNotFoundError):
            call()
    registry.close()


def test_a_deletion_that_fails_leaves_what_was_written(
    root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectionRegistry(root)
    with registry.writing("demo") as live:
        write(live, tiny, "x")

    def fail(*_: Any) -> None:
        raise OSError(5, "broken")

    with monkeypatch.context() as patched:
        patched.setattr("tercet.service.collections.live.delete_collection", fail)
        with pytest.raises(OSError, match="broken"):
            registry.delete("demo")
    assert ids_of(registry) == [*BUILT, "x"]
    with registry.writing("demo") as live:
        write(live, tiny, "y")
    assert ids_of(registry) == [*BUILT, "x", "y"]
    registry.close()


def test_one_whose_folder_is_gone_is_forgotten(root: Path, tiny: Any, build: Any) -> None:
    registry = CollectionRegistry(root)
    with registry.writing("demo") as live:
        write(live, tiny, "x")
    shutil.rmtree(root / "demo")
    with pytest.raises(CollectionNotFoundError):
        registry.snapshot("demo")
    registry.release_superseded()
    build(root.parent, tiny)
    assert ids_of(registry) == BUILT
    with registry.writing("demo") as live:
        write(live, tiny, "y")
    assert ids_of(registry) == [*BUILT, "y"]
    registry.close()


def test_one_made_anew_in_its_folder_is_another(root: Path, tiny: Any, build: Any) -> None:
    registry = CollectionRegistry(root)
    with registry.writing("demo") as live:
        write(live, tiny, "x")
    shutil.rmtree(root / "demo")
    build(root.parent, tiny)
    with registry.writing("demo") as live:
        write(live, tiny, "y")
    assert ids_of(registry) == [*BUILT, "y"]
    registry.close()


def test_a_closed_registry_opens_nothing(root: Path) -> None:
    registry = CollectionRegistry(root)
    registry.close()
    with pytest.raises(NotReadyError), registry.writing("demo"):
        pass


def test_names_never_become_paths(root: Path) -> None:
    registry = CollectionRegistry(root)
    for name in ("../demo", "", "Demo"):
        with pytest.raises(InvalidNameError), registry.writing(name):
            pass
    with pytest.raises(CollectionNotFoundError), registry.writing("none"):
        pass


def test_many_threads_open_one_collection(root: Path, tiny: Any) -> None:
    registry = CollectionRegistry(root)
    faults: list[str] = []

    def writes(number: int) -> None:
        try:
            with registry.writing("demo") as live:
                write(live, tiny, str(number))
        except Exception as error:  # noqa: BLE001 - the test reports whatever it is
            faults.append(repr(error))

    threads = [threading.Thread(target=writes, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert registry.snapshot("demo").documents == 13
    registry.close()


async def test_what_a_build_brought_is_in_the_next_snapshot(
    root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a search came between the adoption's position and its publication."""
    registry = CollectionRegistry(root)
    await registry.open_to_write("demo")
    with registry.writing("demo") as live, live.begin_build() as build:
        settings = live.settings
        folder = root.parent / "stage"
        folder.mkdir()
        settings.write(folder / "collection.json")
        stage = Collection(CollectionLayout(folder), settings)
        with stage.writer() as writer:
            writer.add([Document("new", "tea")], encode(tiny, ["tea"]))
            writer.publish()
        publish = Adoption._publish

        def searched_before(self: Adoption, *args: Any) -> None:
            registry.snapshot("demo")
            publish(self, *args)

        monkeypatch.setattr(Adoption, "_publish", searched_before)
        live.adopt(build, stage.layout)
        found = await registry.open("demo")
        assert [document.id for document in found.page(None, 100)] == ["new"]
    registry.close()


def test_last_writes_that_could_not_be_opened_at_the_start_are_found_once_they_can(
    root: Path, tiny: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before = CollectionRegistry(root)
    with before.writing("demo") as live:
        write(live, tiny, "x")
    before.close()
    lock = ExclusiveLock(CollectionLayout(root / "demo").lock, "demo")
    lock.acquire()
    registry = CollectionRegistry(root)
    registry.open_written()
    registry.release_superseded()
    assert ids_of(registry) == BUILT
    assert [record.levelname for record in caplog.records if "demo" in record.message] == ["ERROR"]
    lock.release()
    registry.release_superseded()
    assert ids_of(registry) == [*BUILT, "x"]
    registry.close()


def test_counts_are_read_again_only_where_files_changed(root: Path, tiny: Any, build: Any) -> None:
    counts = PublishedCounts(root)
    first = counts.of("demo")
    assert (first.documents, first.segments, first.ledger_entries) == (5, 1, 0)
    assert counts.of("demo") is first
    with LiveCollection(Collection.open(root, "demo")) as live:
        write(live, tiny, "x")
        written = counts.of("demo")
        assert (written.documents, written.ledger_entries) == (5, 1)
        live.flush()
        assert (counts.of("demo").documents, counts.of("demo").ledger_entries) == (6, 0)
    shutil.rmtree(root / "demo")
    build(root.parent, tiny)
    assert counts.of("demo").documents == 5
