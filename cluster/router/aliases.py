"""Aliases of collections over shards: all shards have the same, and the first one's count."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cluster.shards.client import ShardClient
from cluster.shards.fleet import Fleet
from cluster.shards.refusals import reading
from index.catalog.aliases import Meant
from index.catalog.alike import names_of
from index.catalog.settings import check_collection_name
from index.errors import AliasNotFoundError, SeveralCollectionsError

KEPT_SECONDS = 1.0  # what the first shard told: so late a switch by another router is seen here


class ShardedAliases:
    """In the place of `index.catalog.aliases.Aliases`. Its methods wait for shards, and are for threads other
    than that of the event loop.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._told: tuple[float, Mapping[str, Meant]] | None = None

    def collection_of(self, name: str) -> str:
        """The one collection that a name means. Raises InvalidNameError or SeveralCollectionsError."""
        meant = self.collections_of(name)
        if len(meant) > 1:
            raise SeveralCollectionsError(
                f"alias {name!r} means collections {names_of(meant)}, which are only searched and read as "
                "one: use one of them by its own name"
            )
        return meant[0]

    def collections_of(self, name: str) -> Meant:
        """The collections that a name means: those of the alias, or else the name itself."""
        return self.all().get(check_collection_name(name), (name,))

    def all(self) -> Mapping[str, Meant]:
        """The collections of each alias, in order of alias."""
        now, told = time.monotonic(), self._told
        if told is not None and now < told[0] + KEPT_SECONDS:
            return told[1]
        found = self._fleet.one(0, lambda shard: shard.json("GET", "/aliases"))
        with reading(self._fleet.clients[0].name):
            aliases = {str(each["alias"]): tuple(map(str, each["collections"])) for each in found["aliases"]}
        self._told = now, aliases
        return aliases

    def get(self, alias: str) -> Meant:
        """The collections of an alias. Raises InvalidNameError or AliasNotFoundError."""
        meant = self.all().get(check_collection_name(alias))
        if meant is None:
            raise AliasNotFoundError(f"there is no alias {alias!r}; GET /aliases lists them")
        return meant

    def put(self, alias: str, collection: str, *others: str) -> Meant:
        """Makes the alias, or lets it mean other collections from now on: see `Aliases.put`.

        The first shard switches last, and with it this router. Where another one fails nothing has changed
        here, and a repeat does the same again.
        """
        meant = [each for name in (collection, *others) for each in self.collections_of(name)]
        body = {"collections": list(dict.fromkeys(meant))}
        try:
            first, *_ = self._fleet.first_last(lambda shard: shard.json("PUT", _path(alias), body))
        finally:
            self._told = None
        with reading(self._fleet.clients[0].name):
            return tuple(map(str, first["collections"]))

    def remove(self, alias: str) -> None:
        """Removes the alias; its collections stay. Raises InvalidNameError or AliasNotFoundError."""
        path = _path(alias)

        async def removed(shard: ShardClient) -> bool:
            try:
                await shard.json("DELETE", path)
            except AliasNotFoundError:  # as after one that was cut short
                return False
            return True

        try:
            if not any(self._fleet.first_last(removed)):
                raise AliasNotFoundError(f"there is no alias {alias!r}; GET /aliases lists them")
        finally:
            self._told = None


def _path(alias: str) -> str:
    return f"/aliases/{check_collection_name(alias)}"
