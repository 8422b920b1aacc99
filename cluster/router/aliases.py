"""Aliases of collections over shards: all shards have the same, and the first one's count."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future

from cluster.shards.fleet import Fleet
from cluster.shards.refusals import reading
from index.catalog.aliases import Meant
from index.catalog.alike import names_of
from index.catalog.settings import check_collection_name
from index.errors import AliasNotFoundError, SeveralCollectionsError
from service.exceptions import OverloadedError, ShardError
from service.load.deadlines import NO_DEADLINE, Deadline, within

KEPT_SECONDS = 1.0  # what the first shard told: so late a switch by another router is seen here
SOON_SECONDS = 0.5  # for so long it is waited for where there is what it told last
FIRST_SECONDS = 5.0  # and for so long where there is not


class ShardedAliases:
    """In the place of `index.catalog.aliases.Aliases`. Its methods wait for shards, and are for threads other
    than that of the event loop.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._told: tuple[float, Mapping[str, Meant]] | None = None
        self._late: Future[Mapping[str, Meant]] | None = None

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
        """The collections of each alias, in order of alias. While the first shard is lost or silent they are
        those that it told last.
        """
        now, told = time.monotonic(), self._told
        if told is not None and now < told[0] + KEPT_SECONDS:
            return told[1]
        aliases = self._first() if told is None else self._soon(told[1])
        self._told = now, aliases
        return aliases

    def _first(self) -> Mapping[str, Meant]:
        """What the first shard says that answers. Where none does, none, if there are replicas, which know
        collections by their names; else raises the failure of the last.
        """
        for shard in range(len(self._fleet)):
            try:
                return self._fleet.loop.run(self._of_shard(shard, within(FIRST_SECONDS)))
            except (ShardError, OverloadedError) as error:
                failure = error
        if any(len(shard) > 1 for shard in self._fleet.servers):
            return {}
        raise failure

    def _soon(self, told: Mapping[str, Meant]) -> Mapping[str, Meant]:
        """What the first shard says; where it said nothing soon, what it told before."""
        if self._late is not None and not self._late.done():
            return told  # one request has waited for it
        asked = self._fleet.loop.begin(self._of_shard(0))
        try:
            return asked.result(SOON_SECONDS)
        except TimeoutError:
            self._late = asked
        except (ShardError, OverloadedError):
            pass
        return told

    async def _of_shard(self, shard: int, deadline: Deadline = NO_DEADLINE) -> Mapping[str, Meant]:
        client = self._fleet.clients[shard]
        found = await client.json("GET", "/aliases", deadline=deadline)
        with reading(client.name):
            return {str(each["alias"]): tuple(map(str, each["collections"])) for each in found["aliases"]}

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
        try:
            self._fleet.remove(_path(alias), AliasNotFoundError)
        finally:
            self._told = None


def _path(alias: str) -> str:
    return f"/aliases/{check_collection_name(alias)}"
