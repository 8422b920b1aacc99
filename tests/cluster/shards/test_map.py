"""The map of shards: its newest version counts, each is there once, and what is none is refused."""

import json
from pathlib import Path

import pytest

from tercet.cluster.objects.errors import DamagedObjectError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import ShardPlace, newest_map, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.index.errors import CollectionBusyError

PLACES = (ShardPlace("shards/a-0"), ShardPlace("shards/a-1", "http://one:8080"))


ONE, TWO = Placement.evenly(1), Placement.evenly(2)


@pytest.fixture
def folder(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path.as_uri())


def test_versions_follow_each_other(folder: ObjectStore) -> None:
    assert newest_map(folder) is None
    first = publish_map(folder, "articles", PLACES, TWO, None)
    second = publish_map(folder, "articles", PLACES[:1], ONE, first)
    assert newest_map(folder) == second
    assert (second.version, second.shards) == (2, PLACES[:1])
    assert json.loads(folder.get("map/000001.json")) == {
        "format": 2,
        "collection": "articles",
        "shards": [
            {"snapshots": "shards/a-0", "url": None, "buckets": [[0, 512]]},
            {"snapshots": "shards/a-1", "url": "http://one:8080", "buckets": [[512, 1024]]},
        ],
        "version": 1,
    }


def test_replicas_are_in_a_map(folder: ObjectStore) -> None:
    places = (ShardPlace.of_servers("s/0", ["http://a", "http://b"]), ShardPlace.of_servers("s/1", ()))
    publish_map(folder, "articles", places, TWO, None)
    assert json.loads(folder.get("map/000001.json"))["shards"] == [
        {"snapshots": "s/0", "url": "http://a", "replicas": ["http://b"], "buckets": [[0, 512]]},
        {"snapshots": "s/1", "url": None, "buckets": [[512, 1024]]},
    ]
    found = newest_map(folder)
    assert found is not None
    assert found.shards == places
    assert [place.servers for place in found.shards] == [("http://a", "http://b"), ()]


def test_a_map_of_an_older_release_is_read_and_written_as_it_was(folder: ObjectStore) -> None:
    shards = [{"snapshots": "s/0", "url": None}, {"snapshots": "s/1", "url": None}]
    record = {"format": 1, "collection": "articles", "shards": shards, "version": 1}
    folder.create("map/000001.json", json.dumps(record).encode())
    found = newest_map(folder)
    assert found is not None
    assert found.placement == Placement(2, None)
    assert json.loads(found.content) == record


def test_buckets_that_a_move_gave_are_in_a_map(folder: ObjectStore) -> None:
    placement = TWO.moved_to([0, 1, None])
    places = (*PLACES, ShardPlace("shards/b-2"))
    publish_map(folder, "articles", places, placement, None)
    found = newest_map(folder)
    assert found is not None
    assert found.placement == placement
    assert json.loads(folder.get("map/000001.json"))["shards"][2]["buckets"] == [[342, 512], [853, 1024]]


def test_of_two_who_publish_the_next_one_succeeds(folder: ObjectStore) -> None:
    first = publish_map(folder, "articles", PLACES, TWO, None)
    publish_map(folder, "articles", PLACES[:1], ONE, first)
    with pytest.raises(CollectionBusyError, match="version 2 of the map was published meanwhile"):
        publish_map(folder, "articles", PLACES, TWO, first)


def test_names_of_more_digits_are_newer(folder: ObjectStore) -> None:
    first = publish_map(folder, "articles", PLACES, TWO, None)
    for version in (999_999, 1_000_000):
        record = json.loads(first.content) | {"version": version}
        folder.create(f"map/{version:06d}.json", json.dumps(record).encode())
    found = newest_map(folder)
    assert found is not None
    assert found.version == 1_000_000


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": 3, "collection": "a", "shards": [{"snapshots": "s", "url": null}], "version": 1}',
        '{"format": 2, "collection": "a", "shards": [{"snapshots": "s", "url": null}], "version": 1}',
        '{"format": 2, "collection": "a", "shards": [{"snapshots": "s", "url": null, "buckets": [[0, 9]]}],'
        ' "version": 1}',
        '{"format": 1, "collection": "a", "shards": [{"snapshots": "s", "url": null}], "version": 2}',
        '{"format": 1, "collection": "a", "shards": [], "version": 1}',
        '{"format": 1, "collection": "a", "shards": [{"snapshots": 1, "url": null}], "version": 1}',
        '{"format": 1, "collection": "a", "shards": [{"url": null}], "version": 1}',
        '{"format": 1, "collection": "a", "shards": 3, "version": 1}',
        '{"format": 1, "collection": "a", "shards": [{"snapshots": "s", "url": 1}], "version": 1}',
        '{"format": 1, "collection": "a", "shards": [{"snapshots": "s", "url": null, "replicas": ["b"]}],'
        ' "version": 1}',
    ],
)
def test_what_is_no_map_is_named(folder: ObjectStore, content: str) -> None:
    folder.create("map/000001.json", content.encode())
    with pytest.raises(DamagedObjectError, match=r"map/000001\.json is no map of shards"):
        newest_map(folder)
