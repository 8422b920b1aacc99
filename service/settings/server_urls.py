"""Addresses of servers, as settings and flags name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

SERVERS = "|"  # between those of one shard


def url_of(value: str) -> str:
    """An address without the slash at its end. Raises ValueError."""
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"{value!r} is not a URL; write it as http://host:port")
    user, _, host = value.partition("://")[2].partition("/")[0].rpartition("@")
    if user:
        raise ValueError(
            f"the URL of {host} has a user or a password in it, which logs would show; give keys in files"
        )
    return value.rstrip("/")


def servers_of_shards(value: Sequence[str]) -> list[tuple[str, ...]]:
    """The servers of each shard, of which the first takes its writes. Raises ValueError."""
    shards = []
    for given in value:
        servers = [server.strip() for server in given.split(SERVERS)]
        if not all(servers):
            raise ValueError(
                f"{given!r} has a server without a URL; write a shard and its replicas as http://a{SERVERS}"
                "http://b"
            )
        shards.append(tuple(map(url_of, servers)))
    counts = Counter(url for servers in shards for url in servers)
    twice = [url for url, count in counts.items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} is named twice; a server has one shard, and is named once")
    return shards
