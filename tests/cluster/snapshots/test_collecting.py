"""What is collected: all that no kept manifest or map names, and is older than the grace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.errors import UnreachableStoreError
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.opening import PROBES
from tercet.cluster.objects.store import ObjectStore, StoredObject
from tercet.cluster.snapshots.collecting import Collected, collect
from tercet.cluster.snapshots.errors import DamagedSnapshotError, SnapshotNotFoundError
from tercet.cluster.snapshots.published import (
    FILES,
    MANIFESTS,
    file_path,
    manifest_path,
    newest_number,
    number_of,
    read_published,
)
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.verify import verify

NONE = timedelta(0)
DAY = timedelta(hours=24)


@pytest.fixture
def three(demo: Collection, store: ObjectStore, stages: Path, write: Any) -> ObjectStore:
    """Three snapshots, of which each has a segment more than the one before."""
    push(demo, store, stages)
    for number in range(2):
        write(demo, f"new {number}")
        push(demo, store, stages)
    store.create(f"{FILES}/{'0' * 64}", b"of nobody")
    store.create(f"{PROBES}/{'0' * 16}", b"by a killed probe")
    store.create(f"{MANIFESTS}/.000004.json.01234567.new", b"of a killed push")
    store.create(f"{FILES}/report.pdf", b"of somebody else")
    return store


def paths(store: ObjectStore) -> set[str]:
    return {each.path for each in store.list()}


def needed(store: ObjectStore, *numbers: int) -> set[str]:
    files = {entry.sha256 for number in numbers for entry in read_published(store, number).files.values()}
    ours = {manifest_path(number) for number in numbers} | {file_path(sha256) for sha256 in files}
    return ours | {f"{FILES}/report.pdf"}


@pytest.mark.slow
def test_what_nobody_names_goes_and_the_newest_stay(three: ObjectStore, other: Path) -> None:
    kept = needed(three, 2, 3)
    before = paths(three)
    expected = Collected(
        2,  # a manifest, and one that was being written
        len(before - kept) - 2,
        sum(each.size_bytes for each in three.list() if each.path not in kept),
    )
    assert collect(three, keep=2, grace=NONE, dry_run=True) == expected
    assert paths(three) == before
    assert collect(three, keep=2, grace=NONE) == expected
    assert paths(three) == kept
    assert collect(three, keep=2, grace=NONE) == Collected(0, 0, 0)
    pull(other / "collections", "demo", three, other / "snapshots")
    assert verify(other / "collections", "demo") == []


@pytest.mark.slow
def test_what_is_young_stays(three: ObjectStore) -> None:
    before = paths(three)
    assert collect(three, keep=1, grace=DAY) == Collected(0, 0, 0)
    assert paths(three) == before


class SlowClock(FolderStore):
    """Its clock is three days behind that of this machine."""

    def _described(self, path: Path) -> StoredObject | None:
        found = super()._described(path)
        return None if found is None else replace(found, modified=found.modified - 3 * DAY)


def test_what_is_young_by_the_clock_of_the_store_stays(
    demo: Collection, tmp_path: Path, stages: Path
) -> None:
    store = SlowClock(tmp_path / "store")
    push(demo, store, stages)
    store.create(f"{FILES}/{'0' * 64}", b"of a push under way")
    before = paths(store)
    assert collect(store, keep=1, grace=DAY) == Collected(0, 0, 0)
    assert paths(store) == before


class Cut(FolderStore):
    """Fails after so many deletions."""

    left = 0

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            if not path.startswith(PROBES):
                if self.left == 0:
                    raise UnreachableStoreError("cut off")
                self.left -= 1
            super().delete([path])


@pytest.mark.parametrize("deleted", [1, 2])
def test_what_is_cut_off_leaves_no_manifest_without_its_files(
    demo: Collection, tmp_path: Path, stages: Path, write: Any, deleted: int
) -> None:
    store = Cut(tmp_path / "store")
    push(demo, store, stages)
    for id in ("tea", "rail"):  # each time with other delete marks
        write(demo, f"new {id}", without=(id,))
        push(demo, store, stages)
    store.left = deleted
    with pytest.raises(UnreachableStoreError, match="cut off"):
        collect(store, keep=1, grace=NONE)
    numbers = [number for each in store.list(MANIFESTS) if (number := number_of(each.path)) is not None]
    assert 3 in numbers
    assert needed(store, *numbers) - {f"{FILES}/report.pdf"} <= paths(store)


def test_nothing_is_left_where_nothing_was(store: ObjectStore) -> None:
    store.create("notes/todo.txt", b"of somebody else")
    with pytest.raises(SnapshotNotFoundError, match="nothing is published"):
        collect(store, keep=1, grace=NONE)
    assert store.folders() == ["notes"]


@pytest.mark.slow
def test_the_next_number_stays_the_next(
    three: ObjectStore, demo: Collection, stages: Path, write: Any
) -> None:
    collect(three, keep=1, grace=NONE)
    write(demo, "later")
    assert push(demo, three, stages).published.number == newest_number(three) == 4


def test_a_number_of_more_digits_is_newer(demo: Collection, folder: ObjectStore, stages: Path) -> None:
    published = push(demo, folder, stages).published
    for number in (999_999, 1_000_000):
        folder.create(manifest_path(number), published.numbered(number).content)
    assert collect(folder, keep=1, grace=NONE).manifests == 2
    assert newest_number(folder) == 1_000_000


def test_where_a_kept_manifest_cannot_be_read_nothing_goes(three: ObjectStore) -> None:
    three.create(manifest_path(4), b"{}")
    before = paths(three)
    with pytest.raises(DamagedSnapshotError, match="000004"):
        collect(three, keep=2, grace=NONE)
    assert paths(three) == before


def put_map(store: ObjectStore, number: int, *shards: str) -> None:
    record = {"format": 1, "collection": "demo", "version": number}
    named = [{"snapshots": shard, "url": None} for shard in shards]
    store.create(f"map/{number:06d}.json", json.dumps({**record, "shards": named}).encode())


def test_shards_that_no_kept_map_names_go(demo: Collection, folder: ObjectStore, stages: Path) -> None:
    for shard in ("shards/1-0", "shards/1-1", "shards/2-0"):
        push(demo, folder.below(shard), stages)
    folder.create(f"shards/2-0/files/{'0' * 64}", b"of an actor that was killed")
    put_map(folder, 1, "shards/1-0", "shards/1-1")
    put_map(folder, 2, "shards/2-0")
    assert collect(folder, keep=2, grace=NONE).files == 1
    of_first = {each for each in paths(folder) if each.startswith(("shards/1-", "map/000001"))}
    before = paths(folder)
    assert collect(folder, keep=1, grace=DAY) == Collected(0, 0, 0)
    assert collect(folder, keep=1, grace=NONE).manifests == 3
    assert paths(folder) == before - of_first


def test_shards_of_a_build_under_way_stay(demo: Collection, folder: ObjectStore, stages: Path) -> None:
    push(demo, folder.below("shards/1-0"), stages)
    put_map(folder, 1, "shards/1-0")
    before = paths(folder)
    begun = {f"shards/2-0/{FILES}/{digit * 64}" for digit in "ab"}
    for path in sorted(begun):
        folder.create(path, b"of a build that goes on")
        assert collect(folder, keep=1, grace=DAY) == Collected(0, 0, 0)
        assert path in paths(folder)
        there = Path(folder.url.removeprefix("file://"), path)
        os.utime(there, (there.stat().st_mtime - 2 * DAY.total_seconds(),) * 2)
    assert paths(folder) == before | begun  # the first is old, and the other was young meanwhile
    assert collect(folder, keep=1, grace=DAY).files == 2
    assert paths(folder) == before


def test_a_map_that_cannot_be_read_keeps_all(folder: ObjectStore) -> None:
    folder.create("shards/1-0/files/x", b"x")
    folder.create("map/000001.json", b'{"shards": 3}')
    with pytest.raises(DamagedSnapshotError, match="no map of shards"):
        collect(folder, keep=1, grace=NONE)
    assert "shards/1-0/files/x" in paths(folder)


def test_what_a_build_left_goes_once_nobody_goes_on_with_it(store: ObjectStore) -> None:
    left = {f"builds/{key}/{path}" for key in ("one", "two") for path in ("begun.json", "files/x")}
    for path in left:
        store.create(path, path.encode())
    assert collect(store, keep=1, grace=DAY) == Collected(0, 0, 0)
    assert paths(store) == left
    collect(store, keep=1, grace=NONE)
    assert paths(store) == set()
    assert store.below("builds").folders() == []
