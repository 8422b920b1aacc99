"""Where documents go is fixed for ever: what is stored is found by it."""

import numpy as np

from tercet.cluster.shards.placement import shard_of, shards_of


def test_the_shards_of_some_ids_never_change() -> None:
    ids = ["tea", "rail", "이차", "a/b", "0"]
    assert [shard_of(id, 1) for id in ids] == [0] * 5
    assert [shard_of(id, 2) for id in ids] == [0, 0, 0, 1, 0]
    assert [shard_of(id, 5) for id in ids] == [4, 1, 4, 2, 4]


def test_many_ids_are_placed_as_each_alone() -> None:
    ids = [f"document {number}" for number in range(1000)]
    for shards in (1, 2, 3, 7, 16):
        placed = shards_of(ids, shards)
        assert placed.dtype == np.int64
        assert placed.tolist() == [shard_of(id, shards) for id in ids]
        assert len(np.unique(placed)) == shards
    assert shards_of([], 3).tolist() == []


def test_shards_are_about_as_full() -> None:
    counts = np.bincount(shards_of([str(number) for number in range(10_000)], 4))
    assert counts.min() > 2300
