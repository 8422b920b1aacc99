"""Where a router's shards are: as its setting says, or as the newest map does."""

from pathlib import Path

import pytest

from cluster.objects.opening import open_store
from cluster.router.places import is_map, map_at, servers_of
from cluster.shards.map import ShardPlace, publish_map
from service.exceptions import SettingsError
from service.settings import Settings


def test_servers_are_as_named() -> None:
    named = Settings(shards=("http://one:8080/", "https://two")).shards
    assert named == ("http://one:8080", "https://two")
    assert not is_map(named)


def test_the_newest_map_names_them(tmp_path: Path) -> None:
    assert is_map(Settings(shards=(tmp_path.as_uri(),)).shards)
    store = open_store(tmp_path.as_uri())
    with pytest.raises(SettingsError, match="there is no map below it: build one"):
        map_at(store)
    first = publish_map(store, "articles", [ShardPlace("shards/a-0")], None)
    with pytest.raises(SettingsError, match=r"map/000001.json does not say where all of its 1 shards are"):
        servers_of(store, map_at(store))
    servers = ["http://one:8080", "http://two:8080/"]
    publish_map(store, "articles", [ShardPlace(f"shards/b-{each}", each) for each in servers], first)
    assert servers_of(store, map_at(store)) == ["http://one:8080", "http://two:8080"]


def test_a_store_is_named_alone() -> None:
    with pytest.raises(ValueError, match="is not a URL"):
        Settings(shards=("http://one:8080", "s3://bucket/articles"))
