"""Many written collections share threads and files: those that nobody writes to are closed for others."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, TooManyFilesError
from tercet.index.live.collection import LiveCollection
from tercet.index.live.parts import WRITER_FILES
from tercet.index.live.records import LiveLimits
from tercet.index.verify import verify
from tercet.service.collections import live as live_collections
from tercet.service.collections.live import LiveCollections, LiveOptions
from tercet.service.collections.registry import CollectionRegistry
from tests.service.collections.test_live import BUILT, ids_of, write


def many(repository: Path, root: Path, command: str, collections: int, files: int) -> subprocess.Popen[str]:
    """A process that writes to many collections."""
    script = Path(__file__).with_name("many_collections.py")
    root.mkdir()
    return subprocess.Popen(
        [sys.executable, str(script), command, str(root), str(collections), str(files)],
        cwd=repository,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_many_collections_share_threads_and_files(tmp_path: Path, repository: Path) -> None:
    done = many(repository, tmp_path / "collections", "measure", 120, 256)
    said = json.loads(done.communicate(timeout=200)[0])
    assert done.returncode == 0
    assert said["documents"] == [[1], [3], [3]]
    assert said["counted"] == [360, 360]
    assert said["files"] <= 256 // 2  # connections have the other half
    assert said["threads"] <= 40
    assert said["scrape_seconds"] <= 0.02  # of processor time
    assert said["left"][1] <= 20  # threads that end by themselves


@pytest.mark.slow
def test_a_crash_while_collections_are_closed_for_others_loses_nothing(
    tmp_path: Path, repository: Path
) -> None:
    root = tmp_path / "collections"
    writing = many(repository, root, "write", 6, 84)  # which leaves room for two of them
    assert writing.stdout is not None
    answered = [writing.stdout.readline() for _ in range(40)]
    writing.kill()
    answered += writing.communicate()[0].splitlines(keepends=True)
    counts = Counter(line.strip() for line in answered if line.endswith("\n"))
    registry = CollectionRegistry(root)
    registry.open_written()
    for name, least in counts.items():
        found = {document.id for document in registry.snapshot(name).page(None, 1000)}
        assert found >= {str(number) for number in range(least)}
        assert len(found) <= least + 1
        assert verify(root, name) == []
    registry.close()


def test_one_that_nobody_writes_to_is_closed_and_opened_by_the_next_write(
    root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_collections, "IDLE_SECONDS", 0.0)
    registry = CollectionRegistry(root, LiveOptions(LiveLimits(flush_seconds=1000)))
    with registry.writing("demo") as live:
        write(live, tiny, "x")
    registry.release_superseded()
    with pytest.raises(CollectionBusyError), LiveCollection(Collection.open(root, "demo")):
        pass  # what was written is in memory and the ledger alone
    with registry.writing("demo") as live:
        live.flush()
        live.begin_merge()
        wait_until(lambda: live.is_idle)
        registry.release_superseded()
        assert registry.statistics("demo").segments == 2  # it stays open while somebody writes
        before = live.snapshot()
    registry.release_superseded()
    assert ids_of(registry) == [*BUILT, "x"]
    assert registry.snapshot("demo").version == before.version
    with LiveCollection(Collection.open(root, "demo")) as elsewhere:
        write(elsewhere, tiny, "y")
    with registry.writing("demo") as live:
        write(live, tiny, "z")
    assert ids_of(registry) == [*BUILT, "x", "y", "z"]
    registry.close()


def test_a_scrape_reads_no_file_of_one_that_was_closed_for_another(
    root: Path, tiny: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(root.parent, tiny, "another")
    monkeypatch.setattr(live_collections, "MOST_OPEN", 1)
    registry = CollectionRegistry(root)
    for name in ("demo", "another"):
        with registry.writing(name) as live:
            write(live, tiny, "x")
    assert registry.open_counts == (("read", 0), ("written", 1))
    monkeypatch.delattr("tercet.service.collections.counts.published_counts")
    assert [(name, found.documents) for name, found in registry.all_statistics()] == [
        ("another", 6),
        ("demo", 6),
    ]
    registry.close()


def test_one_that_is_built_stays_open(
    root: Path, tiny: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(root.parent, tiny, "another")
    monkeypatch.setattr(live_collections, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(live_collections, "MOST_OPEN", 1)
    registry = CollectionRegistry(root)
    with registry.writing("demo") as live:
        under_way = live.begin_build()
        wait_until(lambda: live._running().upkeep.is_idle)
    registry.release_superseded()
    with registry.writing("another") as other:
        write(other, tiny, "x")
    with registry.writing("demo") as again:
        assert again is live
        under_way.close()
    registry.release_superseded()
    with registry.writing("demo") as again:
        assert again is not live
    registry.close()


def test_what_takes_more_files_than_are_left_is_refused(root: Path, tiny: Any, build: Any) -> None:
    build(root.parent, tiny, "another")
    live = LiveCollections(root, LiveOptions(), lambda: 2 * WRITER_FILES - 1)
    with live.writing("demo") as first:
        write(first, tiny, "x")
        with pytest.raises(
            TooManyFilesError, match=r"'another' takes 5 open files to be written, and the 9 that the index"
        ):
            live.writing("another").__enter__()
    with live.writing("another") as second:  # the first is published and closed for it
        write(second, tiny, "y")
    assert live.get("demo") is None
    assert Collection.open(root, "demo").snapshot().documents == 6
    live.close()


def test_one_that_cannot_be_flushed_stays_open(
    root: Path, tiny: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(root.parent, tiny, "another")
    monkeypatch.setattr(live_collections, "MOST_OPEN", 1)
    registry = CollectionRegistry(root)
    with registry.writing("demo") as live:
        write(live, tiny, "x")

    def full(_: Publication) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "publish", full)
        with registry.writing("another") as live:
            write(live, tiny, "y")
    assert ids_of(registry) == [*BUILT, "x"]
    with registry.writing("demo") as live:
        write(live, tiny, "z")
    assert ids_of(registry) == [*BUILT, "x", "z"]
    registry.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
