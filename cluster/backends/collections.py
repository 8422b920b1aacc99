"""The collections that an engine holds, in the place of those that a server has itself: those that Tercet
writes there, and those that an export wrote, which are only read.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tercet.cluster.backends.aliases import EngineAliases
from tercet.cluster.backends.catalog import EngineCatalog
from tercet.cluster.backends.engine import Engine
from tercet.cluster.backends.records import lacking
from tercet.cluster.backends.snapshot import EngineSnapshot
from tercet.cluster.backends.terms import CountedIdf, counted_terms
from tercet.cluster.backends.written import WrittenCollection
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionNotFoundError, InvalidNameError
from tercet.index.live.statistics import CollectionCounts, CollectionStatistics
from tercet.service.collections.positions import Position, whole_position
from tercet.service.collections.readable import CollectionDescription, SearchTarget
from tercet.service.collections.served import Served
from tercet.service.exceptions import BackendError, PositionAheadError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading

SEARCH_THREADS = 8  # they wait for the engine more than they compute
LOOKING_THREADS = 4
LOOK_SECONDS = 60.0  # between two looks at what a collection is by now
LOOK_SHARE = 0.05  # of the time, that counting may take

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class _Known:
    """An exported collection as it was. looked: when that was seen; seconds: that it took."""

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

    def __init__(self, engine: Engine, server_of: Callable[[], str] | None = None) -> None:
        """server_of: gives the name of this server among those that may write, by default a random one."""
        self._engine = engine
        self._catalog = EngineCatalog(engine, server_of or partial(str, secrets.token_hex(8)))
        self._known: dict[str, _Known] = {}
        self._written: dict[str, WrittenCollection] = {}
        self._opening: dict[str, threading.Lock] = {}
        self.aliases = EngineAliases(engine, self._exists)
        self.looking_pool = Pool("looking", LOOKING_THREADS)
        self.search_threads = SEARCH_THREADS

    @property
    def served(self) -> Served:
        """What a server answers from."""
        return Served(self, self, lacking=partial(lacking, place=self._engine.name))

    def snapshot(self, name: str) -> EngineSnapshot:
        """A collection after the last write that is known here, or as it was at the last look. name: its own,
        or an alias. Raises InvalidNameError and CollectionNotFoundError.
        """
        own = check_collection_name(name)
        if own not in self._known and own not in self._written:
            own = self.aliases.collection_of(name)
        if own in self._written:
            return self._written[own].snapshot()
        with self._opening.setdefault(own, threading.Lock()):
            if own not in self._known and self._catalog.settings(own) is not None:
                return self._collection(own).snapshot()
            known = self._known.get(own) or self._look(own)
            return known.snapshot

    async def open(self, name: str, options: Reading = ANY_TIME) -> EngineSnapshot:
        """The same, awaited."""
        known, written = self._known.get(name), self._written.get(name)
        snapshot = known.snapshot if known is not None else None if written is None else written.known
        return snapshot if snapshot is not None else await self.looking_pool.run(self.snapshot, name)

    async def open_with_defaults(
        self, name: str, options: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[EngineSnapshot]:
        """The same, without anything stored for searches, which engines do not keep."""
        return SearchTarget(await self.open(name, options))

    async def open_to_write(self, name: str, deadline: Deadline = NO_DEADLINE) -> CollectionSettings:
        """The settings of a collection that is written here. name: its own, or an alias. Raises
        CollectionNotFoundError, or NotInBackendError for one that an export wrote.
        """
        return await self.looking_pool.run(lambda: self._to_write(self.aliases.collection_of(name)).settings)

    @contextmanager
    def writing(self, name: str, deadline: Deadline = NO_DEADLINE) -> Iterator[WrittenCollection]:
        """The collection of this name, its own. Raises as `open_to_write`. deadline: of no use here, as
        requests to the engine have a limit of their own.
        """
        yield self._to_write(name)

    def position_of(self, given: Position, param: str) -> int:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        return whole_position(given, param)

    async def reach(self, name: str, position: int, deadline: Deadline) -> None:
        """Sees to it that searches find what was written up to a position. Raises PositionLostError, or
        PositionAheadError where no write has it.
        """

        def look() -> None:
            collection = self._to_write(self.aliases.collection_of(name))
            if not collection.reaches(position):
                raise PositionAheadError(
                    f"collection {name!r} is at position {collection.position}, and min_position is "
                    f"{position}, which no write has yet; use the position of a write's answer"
                )

        await self.looking_pool.run(look)

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription:
        """An empty collection. Raises InvalidNameError, CollectionExistsError, and what the engine cannot
        hold.
        """
        self.aliases.require_free(check_collection_name(name))
        if settings.codebook is not None and settings.token_codec != "sign":  # noqa: S105  # no secret
            raise lacking(f"token_codec {settings.token_codec}, which builds learn,", self._engine.name)
        if settings.partitioned:
            raise lacking("a partitioned collection", self._engine.name)
        if settings.dense_dimension == settings.vocabulary_size == 0:
            raise lacking("a collection of token vectors alone", self._engine.name)
        return CollectionDescription(self._catalog.create(settings), None, None, 0)

    def store_defaults(self, name: str, defaults: SearchDefaults | None) -> None:
        """Raises NotInBackendError: nothing is stored for searches."""
        raise lacking("storing defaults of searches", self._engine.name)

    def delete(self, name: str) -> None:
        """Removes a collection. Raises CollectionNotFoundError, CollectionAliasedError, or NotInBackendError
        for one that an export wrote.
        """
        self.aliases.require_unnamed(name)
        self._to_write(name).remove()
        self._written.pop(name, None)

    def describe(self, name: str) -> CollectionDescription:
        """Settings and state, as `snapshot`. Raises CollectionNotFoundError."""
        found = self.snapshot(name)
        return CollectionDescription(found.settings, None, found.version, found.documents)

    def names(self) -> list[str]:
        """Of the collections, in order; those whose names are none here are left out."""
        names = {*self._catalog.names(), *self._engine.names()}
        return sorted(name for name in names if _is_name(name))

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
        """The documents, none of which are here, and the position. Raises CollectionNotFoundError."""
        documents = self.snapshot(name).documents
        written = self._written.get(self.aliases.collection_of(name))
        position = 0 if written is None else written.position
        return CollectionStatistics(
            documents, 0, 0, 0, 0, {}, 0, 0, position, position, flushing=False, merging=False
        )

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]:
        """The documents of each collection that is known."""
        snapshots = {name: written.known for name, written in self._written.items()}
        snapshots |= {name: known.snapshot for name, known in self._known.items()}
        for name, snapshot in snapshots.items():
            if snapshot is not None:
                yield name, CollectionCounts(snapshot.documents, 0, 0, 0, 0)

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]:
        """How many collections are known."""
        return ("read", len(self._known)), ("written", len(self._written))

    def open_written(self) -> None:
        """Looks at all collections, and counts their terms, so that no search has to."""
        for description in self.list():
            log.info("%s documents of collection %s", description.documents, description.settings.name)

    def checkpoints(self) -> dict[str, str]:
        """Of no collection: none names a place of an encoder that this server has."""
        return {}

    def release_superseded(self) -> None:
        """Looks at collections again, and counts anew what changed."""
        for name, written in tuple(self._written.items()):
            try:
                written.look()
                written.keep_statistics()
            except CollectionNotFoundError:
                self._written.pop(name, None)
            except BackendError as error:
                log.warning("collection %s is searched as it was: %s", name, error)
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
        """Lets go of the engine, which keeps what is counted of its collections, and lets others write."""
        self.looking_pool.close()
        for name, written in self._written.items():
            try:
                written.keep_statistics(last=True)
            except BackendError as error:
                log.warning("collection %s is counted anew when it is next opened: %s", name, error)
            try:
                written.release()
            except BackendError as error:
                log.warning(
                    "another server may write collection %s after %.0f s only: %s",
                    name,
                    written.quiet_seconds,
                    error,
                )
        self._engine.close()

    def _exists(self, name: str) -> bool:
        return self._catalog.settings(name) is not None or self._engine.open(name) is not None

    def _collection(self, name: str) -> WrittenCollection:
        """One that is written here, by its own name; whether it is there is for its methods to tell."""
        return self._written.setdefault(name, WrittenCollection(self._engine, self._catalog, name))

    def _to_write(self, name: str) -> WrittenCollection:
        if name not in self._written and self._catalog.settings(check_collection_name(name)) is None:
            if self._engine.open(name) is not None:
                raise lacking(f"writing collection {name!r}, which an export wrote,", self._engine.name)
            raise CollectionNotFoundError(f"collection {name!r} does not exist; create it first")
        return self._collection(name)

    def _look(self, name: str, former: _Known | None = None) -> _Known:
        """Opens a collection; the counts of its terms are those of a former look, where it is unchanged."""
        started = time.monotonic()
        collection = self._engine.open(name)
        if collection is None:
            self._opening.pop(name, None)
            raise CollectionNotFoundError(
                f"{self._engine.name} has no collection {name!r} that Tercet or an export wrote"
            )
        documents = collection.count(None)
        snapshot = EngineSnapshot(collection, f"{collection.exported_as}.{documents}", documents)
        if former is not None and _same(former.snapshot, snapshot):
            known = _Known(former.snapshot, time.monotonic(), former.seconds)
        else:
            if snapshot.settings.lexical == "idf":
                size = snapshot.settings.vocabulary_size
                snapshot.idf = CountedIdf(*counted_terms(collection), size)
            known = _Known(snapshot, time.monotonic(), time.monotonic() - started)
        self._known[name] = known
        return known


def _same(former: EngineSnapshot, found: EngineSnapshot) -> bool:
    return former.settings == found.settings and former.version == found.version


def _is_name(name: str) -> bool:
    try:
        return bool(check_collection_name(name))
    except InvalidNameError:
        return False
