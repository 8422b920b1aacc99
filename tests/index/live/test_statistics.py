"""What a collection says of itself, live and published."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.inspection import inspect_collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.statistics import published_statistics


def test_statistics_follow_writes_and_flushes(build: Any, three: Any, root: Any) -> None:
    documents, encoded = three
    collection: Collection = build(three)
    before = published_statistics(collection)
    assert (before.documents, before.deleted, before.segments, before.position) == (3, 0, 1, 0)
    assert dict(before.part_bytes) == inspect_collection(root, collection.settings.name).part_bytes
    with LiveCollection(collection) as live:
        live.put(documents[:1], encoded.take(np.array([0])))
        live.delete(["c"])
        found = live.stats()
        assert (found.documents, found.deleted, found.segments) == (2, 2, 1)
        assert (found.memory_documents, found.ledger_entries, found.position) == (1, 2, 2)
        assert found.memory_bytes > 0
        assert found.flushed_position == 0
        assert found.part_bytes == before.part_bytes
        live.delete(["a"])
        assert (live.stats().documents, live.stats().memory_documents) == (1, 0)
        live.put(documents[:1], encoded.take(np.array([0])))
        elsewhere = published_statistics(collection)
        assert (elsewhere.documents, elsewhere.memory_documents) == (3, 0)
        assert (elsewhere.ledger_entries, elsewhere.position, elsewhere.flushed_position) == (4, 4, 0)
        live.flush()
        found = live.stats()
        assert (found.documents, found.deleted, found.segments) == (2, 2, 2)
        assert (found.memory_documents, found.memory_bytes, found.ledger_entries) == (0, 0, 0)
        assert (found.position, found.flushed_position) == (4, 4)
        assert not found.flushing
        assert not found.merging
        assert live.merge() == 1  # most of the first segment is deleted
        assert (live.stats().deleted, live.stats().segments) == (0, 2)
    assert published_statistics(collection).documents == 2


def test_an_empty_collection_has_none(root: Any, three: Any, make_settings: Any) -> None:
    collection = Collection.create(root, "demo", make_settings(three[1], "demo"))
    found = published_statistics(collection)
    assert (found.documents, found.segments, found.position, dict(found.part_bytes)) == (0, 0, 0, {})


@pytest.mark.parametrize("what", ["flush", "merge"])
def test_statistics_wait_for_no_publication(
    build: Any, three: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    documents, encoded = three
    collection: Collection = build(three)
    begun, go_on, real = threading.Event(), threading.Event(), Publication.publish

    def held(self: Publication) -> None:
        begun.set()
        assert go_on.wait(60)
        real(self)

    with LiveCollection(collection) as live, ThreadPoolExecutor(2) as threads:
        live.delete(["b", "c"])
        live.flush()
        live.put(documents[:2], encoded.take(np.array([0, 1])))
        monkeypatch.setattr(Publication, "publish", held)
        working = threads.submit(live.flush if what == "flush" else live.merge)
        try:
            assert begun.wait(60)
            during = threads.submit(live.stats).result(60)  # a disk that hangs would hold the flush for ever
        finally:
            go_on.set()
        working.result(60)
        assert (during.documents, during.segments, during.deleted, during.position) == (2, 1, 3, 2)
        assert (during.memory_documents, during.ledger_entries, during.flushed_position) == (2, 1, 1)
        after = live.stats()
        assert (after.flushed_position, after.deleted) == ((2, 0) if what == "flush" else (1, 1))
