"""Aliases of collections that Tercet writes in an engine: records there, as of the collections themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tercet.cluster.backends.catalog import ALIASES
from tercet.cluster.backends.engine import Engine
from tercet.cluster.backends.records import lacking
from tercet.index.catalog.aliases import Meant, meant_by, require_free, require_unnamed
from tercet.index.catalog.names import check_collection_name
from tercet.index.errors import CollectionExistsError, CollectionNotFoundError

KEPT_SECONDS = 1.0  # what was read: so late a switch by another server is seen here


class EngineAliases:
    """In the place of `tercet.index.catalog.aliases.Aliases`; each means one collection. Its methods may wait
    for the engine, and raise BackendError.
    """

    def __init__(self, engine: Engine, exists: Callable[[str], bool]) -> None:
        """exists: tells whether there is a collection of a name."""
        self._engine = engine
        self._exists = exists
        self._read: tuple[float, Mapping[str, Meant]] | None = None

    def collection_of(self, name: str) -> str:
        """The collection that a name means. Raises InvalidNameError."""
        return self.collections_of(name)[0]

    def collections_of(self, name: str) -> Meant:
        """The same, alone."""
        return self.all().get(check_collection_name(name), (name,))

    def all(self) -> Mapping[str, Meant]:
        """The collection of each alias, in order of alias."""
        read = self._read
        if read is None or time.monotonic() > read[0] + KEPT_SECONDS:
            records = self._engine.records(ALIASES)
            meant = {alias: (str(record["collection"]),) for alias, record in sorted(records.items())}
            read = self._read = time.monotonic(), meant
        return read[1]

    def get(self, alias: str) -> Meant:
        """The collection of an alias. Raises InvalidNameError or AliasNotFoundError."""
        return meant_by(alias, self.all())

    def put(self, alias: str, collection: str, *others: str) -> Meant:
        """Makes the alias, or lets it mean another collection from now on. Raises as `Aliases.put`, and
        NotInBackendError for several collections.
        """
        if others:
            raise lacking("an alias of several collections", self._engine.name)
        self._read = None
        meant = self.collection_of(collection)
        if not self._exists(meant):
            raise CollectionNotFoundError(f"collection {collection!r} does not exist; create it first")
        if self._exists(check_collection_name(alias)):
            raise CollectionExistsError(
                f"{alias!r} is a collection; give the alias another name, or delete the collection"
            )
        self._engine.put_records({ALIASES: {alias: {"collection": meant}}})
        self._read = None
        return (meant,)

    def remove(self, alias: str) -> None:
        """Removes the alias; its collection stays. Raises InvalidNameError or AliasNotFoundError."""
        self._read = None
        self.get(alias)
        self._engine.remove_records(ALIASES, [alias])
        self._read = None

    def require_free(self, name: str) -> None:
        """Raises CollectionExistsError where an alias has this name, which a new collection would have."""
        self._read = None
        require_free(name, self.all())

    def require_unnamed(self, collection: str) -> None:
        """Raises CollectionAliasedError where an alias means this collection, which is to be deleted."""
        self._read = None
        require_unnamed(collection, self.all())
