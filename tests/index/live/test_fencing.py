"""A fence: what was acknowledged before it is there, and nothing after it, also in the next process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.fence import Fence
from tercet.index.catalog.lineage import ShardPart
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, CollectionFencedError, DamagedIndexError
from tercet.index.live.collection import LiveCollection

ALONE = ShardPart("0", 0, 1)


@pytest.fixture
def collection(root: Path, live_settings: Any) -> Collection:
    """An empty collection."""
    return Collection.create(root, "demo", live_settings())


def put(live: LiveCollection, id: str, random_texts: Any) -> int:
    return live.put([Document(id, "tea")], random_texts(1, 1)).position


def test_all_writes_are_refused_also_after_a_restart(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, "a", random_texts)
        assert live.fence(2) == 1
        for write in (
            lambda: put(live, "b", random_texts),
            lambda: live.delete(["a"]),
            lambda: live.patch("a", {"year": 1}),
            lambda: live.update(["a"], {"year": 1}),
            lambda: live.declare({"kind": "keyword"}),
            live.begin_build,
        ):
            with pytest.raises(CollectionFencedError, match="moves to other shards"):
                write()
        live.flush()
        live.merge()
    again = Collection.open(collection.layout.folder.parent, "demo")
    with LiveCollection(again) as live:
        with pytest.raises(CollectionFencedError):
            put(live, "b", random_texts)
        assert [live.snapshot().get(id) is not None for id in ("a", "b")] == [True, False]
    with pytest.raises(CollectionFencedError), again.writer():
        pass
    with LiveCollection(again) as live:
        assert live.fence(2) == 1
        assert live.settle(2, ALONE) == 1
        assert put(live, "b", random_texts) == 2


def test_no_acknowledged_write_comes_after_the_position(collection: Collection, random_texts: Any) -> None:
    """Writers go on without pause: of each of them all is there up to its first refusal, and nothing more."""
    acknowledged: list[int] = []

    def write(first: int) -> None:
        for number in range(first, first + 1000):
            try:
                acknowledged.append(put(live, str(number), random_texts))
            except CollectionFencedError:
                return

    with LiveCollection(collection) as live:
        writers = [threading.Thread(target=write, args=(first,)) for first in (0, 1000, 2000)]
        for writer in writers:
            writer.start()
        while len(acknowledged) < 20:
            pass
        position = live.fence(2)
        documents = live.stats().documents
        for writer in writers:
            writer.join()
        assert max(acknowledged) <= position == live.position
        assert len(acknowledged) == documents == live.stats().documents


def test_what_comes_late_changes_nothing(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        live.fence(3)
        with pytest.raises(CollectionBusyError, match="another re-sharding is under way for version 3"):
            live.fence(2)
        with pytest.raises(CollectionBusyError, match="the fence stays"):
            live.settle(2, ALONE)
        with pytest.raises(CollectionFencedError):
            put(live, "a", random_texts)
        live.settle(3, ALONE)
        with pytest.raises(CollectionBusyError, match="version 3 of the map of shards was given up"):
            live.fence(3)
        assert put(live, "a", random_texts) == 1
        live.fence(4)


def test_a_build_under_way_ends_first(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        with live.begin_build(), pytest.raises(CollectionBusyError, match="a build or restore"):
            live.fence(2)
        assert put(live, "a", random_texts) == 1
        live.fence(2)


def test_a_damaged_fence_is_told(collection: Collection) -> None:
    collection.layout.fence.write_text('{"version": "2"}')
    with pytest.raises(DamagedIndexError, match="holds no fence; remove it"):
        Fence.read(collection.layout)
