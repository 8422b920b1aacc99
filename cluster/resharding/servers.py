"""The servers of a map's shards, as a re-sharding asks them to publish, refuse writes, bring and keep."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardAccess, ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.map import ShardMap
from tercet.cluster.shards.refusals import reading
from tercet.cluster.shards.servers import Ask
from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.catalog.records import Record
from tercet.service.copies.moving import Moved
from tercet.service.load.deadlines import within
from tercet.service.shard.messages import COLLECTIONS

LONGEST_SECONDS = 6 * 3600.0  # of what reads all bytes of a collection


class MapServers:
    """Those of one map, all asked at once. Each method raises the failure of the first that fails."""

    def __init__(self, fleet: Fleet, collection: str) -> None:
        self._fleet = fleet
        self._path = f"{COLLECTIONS}/{collection}"

    def collections(self) -> set[str]:
        """The names of all collections that any of them has."""
        answers = self._fleet.all(lambda shard: shard.json("GET", "/collections"))
        with self._reading():
            return {str(each["name"]) for answer in answers for each in answer["collections"]}

    def parts(self) -> list[ShardPart | None]:
        """Which part of a collection over shards each has; None of one that was made there by itself."""
        answers = self._fleet.all(lambda shard: shard.json("GET", self._path))
        with self._reading():
            return [
                Lineage.of_record(Record.of(answer["lineage"], Path(self._path))).part
                if answer["lineage"]
                else None
                for answer in answers
            ]

    def push(self, folders: Sequence[str]) -> list[Moved]:
        """Has each publish what is written by now in its folder."""
        return self._moved("push", [{"folder": folder} for folder in folders])

    def bring(self, folders: Sequence[str], version: int) -> list[Moved]:
        """Has each make the newest snapshot of its folder its own collection, for a version of the map."""
        return self._moved("bring", [{"folder": folder, "version": version} for folder in folders])

    def keep(self, version: int) -> None:
        """Has what they brought be collections of their own."""
        self._asked("POST", "keep", [{"version": version}] * len(self._fleet))

    def fence(self, version: int) -> list[int]:
        """Has each refuse writes, for a version of the map to come; the position of each from then on."""
        answers = self._asked("PUT", "fence", [{"version": version}] * len(self._fleet))
        return [int(answer["position"]) for answer in answers]

    def receive(self, folders: Sequence[str | None]) -> list[Moved | None]:
        """Has each that is to receive documents fetch them from their folder; None of others."""
        asks = {number: {"folder": folder} for number, folder in enumerate(folders) if folder is not None}
        answers = self._asked_some("POST", "receive", asks) if asks else {}
        with self._reading():
            return [Moved(**answers[each]) if each in answers else None for each in range(len(folders))]

    def settle(self, shards: ShardMap) -> None:
        """Has each be what a map says of it, and take writes again."""
        bodies = []
        for number, place in enumerate(shards.shards):
            part = shards.placement.part("", number).record
            del part["collection"]
            bodies.append({"version": shards.version, "part": part, "received": place.received})
        self._asked("POST", "settle", bodies)

    def aliases(self) -> dict[str, list[str]]:
        """The collections of each alias, as the first shard has them."""
        found = self._fleet.one(0, lambda shard: shard.json("GET", "/aliases"))
        with self._reading():
            return {str(each["alias"]): list(map(str, each["collections"])) for each in found["aliases"]}

    def put_alias(self, alias: str, collections: Sequence[str]) -> None:
        """Makes an alias in each."""
        body = {"collections": list(collections)}
        if len(self._fleet):
            self._fleet.first_last(lambda shard: shard.json("PUT", f"/aliases/{alias}", body))

    def _reading(self) -> AbstractContextManager[None]:
        return reading(", ".join(client.name for client in self._fleet.clients))

    def _moved(self, verb: str, bodies: Sequence[dict[str, Any]]) -> list[Moved]:
        answers = self._asked("POST", verb, bodies)
        with self._reading():
            return [Moved(**answer) for answer in answers]

    def _asked(self, method: str, verb: str, bodies: Sequence[dict[str, Any]]) -> list[Any]:
        return list(self._asked_some(method, verb, dict(enumerate(bodies))).values())

    def _asked_some(self, method: str, verb: str, bodies: Mapping[int, dict[str, Any]]) -> dict[int, Any]:
        """What some answer, by their numbers."""
        path = f"{self._path}/{verb}"

        def asking(body: dict[str, Any]) -> Ask[Any]:
            async def ask(shard: ShardClient) -> Any:
                return await shard.json(method, path, body, deadline=within(LONGEST_SECONDS))

            return ask

        return self._fleet.require({number: asking(body) for number, body in bodies.items()})


Opening = Callable[[Sequence[str], str], MapServers]


@contextmanager
def opened_servers(access: ShardAccess) -> Iterator[Opening]:
    """What opens the servers at addresses, with a collection's name; for a thread without an event loop."""
    loop, taken = asyncio.new_event_loop(), Loop()
    connections = access.connections()
    thread = threading.Thread(target=loop.run_forever, name="servers", daemon=True)
    thread.start()

    async def take() -> None:
        taken.take()

    asyncio.run_coroutine_threadsafe(take(), loop).result()  # before anything is asked

    def opened(urls: Sequence[str], collection: str) -> MapServers:
        return MapServers(Fleet([[access.client(url, connections)] for url in urls], taken), collection)

    try:
        yield opened
    finally:
        asyncio.run_coroutine_threadsafe(connections.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
