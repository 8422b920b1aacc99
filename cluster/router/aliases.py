"""Aliases of collections over shards: all shards have the same, and the first one's count."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.refusals import reading
from tercet.index.catalog.aliases import Meant, meant_by, the_one
from tercet.index.catalog.names import check_collection_name
from tercet.index.errors import AliasNotFoundError
from tercet.service.exceptions import OverloadedError, ShardError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline, within

FIRST_SECONDS = 10.0  # for what a shard tells before anything is known
RENEWING_SECONDS = 1.0
KEPT_SECONDS = 1.0  # what the first shard told: so late a switch by another router is seen here


class ShardedAliases:
    """In the place of `tercet.index.catalog.aliases.Aliases`. Its methods wait for shards, and are for
    threads other than that of the event loop.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._cached: tuple[float, Mapping[str, Meant]] | None = None

    def collection_of(self, name: str, deadline: Deadline = NO_DEADLINE) -> str:
        """The one collection that a name means. Raises InvalidNameError or SeveralCollectionsError."""
        return the_one(name, self.collections_of(name, deadline))

    def collections_of(self, name: str, deadline: Deadline = NO_DEADLINE) -> Meant:
        """The collections that a name means: those of the alias, or else the name itself."""
        return self.all(deadline).get(check_collection_name(name), (name,))

    def known(self, name: str) -> Meant | None:
        """`collections_of`, as far as it is known without asking; from any thread."""
        cached = self._cached
        if cached is None or time.monotonic() >= cached[0] + KEPT_SECONDS:
            return None
        return cached[1].get(check_collection_name(name), (name,))

    def all(self, deadline: Deadline = NO_DEADLINE) -> Mapping[str, Meant]:
        """The collections of each alias, in order of alias. While the first shard is lost they are those that
        it told last, since none can be switched then.

        One thread at a time asks again, for a moment, and the others go on with what was told: a shard that
        is silent keeps nobody.
        """
        now, cached = time.monotonic(), self._cached
        if cached is None:
            aliases = self._first_told(within(min(FIRST_SECONDS, deadline.remaining_seconds)))
            self._cached = now, aliases
            return aliases
        if now < cached[0] + KEPT_SECONDS:
            return cached[1]
        renewed = self._cached = now, cached[1]
        with suppress(ShardError, OverloadedError):
            aliases = self._of_shard(0, within(min(RENEWING_SECONDS, deadline.remaining_seconds)))
            if self._cached is renewed:  # else it was changed here meanwhile
                self._cached = now, aliases
            return aliases
        return cached[1]

    def _of_shard(self, shard: int, deadline: Deadline) -> Mapping[str, Meant]:
        found = self._fleet.one(shard, lambda client: client.json("GET", "/aliases", deadline=deadline))
        with reading(self._fleet.clients[shard].name):
            return {str(each["alias"]): tuple(map(str, each["collections"])) for each in found["aliases"]}

    def _first_told(self, deadline: Deadline) -> Mapping[str, Meant]:
        """What the first shard says that answers, each with half of the time that is left. Where none does,
        none, if there are replicas, which know collections by their names; else raises the failure of the
        last.
        """
        last = len(self._fleet) - 1
        for shard in range(last):
            with suppress(ShardError, OverloadedError):
                return self._of_shard(shard, within(deadline.remaining_seconds / 2))
        try:
            return self._of_shard(last, deadline)
        except (ShardError, OverloadedError):
            if any(len(servers) > 1 for servers in self._fleet.servers):
                return {}
            raise

    def get(self, alias: str) -> Meant:
        """The collections of an alias. Raises InvalidNameError or AliasNotFoundError."""
        return meant_by(alias, self.all())

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
            self._cached = None
        with reading(self._fleet.clients[0].name):
            return tuple(map(str, first["collections"]))

    def remove(self, alias: str) -> None:
        """Removes the alias; its collections stay. Raises InvalidNameError or AliasNotFoundError."""
        try:
            self._fleet.remove(_path(alias), AliasNotFoundError)
        finally:
            self._cached = None


def _path(alias: str) -> str:
    return f"/aliases/{check_collection_name(alias)}"
