"""A live collection becomes another part of one over shards: what is not its own goes, what it gets comes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.buckets import Ranges, buckets_of
from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, CollectionFencedError
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify

ALL: Ranges = ((0, 1024),)
LOWER: Ranges = ((0, 512),)
UPPER: Ranges = ((512, 1024),)
IDS = [str(number) for number in range(40)]
OWN = {id for id in IDS if buckets_of([id.encode()])[0] < 512}


def part(buckets: Ranges, of: int = 2) -> ShardPart:
    return ShardPart("c", 0, of, buckets)


def made(root: Path, name: str, live_settings: Any, buckets: Ranges) -> Collection:
    lineage = Lineage.new(part=part(buckets))
    return Collection.create(root, name, replace(live_settings(), name=name, lineage=lineage))


def put(live: LiveCollection, ids: list[str], random_texts: Any, seed: int = 1) -> None:
    live.put([Document(id, f"tea {seed}") for id in ids], random_texts(len(ids), seed))


def texts(live: LiveCollection) -> dict[str, str]:
    return {document.id: document.text for document in live.snapshot().page(None, 1000)}


@pytest.fixture
def shard(root: Path, live_settings: Any) -> Collection:
    """One that has all buckets."""
    return made(root, "demo", live_settings, ALL)


def test_what_is_not_its_own_goes_and_writes_go_on(shard: Collection, root: Path, random_texts: Any) -> None:
    with LiveCollection(shard) as live:
        put(live, IDS[:30], random_texts)
        live.flush()
        put(live, IDS[30:], random_texts)
        before = live.snapshot()
        live.fence(2)
        position = live.settle(2, part(LOWER))
        assert position == live.position
        assert texts(live).keys() == OWN
        assert before.documents == len(IDS)  # a search that had begun
        assert live.lineage.part == part(LOWER)
        put(live, ["later"], random_texts)
        live.fence(3)
        assert live.settle(3, part(LOWER)) == live.position
    again = Collection.open(root, "demo")
    with LiveCollection(again) as live:
        assert texts(live).keys() == OWN | {"later"}
        live.merge()
    assert verify(root, "demo") == []
    manifest = again.manifest()
    assert manifest is not None
    assert sum(segment.documents_kept for segment in manifest.segments) <= len(OWN) + 1


def test_what_it_receives_comes_in_the_place_of_the_same(
    shard: Collection, root: Path, live_settings: Any, random_texts: Any
) -> None:
    """As where a settling was cut short, and is done again."""
    other = made(root, "other", live_settings, UPPER)
    with LiveCollection(other) as live:
        put(live, ["0", "x", "y"], random_texts, 2)
        live.delete(["y"])
        live.flush()
    with LiveCollection(shard) as live:
        put(live, ["0", "1"], random_texts)
        for version, buckets in ((2, ((0, 1023),)), (3, ALL)):
            live.fence(version)
            live.settle(version, part(buckets, 3), other.layout)
            assert texts(live) == {"0": "tea 2", "1": "tea 1", "x": "tea 2"}


def test_one_that_takes_writes_stays_as_it_is(shard: Collection, random_texts: Any) -> None:
    with LiveCollection(shard) as live:
        put(live, IDS, random_texts)
        with pytest.raises(CollectionBusyError, match="takes writes, so it is not made another part"):
            live.settle(2, part(LOWER))
        live.fence(3)
        with pytest.raises(CollectionBusyError, match="the fence stays"):
            live.settle(2, part(LOWER))
        assert texts(live).keys() == set(IDS)


def test_after_a_crash_in_between_it_is_no_part_until_it_is_done_again(
    shard: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Lineage.write

    def dying(lineage: Lineage, folder: Path) -> None:
        if lineage.part == part(LOWER):
            raise OSError("no room")
        write(lineage, folder)

    with LiveCollection(shard) as live:
        put(live, IDS, random_texts)
        live.fence(2)
        monkeypatch.setattr(Lineage, "write", dying)
        with pytest.raises(OSError, match="no room"):
            live.settle(2, part(LOWER))
        assert live.lineage.part == part(())
        with pytest.raises(CollectionFencedError):
            put(live, ["later"], random_texts)
    monkeypatch.undo()
    with LiveCollection(Collection.open(root, "demo")) as live:
        assert live.lineage.part == part(())
        live.settle(2, part(LOWER))
        assert texts(live).keys() == OWN
        put(live, ["later"], random_texts)
    assert verify(root, "demo") == []
