"""The collections that an engine holds, in the place of those that a server has itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tercet.cluster.backends.engine import Engine
from tercet.cluster.backends.records import lacking
from tercet.cluster.backends.snapshot import EngineSnapshot
from tercet.cluster.backends.terms import counted_idf
from tercet.index.catalog.aliases import Meant
from tercet.index.catalog.settings import check_collection_name
from tercet.index.errors import AliasNotFoundError, CollectionNotFoundError, InvalidNameError
from tercet.index.live.statistics import CollectionCounts, CollectionStatistics
from tercet.service.collections.readable import CollectionDescription, SearchTarget
from tercet.service.collections.served import Served
from tercet.service.exceptions import BackendError
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading

SEARCH_THREADS = 8  # they wait for the engine more than they compute
LOOKING_THREADS = 4
LOOK_SECONDS = 60.0  # between two looks at what a collection is by now
LOOK_SHARE = 0.05  # of the time, that counting may take

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class _Known:
    """A collection as it was. looked: when that was seen; seconds: that it took."""

    snapshot: EngineSnapshot
    looked: float
    seconds: float

    @property
    def due(self) -> bool:
        """Whether it is time for another look."""
        return time.monotonic() - self.looked > max(LOOK_SECONDS, self.seconds / LOOK_SHARE)


class EngineCollections:
    """Collections in an engine, by their names there. Safe to use from several threads.

    What is asked of it raises BackendError where the engine does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, _Known] = {}
        self._opening: dict[str, threading.Lock] = {}
        self.aliases = NoAliases(engine.name)
        self.looking_pool = Pool("looking", LOOKING_THREADS)
        self.search_threads = SEARCH_THREADS

    @property
    def served(self) -> Served:
        """What a server answers from."""
        return Served(self, lacking=partial(lacking, place=self._engine.name))

    def snapshot(self, name: str) -> EngineSnapshot:
        """A collection as it was at the last look. Raises InvalidNameError and CollectionNotFoundError."""
        check_collection_name(name)
        with self._opening.setdefault(name, threading.Lock()):
            known = self._known.get(name) or self._look(name)
            return known.snapshot

    async def open(self, name: str, options: Reading = ANY_TIME) -> EngineSnapshot:
        """A collection as it was at the last look. Raises CollectionNotFoundError."""
        known = self._known.get(name)
        return known.snapshot if known is not None else await self.looking_pool.run(self.snapshot, name)

    async def open_with_defaults(
        self, name: str, options: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[EngineSnapshot]:
        """The same, without anything stored for searches, which is not exported."""
        return SearchTarget(await self.open(name, options))

    def describe(self, name: str) -> CollectionDescription:
        """Settings and state as of the last look. Raises CollectionNotFoundError."""
        found = self.snapshot(name)
        return CollectionDescription(found.settings, None, found.version, found.documents)

    def names(self) -> list[str]:
        """Of the collections that an export made, in order; those whose names are none here are left out."""
        return [name for name in self._engine.names() if _is_name(name)]

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]:
        """The collections of these names that are there, by default all, in order of name."""
        found = []
        for name in self.names() if names is None else names:
            try:
                found.append(self.describe(name))
            except CollectionNotFoundError:
                continue  # removed since they were listed
            except BackendError as error:
                log.error("collection %s is left out of the list: %s", name, error)
        return found

    def statistics(self, name: str) -> CollectionStatistics:
        """The documents as of the last look, none of which are here. Raises CollectionNotFoundError."""
        documents = self.snapshot(name).documents
        return CollectionStatistics(documents, 0, 0, 0, 0, {}, 0, 0, 0, 0, flushing=False, merging=False)

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]:
        """The documents of each collection as of the last look."""
        for name, known in tuple(self._known.items()):
            yield name, CollectionCounts(known.snapshot.documents, 0, 0, 0, 0)

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]:
        """How many collections are known."""
        return (("read", len(self._known)),)

    def open_written(self) -> None:
        """Looks at all collections, and counts their terms, so that no search has to."""
        for description in self.list():
            log.info("%s documents of collection %s", description.documents, description.settings.name)

    def checkpoints(self) -> dict[str, str]:
        """None: exports name no place of an encoder."""
        return {}

    def release_superseded(self) -> None:
        """Looks at collections again: how many documents they have, and then counts anew what changed."""
        for name, known in tuple(self._known.items()):
            if not known.due:
                continue
            try:
                self._look(name, known)
            except CollectionNotFoundError:
                self._known.pop(name, None)
            except BackendError as error:
                log.warning("collection %s is searched as it was: %s", name, error)

    def close(self) -> None:
        """Lets go of the engine."""
        self.looking_pool.close()
        self._engine.close()

    def _look(self, name: str, former: _Known | None = None) -> _Known:
        """Opens a collection; the counts of its terms are those of a former look, where it is unchanged."""
        started = time.monotonic()
        collection = self._engine.open(name)
        if collection is None:
            self._opening.pop(name, None)
            raise CollectionNotFoundError(
                f"{self._engine.name} has no collection {name!r} that tercet collection export wrote"
            )
        documents = collection.count(None)
        snapshot = EngineSnapshot(collection, name, documents, None)
        if former is not None and _same(former.snapshot, snapshot):
            known = _Known(former.snapshot, time.monotonic(), former.seconds)
        else:
            if snapshot.settings.lexical == "idf":
                snapshot.idf = counted_idf(collection)
            known = _Known(snapshot, time.monotonic(), time.monotonic() - started)
        self._known[name] = known
        return known


class NoAliases:
    """Collections of an engine have no other names, in the place of
    `tercet.index.catalog.aliases.Aliases`.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine

    def collection_of(self, name: str) -> str:
        """The name itself. Raises InvalidNameError."""
        return check_collection_name(name)

    def collections_of(self, name: str) -> Meant:
        """The same."""
        return (check_collection_name(name),)

    def all(self) -> Mapping[str, Meant]:
        """None."""
        return {}

    def get(self, alias: str) -> Meant:
        """Raises AliasNotFoundError."""
        raise AliasNotFoundError(f"there is no alias {alias!r}: collections of {self._engine} have none")

    def put(self, alias: str, collection: str, *others: str) -> Meant:
        """Raises NotInBackendError."""
        raise lacking("giving aliases", self._engine)

    def remove(self, alias: str) -> None:
        """Raises AliasNotFoundError."""
        self.get(alias)


def _same(former: EngineSnapshot, found: EngineSnapshot) -> bool:
    return former.settings == found.settings and former.version == found.version


def _is_name(name: str) -> bool:
    try:
        return bool(check_collection_name(name))
    except InvalidNameError:
        return False
