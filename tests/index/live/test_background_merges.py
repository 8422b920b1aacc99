"""Merges in the background: when they wait, rest, fail and are given up."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.dense import building
from tercet.index.dense.library import faiss
from tercet.index.live import upkeep as upkeep_module
from tercet.index.live.collection import LiveCollection
from tercet.index.live.merge import Merge, MergeStoppedError
from tercet.index.live.records import LiveLimits
from tercet.index.segments.writer import FilledSegment, SegmentWriter
from tercet.index.verify import verify
from tests.index.live.test_upkeep import SECONDS, Noted, put, wait_until


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    return Collection.create(root, "demo", make_settings(random_texts(1, 0), "demo"))


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


def test_segments_are_merged_after_the_opening(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LiveLimits(merge_width=64)) as live:
        for number in range(16):
            put(live, random_texts, [str(number)])
            live.flush()
        assert live.stats().segments == 16
    with LiveCollection(collection, LiveLimits(merge_width=8)) as again:
        wait_until(lambda: again.stats().segments <= 2)  # of 8 documents each, without a write
        assert again.snapshot().documents == 16
