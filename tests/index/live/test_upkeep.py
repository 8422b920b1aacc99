"""Flushes and merges in the background, and writes that wait while memory is full."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.dense.library import faiss
from tercet.index.errors import StorageFullError, WriteOverloadedError, WriteTooLargeError
from tercet.index.ledger.ledger import Ledger
from tercet.index.live import upkeep as upkeep_module
from tercet.index.live.collection import LiveCollection
from tercet.index.live.merge import Merge
from tercet.index.live.records import LiveLimits, LiveObserver, WriteStage
from tercet.index.live.threads import MERGE_NICENESS
from tercet.index.verify import verify

SECONDS = 30.0


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    return Collection.create(root, "demo", make_settings(random_texts(1, 0), "demo"))


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
