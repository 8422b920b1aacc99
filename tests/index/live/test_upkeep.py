"""Flushes and merges in the background, and writes that wait while memory is full."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.dense import building
from tercet.index.dense.library import faiss
from tercet.index.errors import StorageFullError, WriteOverloadedError, WriteTooLargeError
from tercet.index.ledger.ledger import Ledger
from tercet.index.live import upkeep as upkeep_module
from tercet.index.live.collection import LiveCollection
from tercet.index.live.merge import Merge, MergeStoppedError
from tercet.index.live.records import LiveLimits, LiveObserver, WriteStage
from tercet.index.live.threads import MERGE_NICENESS
from tercet.index.segments.writer import FilledSegment, SegmentWriter
from tercet.index.verify import verify

SECONDS = 30.0


class Noted(LiveObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.flushes: list[int] = []
        self.merges: list[int] = []
        self.failures: list[str] = []
        self.stages: list[WriteStage] = []

    def wrote(self, stage: WriteStage, seconds: float) -> None:
        self.stages.append(stage)

    def flushed(self, documents: int, seconds: float) -> None:
        self.flushes.append(documents)

    def merged(self, documents: int, seconds: float) -> None:
        self.merges.append(documents)

    def failed(self, error: Exception) -> None:
        self.failures.append(str(error))


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    return Collection.create(root, "demo", make_settings(random_texts(1, 0), "demo"))


def put(live: LiveCollection, texts: Any, ids: list[str]) -> None:
    live.put([Document(id, id) for id in ids], texts(1, 1).take(np.zeros(len(ids), np.int64)))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_full_memory_is_flushed_and_segments_are_merged(
    collection: Collection, root: Path, random_texts: Any
) -> None:
    noted = Noted()
    with LiveCollection(collection, LiveLimits(flush_documents=4, merge_width=2), noted) as live:
        for number in range(8):
            flushed = 4 * (number + 1)
            put(live, random_texts, [f"{number}-{letter}" for letter in "abcd"])
            wait_until(lambda flushed=flushed: sum(noted.flushes) == flushed)
        wait_until(lambda: sum(noted.merges) >= 32)
        assert live.snapshot().documents == collection.snapshot().documents == 32
    assert set(noted.stages) == {"log", "apply"}
    with LiveCollection(collection) as again:
        assert again.snapshot().documents == 32
    assert verify(root, "demo") == []


def test_many_bytes_are_flushed(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(flush_bytes=100)) as live:
        put(live, random_texts, ["a"])
        wait_until(lambda: collection.snapshot().documents == 1)


def test_what_waits_long_is_flushed_also_deletes(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(flush_seconds=0.05)) as live:
        put(live, random_texts, ["a", "b"])
        wait_until(lambda: collection.snapshot().documents == 2)
        live.delete(["a"])
        wait_until(lambda: collection.snapshot().documents == 1)
    with LiveCollection(collection, LiveLimits(flush_seconds=SECONDS)) as live:
        put(live, random_texts, ["c"])
    with LiveCollection(collection, LiveLimits(flush_seconds=0.05)):  # what an earlier process wrote
        wait_until(lambda: collection.snapshot().documents == 2)


def test_a_merge_that_is_asked_for_begins_at_once(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(merge_width=2)) as live:
        for id in "abcd":
            put(live, random_texts, [id])
            with live._running().merge._publisher.lock:  # for which the flush waits
                live.begin_merge()
                assert live.stats().flushing
            wait_until(lambda: not (live.stats().flushing or live.stats().merging))
            assert live.stats().ledger_entries == 0
        assert (live.stats().segments, live.stats().documents) == (1, 4)


def test_a_flush_that_fails_is_tried_again(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "RETRY_SECONDS", 0.01)

    def full(self: Publication) -> None:
        raise OSError(28, "No space left on device")

    noted = Noted()
    with LiveCollection(collection, LiveLimits(flush_documents=1), noted) as live:
        with monkeypatch.context() as patched:
            patched.setattr(Publication, "publish", full)
            put(live, random_texts, ["a"])
            wait_until(lambda: len(noted.failures) >= 2)
            assert "No space left" in noted.failures[0]
            assert collection.snapshot().documents == 0
        wait_until(lambda: collection.snapshot().documents == 1)
        assert live.snapshot().documents == 1


def test_writes_wait_for_a_flush_and_are_refused_when_that_takes_too_long(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, real = threading.Event(), Publication.publish

    def wait(self: Publication) -> None:
        assert slow.wait(SECONDS)
        real(self)

    monkeypatch.setattr(Publication, "publish", wait)
    limits = LiveLimits(flush_documents=2, memory_documents=4, wait_seconds=0.1)
    with LiveCollection(collection, limits) as live:
        for id in "abcd":
            put(live, random_texts, [id])
        with pytest.raises(WriteOverloadedError, match=r"4 documents that wait .* limits are 4 documents"):
            put(live, random_texts, ["e"])
        assert live.delete(["a"]).documents == 1  # it needs no room
        assert live.snapshot().documents == 3
        slow.set()
        wait_until(lambda: live._running().committer.state.memory_documents < 4)
        put(live, random_texts, ["e"])
        assert live.snapshot().documents == 4


def test_a_write_larger_than_memory_is_refused(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(memory_documents=2)) as live:
        with pytest.raises(WriteTooLargeError, match=r"3 documents .* limits are 2 documents .* split it"):
            put(live, random_texts, ["a", "b", "c"])
        assert live.position == 0
    with (
        LiveCollection(collection, LiveLimits(memory_bytes=10)) as live,
        pytest.raises(WriteTooLargeError, match="10 bytes"),
    ):
        put(live, random_texts, ["a"])


@pytest.mark.slow
def test_closing_ends_a_merge_under_way(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, real = threading.Event(), SegmentWriter.append
    limits = LiveLimits(flush_documents=1, merge_width=2)

    def slow(self: SegmentWriter, *rows: Any) -> None:
        real(self, *rows)
        if threading.current_thread().name == "tercet-merge":
            begun.set()
            time.sleep(0.05)

    monkeypatch.setattr(SegmentWriter, "append", slow)
    with LiveCollection(collection, limits) as live:
        for number in range(60):
            put(live, random_texts, [str(number)])
            if not begun.is_set():  # one segment each, as two of unlike size are not merged
                wait_until(lambda: live._running().committer.state.memory_documents == 0)
        assert begun.wait(SECONDS)
    monkeypatch.setattr(SegmentWriter, "append", real)
    # Which begins no merge of its own, of which closing would leave a folder, too.
    with LiveCollection(Collection.open(root, "demo"), LiveLimits(merge_width=64)) as again:
        assert again.snapshot().documents == 60
        again.flush()
    assert not [path for path in collection.layout.segments.iterdir() if path.suffix == ".partial"]
    assert verify(root, "demo") == []


def test_merges_are_put_off_and_one_under_way_is_given_up(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, real, noted = threading.Event(), threading.Event(), SegmentWriter.append, Noted()

    def held(self: SegmentWriter, *rows: Any) -> None:
        real(self, *rows)
        if threading.current_thread().name == "tercet-merge":
            begun.set()
            assert go_on.wait(SECONDS)

    monkeypatch.setattr(SegmentWriter, "append", held)
    with LiveCollection(collection, LiveLimits(flush_documents=1, merge_width=2), noted) as live:
        upkeep = live._running().upkeep
        for id in "ab":
            put(live, random_texts, [id])
            wait_until(lambda: live._running().committer.state.memory_documents == 0)
        assert begun.wait(SECONDS)
        live.put_off_merges(3600)
        go_on.set()
        wait_until(lambda: "merge" in upkeep._alarms)
        assert live.stats().segments == 2
        assert live.stats().merging
        live.put_off_merges(0)
        upkeep._run_merge()  # as the alarm would in an hour
        wait_until(lambda: live.stats().segments == 1)
    assert noted.failures == []


def test_a_merge_that_cannot_be_stopped_publishes_nothing_after_the_end(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    real, merging = FilledSegment.finish, list[threading.Thread]()

    def long(self: FilledSegment, kind: Any, *_: Any) -> Any:
        if threading.current_thread().name == "tercet-merge":
            merging.append(threading.current_thread())
            begun.set()
            assert go_on.wait(SECONDS)
            ended.set()
        return real(self, kind)

    monkeypatch.setattr(FilledSegment, "finish", long)
    monkeypatch.setattr(upkeep_module, "MERGE_STOP_SECONDS", 0.05)
    with LiveCollection(collection, LiveLimits(flush_documents=1, merge_width=2)) as live:
        for id in "ab":
            put(live, random_texts, [id])
            wait_until(lambda: live._running().committer.state.memory_documents == 0)
        assert begun.wait(SECONDS)
    current = collection.current()
    with LiveCollection(Collection.open(root, "demo")) as again:
        go_on.set()
        merging[0].join(SECONDS)
        assert ended.is_set()
        assert collection.current() == current
        put(again, random_texts, ["c"])
        again.flush()
        assert collection.snapshot().documents == 3
    assert verify(root, "demo") == []


def test_background_threads_leave_the_processor_to_others(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, int] = {}
    real = Merge.run

    def noting(self: Merge, *arguments: Any) -> bool:
        found["merge"] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        found["cores"] = faiss.omp_get_max_threads()
        return real(self, *arguments)

    monkeypatch.setattr(Merge, "run", noting)
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    with LiveCollection(collection, LiveLimits(flush_documents=1)) as live:
        put(live, random_texts, ["a"])
        wait_until(lambda: "merge" in found)
    assert found["merge"] == min(19, own + MERGE_NICENESS)
    assert found["cores"] == max(1, faiss.omp_get_max_threads() // 2)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_a_merge_rests_where_it_cannot_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    stopped = SimpleNamespace(wait=waits.append, is_set=lambda: len(waits) > 1)
    committer = SimpleNamespace(busy_seconds=5.0, written_documents=0)
    now = 100.0
    monkeypatch.setattr(upkeep_module.time, "perf_counter", lambda: now)
    pace = upkeep_module._Pace(stopped, lambda: False, committer)  # type: ignore[arg-type]
    for written, busy in ((0, 0.0), (upkeep_module.FAST_WRITES, 0.5), (upkeep_module.FAST_WRITES + 1, 0.25)):
        now += 1.0
        committer.written_documents += written
        committer.busy_seconds += busy
        pace.rest()
    assert waits == [0.25 * upkeep_module.RESTS]
    committer.written_documents += 1  # in no time at all
    with pytest.raises(MergeStoppedError):
        pace.rest()
    with pytest.raises(MergeStoppedError):
        pace.require_going()
    assert len(waits) == 2


def test_a_graph_that_is_built_at_the_end_is_given_up(
    collection: Collection, root: Path, random_texts: Any, make_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Collection.create(root, "graph", make_settings(random_texts(1, 0), "graph", dense_kind="hnsw"))
    begun, rows = threading.Event(), []
    real = faiss.IndexHNSWSQ.add

    def slow(self: Any, vectors: Any) -> None:
        rows.append(len(vectors))
        begun.set()
        assert live._running().upkeep._stopped.wait(SECONDS)
        real(self, vectors)

    monkeypatch.setattr(building, "HNSW_ROWS", 500)
    monkeypatch.setattr(faiss.IndexHNSWSQ, "add", slow)
    with LiveCollection(made, LiveLimits(flush_documents=10_000, merge_width=2)) as live:
        for half in ("a", "b"):
            ids = [f"{half}{number}" for number in range(600)]
            live.put([Document(id, id) for id in ids], random_texts(600, ord(half)))
            live.flush()
        live.begin_merge()
        assert begun.wait(SECONDS)
        (merging,) = live._running().upkeep._threads.merges.threads
    merging.join(SECONDS)
    assert not merging.is_alive()
    assert rows == [500]  # of 1,200
    assert made.snapshot().documents == 1_200
    with LiveCollection(made):
        assert [path.name for path in made.layout.segments.iterdir() if path.suffix == ".partial"] == []


def test_a_merge_that_fails_is_tried_again(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "RETRY_SECONDS", 0.01)
    failures = [OSError(28, "No space left on device")]
    publish = Merge._publish

    def full_once(self: Merge, *args: Any) -> None:
        if failures:
            raise failures.pop()
        publish(self, *args)

    monkeypatch.setattr(Merge, "_publish", full_once)
    noted = Noted()
    with LiveCollection(collection, LiveLimits(merge_width=2), noted) as live:
        for id in "ab":
            put(live, random_texts, [id])
            live.flush()
        live.begin_merge()
        wait_until(lambda: noted.merges == [2])
        assert "No space left" in noted.failures[0]
        assert live.stats().segments == 1


def test_patches_wait_for_room_too(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveCollection(collection, LiveLimits(memory_documents=1, wait_seconds=0.05)) as live:
        put(live, random_texts, ["a"])
        with pytest.raises(WriteOverloadedError):
            live.patch("a", {"year": 1})
        live.flush()
        live.patch("a", {"year": 1})


def test_a_trim_that_fails_is_tried_again(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "RETRY_SECONDS", 0.01)
    failures = [StorageFullError("no space left on the disk") for _ in range(2)]
    trim = Ledger.trim

    def full_twice(self: Ledger, up_to: int) -> None:
        if failures:
            raise failures.pop()
        trim(self, up_to)

    monkeypatch.setattr(Ledger, "trim", full_twice)
    noted = Noted()
    with LiveCollection(collection, LiveLimits(flush_documents=1), noted) as live:
        put(live, random_texts, ["a"])
        wait_until(lambda: live._running().ledger.trimmed_position == 1)  # without another write
        assert (len(noted.failures), noted.flushes) == (2, [1])
        assert live.snapshot().documents == 1


def test_what_segments_hold_leaves_the_ledger_after_the_opening(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def dying(self: Ledger, up_to: int) -> None:
            raise StorageFullError("no space left on the disk")

        patched.setattr(Ledger, "trim", dying)
        with LiveCollection(collection) as live:
            put(live, random_texts, ["a"])
            with pytest.raises(StorageFullError):
                live.flush()
    with LiveCollection(collection, LiveLimits(flush_seconds=0.05)) as again:
        wait_until(lambda: again._running().ledger.trimmed_position == 1)


def test_segments_are_merged_after_the_opening(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(merge_width=64)) as live:
        for number in range(16):
            put(live, random_texts, [str(number)])
            live.flush()
        assert live.stats().segments == 16
    with LiveCollection(collection, LiveLimits(merge_width=8)) as again:
        wait_until(lambda: again.stats().segments <= 2)  # of 8 documents each, without a write
        assert again.snapshot().documents == 16
