"""Where a router's shards are: as its setting says, or as the newest map does."""

import re
from pathlib import Path

import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.router.shard_map import is_map, map_at, servers_of
from tercet.cluster.shards.map import ShardPlace, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.service.exceptions import SettingsError
from tercet.service.settings.server_urls import servers_of_shards
from tercet.service.settings.settings import Settings


def test_servers_are_as_named() -> None:
    named = Settings(shards=("http://one:8080/", "https://two")).shards
    assert not is_map(named)
    assert servers_of_shards(named) == [("http://one:8080",), ("https://two",)]


def test_replicas_are_named_behind_their_shard() -> None:
    named = Settings(shards="http://a/ | http://b,http://c|http://d|http://e").shards
    assert servers_of_shards(named) == [("http://a", "http://b"), ("http://c", "http://d", "http://e")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("http://a||http://b", "has a server without a URL"),
        ("http://a|", "has a server without a URL"),
        ("http://a|b", "'b' is not a URL"),
        ("http://a|http://b,http://c|http://b/", "'http://b' is named twice"),
        ("http://a,http://a", "'http://a' is named twice"),
    ],
)
def test_what_names_no_servers_is_told(given: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Settings(shards=given)


def test_the_newest_map_names_them(tmp_path: Path) -> None:
    assert is_map(Settings(shards=(tmp_path.as_uri(),)).shards)
    store = open_store(tmp_path.as_uri())
    with pytest.raises(SettingsError, match="there is no map below it: build one"):
        map_at(store)
    first = publish_map(store, "articles", [ShardPlace("shards/a-0")], Placement.evenly(1), None)
    with pytest.raises(SettingsError, match=r"map/000001.json does not say where all of its 1 shards are"):
        servers_of(store, map_at(store))
    servers = ["http://one:8080", "http://two:8080/"]
    places = [
        ShardPlace(f"shards/b-{each}", each, ("http://three",) * (not number))
        for number, each in enumerate(servers)
    ]
    second = publish_map(store, "articles", places, Placement.evenly(2), first)
    assert servers_of(store, map_at(store)) == [("http://one:8080", "http://three"), ("http://two:8080",)]
    three = [*places, ShardPlace("shards/b-2", "http://three")]
    publish_map(store, "articles", three, Placement.evenly(3), second)
    with pytest.raises(SettingsError, match=r"map/000003.json: 'http://three' is named twice"):
        servers_of(store, map_at(store))


def test_a_store_is_named_alone() -> None:
    with pytest.raises(ValueError, match="is not a URL"):
        Settings(shards=("http://one:8080", "s3://bucket/articles"))
