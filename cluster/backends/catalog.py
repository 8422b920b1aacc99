"""Which collections Tercet writes in an engine, and how far each is: records that the engine keeps, too.

collections   by name: {"settings", "later_fields", "lineage", "ready"}; not ready is one that is being made
              or removed, or was when a server ended: it is made anew, or goes with the next of its name
states        by name: {"position": of the last write, "pending": whether it may not be finished, "beat":
              another one each time that a write under way says that it goes on}
writers       by name: {"server": the one that writes it, empty where that ended}
aliases       by alias: {"collection": name}
keys NAME     by idempotency key: what a repeat within a day is answered
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tercet.cluster.backends.engine import Engine, Records
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionExistsError, CollectionNotFoundError, SearchIndexError
from tercet.index.ledger.reader import KEPT_SECONDS
from tercet.index.ledger.records import StoredAnswer
from tercet.index.live.records import WriteKey, Written
from tercet.service.answers.collection_settings import settings_from, settings_record
from tercet.service.exceptions import BackendError

COLLECTIONS, STATES, WRITERS, ALIASES = "collections", "states", "writers", "aliases"


@dataclass(frozen=True, slots=True)
class WriteState:
    """What an engine says of a collection's last write: see `states`."""

    position: int
    pending: bool
    beat: int = 0


class EngineCatalog:
    """The records of an engine. Each method asks it, and raises BackendError where it does not answer."""

    def __init__(self, engine: Engine, server_of: Callable[[], str]) -> None:
        """server_of: gives the name of this server among those that may write; asked with the first write."""
        self._engine = engine
        self._server_of = server_of

    @cached_property
    def server(self) -> str:
        """The name of this server."""
        return self._server_of()

    def names(self) -> list[str]:
        """Of the collections that are ready."""
        return [name for name, record in self._engine.records(COLLECTIONS).items() if record["ready"]]

    def settings(self, name: str) -> CollectionSettings | None:
        """Those of a collection that is ready, with the fields declared since it was made."""
        record = self._engine.records(COLLECTIONS, name).get(name)
        if record is None or not record["ready"]:
            return None
        try:
            return settings_from(record, None, f"the record of collection {name!r} in {self._engine.name}")
        except (SearchIndexError, ValueError, KeyError, TypeError) as error:
            raise BackendError(
                f"collection {name!r} of {self._engine.name} cannot be read: {error}"
            ) from error

    def create(self, settings: CollectionSettings) -> CollectionSettings:
        """Makes an empty collection. Raises CollectionExistsError, and what the engine cannot hold."""
        name, engine = settings.name, self._engine
        record = engine.records(COLLECTIONS, name).get(name)
        if record is not None and record["ready"]:
            raise CollectionExistsError(f"collection {name!r} exists; choose another name, or delete it")
        if record is None and engine.exists(name):
            raise CollectionExistsError(
                f"{engine.name} has a collection {name!r} that Tercet does not write; choose another name"
            )
        settings = replace(settings, lineage=Lineage.new())
        self.put(settings, ready=False)
        engine.drop(name)  # what an interrupted creation left
        engine.create(settings)
        self._forget(name)
        engine.put_records({STATES: {name: {"position": 0, "pending": False}}})
        self.claim(name, self.server)
        self.put(settings)
        return settings

    def put(self, settings: CollectionSettings, *, ready: bool = True) -> None:
        """Keeps the settings of a collection."""
        record = settings_record(settings)
        record["settings"].pop("codebook", None)  # that of sign follows from its dimension
        self._engine.put_records({COLLECTIONS: {settings.name: {**record, "ready": ready}}})

    def delete(self, settings: CollectionSettings) -> None:
        """Removes a collection with all that it has."""
        name = settings.name
        self.put(settings, ready=False)
        self._engine.drop(name)
        self._forget(name)
        self._engine.remove_records(WRITERS, [name])
        self._engine.remove_records(COLLECTIONS, [name])

    def writer(self, name: str) -> str:
        """The server that writes a collection; empty where none does."""
        record = self._engine.records(WRITERS, name).get(name)
        return "" if record is None else str(record["server"])

    def claim(self, name: str, server: str) -> None:
        """A server is to write a collection, unless another one says so just now, too; empty for none."""
        self._engine.put_records({WRITERS: {name: {"server": server}}})

    def release(self, name: str) -> None:
        """This server writes a collection no more."""
        if self.writer(name) == self.server:
            self.claim(name, "")

    def state(self, name: str) -> WriteState:
        """That of the last write. Raises CollectionNotFoundError."""
        state = self._engine.records(STATES, name).get(name)
        if state is None:
            raise CollectionNotFoundError(f"collection {name!r} does not exist; create it first")
        return WriteState(**state)

    def note(self, name: str, state: WriteState) -> None:
        """A write is under way: no other one ever has its position."""
        self._engine.put_records({STATES: {name: asdict(state)}})

    def finish(self, name: str, written: Written, key: WriteKey | None) -> None:
        """It was carried out, under a key if any."""
        records: dict[str, Records] = {STATES: {name: {"position": written.position, "pending": False}}}
        if key is not None:
            stored = written.stored_under(key)
            answer = {"position": written.position, "answer": stored.answer, "at": time.time()}
            records[_keys(name)] = {key.key: {**answer, "request_sha256": key.request_sha256}}
        self._engine.put_records(records)

    def written_under(self, name: str, key: WriteKey) -> Written | None:
        """What was answered under a key in the last day. Raises IdempotencyMismatchError."""
        record = self._engine.records(_keys(name), key.key).get(key.key)
        if record is None or _is_old(record):
            return None
        return Written.of(StoredAnswer(record["request_sha256"], record["answer"], record["position"]), key)

    def forget_keys(self, name: str) -> None:
        """Removes those of more than a day ago."""
        old = [key for key, record in self._engine.records(_keys(name)).items() if _is_old(record)]
        if old:
            self._engine.remove_records(_keys(name), old)

    def _forget(self, name: str) -> None:
        """Removes what is noted of writes."""
        keys = _keys(name)
        self._engine.remove_records(keys, [*self._engine.records(keys)])
        self._engine.remove_records(STATES, [name])


def _keys(name: str) -> str:
    return f"keys {name}"


def _is_old(record: Mapping[str, Any]) -> bool:
    return bool(time.time() - record["at"] > KEPT_SECONDS)
