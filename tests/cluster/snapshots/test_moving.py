"""What a server brings from below its own object store replaces nothing that came from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.followed import Followed
from tercet.cluster.snapshots.moving import SnapshotMoving
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError
from tercet.service.collections.registry import CollectionRegistry


def test_what_follows_a_store_with_a_longer_name_stays(
    demo: Collection, stages: Path, other: Path, tmp_path: Path
) -> None:
    urls = [(tmp_path / name).as_uri() for name in ("articles", "articles2", "articles2")]
    folders = ["shards/a-0", "shards/a-0", "shards/b-0"]
    for url, folder in zip(urls, folders, strict=True):
        push(demo, open_store(url).below(folder), stages)
    collections = CollectionRegistry(other / "collections")
    longer = SnapshotMoving(urls[1], other)
    longer.bring(collections, "demo", "shards/a-0", 2)
    with pytest.raises(CollectionBusyError):
        SnapshotMoving(urls[0], other).bring(collections, "demo", "shards/a-0", 2)
    followed = Followed.of(other / "collections" / "demo")
    assert followed is not None
    assert followed.url == f"{urls[1]}/shards/a-0"
    longer.bring(
        collections, "demo", "shards/b-0", 2
    )  # of its own store, as of a re-sharding that was not ended
    followed = Followed.of(other / "collections" / "demo")
    assert followed is not None
    assert followed.url == f"{urls[1]}/shards/b-0"


def test_what_is_kept_is_brought_once_and_replaced_by_nothing(
    demo: Collection, folder: ObjectStore, root: Path, stages: Path, other: Path, write: Any
) -> None:
    push(demo, folder.below("shards/a-0"), stages)
    moving, collections = SnapshotMoving(folder.url, other), CollectionRegistry(other / "collections")
    with pytest.raises(CollectionBusyError, match="has snapshots of collection 'demo', not 'tales'"):
        moving.bring(collections, "tales", "shards/a-0", 2)
    brought = moving.bring(collections, "demo", "shards/a-0", 2)
    for _ in range(2):  # a repeat is right
        moving.keep(collections, "demo", 2)
        assert moving.bring(collections, "demo", "shards/a-0", 2) == brought
    write(demo, "new")
    push(demo, folder.below("shards/a-0"), stages)
    assert moving.bring(collections, "demo", "shards/a-0", 2) == brought
    with pytest.raises(CollectionBusyError, match="was kept for version 2 of the map"):
        moving.bring(collections, "demo", "shards/a-0", 3)
    with pytest.raises(CollectionBusyError, match="was not brought here for version 3"):
        moving.keep(collections, "demo", 3)
    with pytest.raises(CollectionBusyError, match="was not brought here for version 2"):
        moving.keep(CollectionRegistry(root), "demo", 2)
    assert collections.snapshot("demo").documents == brought.documents == 5
