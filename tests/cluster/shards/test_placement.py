"""Where documents go is fixed for ever: what is stored is found by it. What a move need not touch stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tercet.cluster.shards.placement import Placement
from tercet.index.catalog.buckets import buckets_of

IDS = ["tea", "rail", "이차", "a/b", "0"]


def owned(placement: Placement) -> list[int]:
    """How many buckets each shard has."""
    assert placement.owners is not None
    return [placement.owners.count(number) for number in range(placement.shards)]


def test_the_buckets_of_some_ids_never_change() -> None:
    assert buckets_of(id.encode() for id in IDS).tolist() == [442, 288, 692, 781, 900]
    assert [Placement.evenly(1).shard_of(id) for id in IDS] == [0] * 5
    assert [Placement.evenly(2).shard_of(id) for id in IDS] == [each in ("이차", "a/b", "0") for each in IDS]


def test_a_map_of_an_older_release_places_by_the_number_of_shards() -> None:
    assert Placement(2, None).shards_of(IDS).tolist() == [0, 0, 0, 1, 0]
    assert Placement(5, None).shards_of(IDS).tolist() == [4, 1, 4, 2, 4]
    assert [Placement(5, None).part("c", 4).holds([id.encode()])[0] for id in IDS] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_many_ids_are_placed_as_each_alone() -> None:
    ids = [f"document {number}" for number in range(1000)]
    for shards in (1, 2, 3, 7, 16):
        placement = Placement.evenly(shards)
        placed = placement.shards_of(ids)
        assert placed.dtype == np.int64
        assert placed.tolist() == [placement.shard_of(id) for id in ids]
        parts = [placement.part("c", number).holds([id.encode() for id in ids]) for number in range(shards)]
        assert (np.argmax(parts, axis=0) == placed).all()
        assert (np.sum(parts, axis=0) == 1).all()
    assert Placement.evenly(3).shards_of([]).tolist() == []


@pytest.mark.parametrize(
    ("goes_on", "moved"), [([0, 1, 2, None], 256), ([None, 0, 1, 2], 256), ([0, 2], 341), ([2, 1, 0], 0)]
)
def test_only_what_must_moves(goes_on: Sequence[int | None], moved: int) -> None:
    former = Placement.evenly(3)
    later = former.moved_to(goes_on)
    assert former.owners is not None
    assert later.owners is not None
    assert max(owned(later)) - min(owned(later)) <= 1
    now = [None if goes_on[owner] is None else goes_on[owner] for owner in later.owners]
    assert sum(was != is_ for was, is_ in zip(former.owners, now, strict=True)) == moved


def test_growth_takes_as_many_from_each_and_what_shrinks_gives_evenly() -> None:
    four = Placement.evenly(3).moved_to([0, 1, 2, None])
    five = four.moved_to([0, 1, 2, 3, None])
    assert [owned(each) for each in (four, five)] == [[256] * 4, [205] * 4 + [204]]
    assert owned(five.moved_to([0, 1, 2])) == [342, 341, 341]


def test_without_what_goes_on_each_has_what_a_collection_begins_with() -> None:
    for former in (Placement.evenly(3).moved_to([0, 1, 2, None]), Placement(2, None)):
        assert former.moved_to([None] * 3) == Placement.evenly(3)


def test_a_bucket_has_one_owner() -> None:
    for buckets in ([((0, 1024),), ((5, 6),)], [((0, 1023),)]):
        with pytest.raises(ValueError, match="each of 1024 buckets is of one shard"):
            Placement.of_ranges(buckets)
