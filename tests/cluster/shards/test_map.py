"""The map of shards: its newest version counts, each is there once, and what is none is refused."""

import json
from pathlib import Path

import pytest

from tercet.cluster.objects.errors import DamagedObjectError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import ShardPlace, newest_map, publish_map
from tercet.index.errors import CollectionBusyError

PLACES = (ShardPlace("shards/a-0"), ShardPlace("shards/a-1", "http://one:8080"))


@pytest.fixture
def folder(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path.as_uri())


def test_versions_follow_each_other(folder: ObjectStore) -> None:
    assert newest_map(folder) is None
    first = publish_map(folder, "articles", PLACES, None)
    second = publish_map(folder, "articles", PLACES[:1], first)
    assert newest_map(folder) == second
    assert (second.version, second.shards) == (2, PLACES[:1])
    assert json.loads(folder.get("map/000001.json")) == {
        "format": 1,
        "collection": "articles",
        "shards": [
            {"snapshots": "shards/a-0", "url": None},
            {"snapshots": "shards/a-1", "url": "http://one:8080"},
        ],
        "version": 1,
    }


def test_replicas_are_in_a_map(folder: ObjectStore) -> None:
    places = (ShardPlace.of_servers("s/0", ["http://a", "http://b"]), ShardPlace.of_servers("s/1", ()))
    publish_map(folder, "articles", places, None)
    assert json.loads(folder.get("map/000001.json"))["shards"] == [
        {"snapshots": "s/0", "url": "http://a", "replicas": ["http://b"]},
        {"snapshots": "s/1", "url": None},
    ]
    found = newest_map(folder)
    assert found is not None
    assert found.shards == places
    assert [place.servers for place in found.shards] == [("http://a", "http://b"), ()]


def test_of_two_who_publish_the_next_one_succeeds(folder: ObjectStore) -> None:
    first = publish_map(folder, "articles", PLACES, None)
    publish_map(folder, "articles", PLACES[:1], first)
    with pytest.raises(CollectionBusyError, match="version 2 of the map was published meanwhile"):
        publish_map(folder, "articles", PLACES, first)


def test_names_of_more_digits_are_newer(folder: ObjectStore) -> None:
    first = publish_map(folder, "articles", PLACES, None)
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
        '{"format": 2, "collection": "a", "shards": [{"snapshots": "s", "url": null}], "version": 1}',
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
