"""A collection in an engine that is written through it.

A write is carried out by the operations of live collections, on a state of just the documents that it
concerns, which are read from the engine; what these have become goes back there. Before that the position of
the write is noted as pending, and after it as done, so that no two writes have one, also where a server ends
between the two. What is counted of terms moves with each write, and is kept in the engine now and then. Where
the engine fails in the middle, it is counted anew, since nobody knows which part was carried out.

One server writes a collection at a time: see `turns.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tercet.cluster.backends.catalog import EngineCatalog
from tercet.cluster.backends.engine import Engine, WrittenEngineCollection
from tercet.cluster.backends.kept_statistics import KeptStatistics
from tercet.cluster.backends.records import lacking
from tercet.cluster.backends.snapshot import EngineSnapshot
from tercet.cluster.backends.steps import Steps, deletions, difference, groups, matching, pages, updates
from tercet.cluster.backends.terms import Statistics, counted
from tercet.cluster.backends.turns import Turn
from tercet.cluster.backends.written_rows import engine_documents
from tercet.index.candidates import Document
from tercet.index.catalog.layout import EMPTY_NAME
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.settings import CollectionSettings, require_kept
from tercet.index.documents.checked import CheckedDocuments
from tercet.index.documents.conditions import Condition, checked_condition
from tercet.index.documents.fields import columns_of
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType, MetadataChange, require_metadata
from tercet.index.documents.partitions import within_partition
from tercet.index.documents.store import encode_id
from tercet.index.errors import (
    CollectionNotFoundError,
    InvalidDocumentError,
    SearchIndexError,
)
from tercet.index.live.operations import Patch, Put
from tercet.index.live.records import WriteKey, Written
from tercet.index.live.state import LiveState
from tercet.index.segments.checks import check_batch
from tercet.index.segments.segment import Segment
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations
from tercet.service.exceptions import BackendError

KEEP_SECONDS = 60.0  # between two keepings of what is counted
KEEP_SHARE = 0.05  # of the time, that these may take
CHANGES_AT_ONCE = 256  # documents that one request puts or removes


@dataclass(frozen=True, slots=True)
class _State:
    """A collection after the write at a position. pending: whether that was under way when it was counted."""

    collection: WrittenEngineCollection
    position: int
    statistics: Statistics
    snapshot: EngineSnapshot
    pending: bool

    @staticmethod
    def of(
        collection: WrittenEngineCollection, position: int, statistics: Statistics, *, pending: bool = False
    ) -> _State:
        settings = collection.settings
        snapshot = EngineSnapshot(
            collection,
            str(position),
            statistics.documents,
            statistics.idf(settings.vocabulary_size),
            statistics.known if settings.bm25 else None,
        )
        return _State(collection, position, statistics, snapshot, pending)


class WrittenCollection:
    """In the place of `tercet.index.live.collection.LiveCollection`. Any number of threads may use it; one
    server at a time may write. Its methods wait for the engine, and raise BackendError.
    """

    def __init__(self, engine: Engine, catalog: EngineCatalog, name: str) -> None:
        self._engine = engine
        self._catalog = catalog
        self._name = name
        self._lock = threading.RLock()
        self._known: _State | None = None
        self._statistics = KeptStatistics(engine, name)
        self._kept: tuple[Lineage | None, int] | None = None
        self._keep_at = 0.0
        self._turn = Turn(engine, catalog, name)

    @property
    def known(self) -> EngineSnapshot | None:
        """As `snapshot`, where it need not be opened first. Takes no time."""
        state = self._known
        return None if state is None else state.snapshot

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created, with the fields declared since."""
        return self._state().collection.settings

    @property
    def quiet_seconds(self) -> float:
        """So long after the last note of a write another server may write."""
        return self._turn.quiet_seconds

    @property
    def position(self) -> int:
        """The position of the last write that is known here."""
        return self._state().position

    def snapshot(self) -> EngineSnapshot:
        """The collection after the last write that is known here. Raises CollectionNotFoundError."""
        return self._state().snapshot

    def look(self) -> None:
        """Takes note of what other servers wrote and declared. Raises CollectionNotFoundError."""
        if self._lock.acquire(blocking=False):  # else it is written here
            try:
                self._require_newest()
            finally:
                self._lock.release()

    def keep_statistics(self, *, last: bool = False) -> None:
        """Keeps in the engine what is counted, for the next opening, if that is new and it is time to.

        last: it is, as nothing comes after this.
        """
        state, started = self._known, time.monotonic()
        if state is None or state.pending or not state.statistics.of_content:
            return
        settings, position = state.collection.settings, state.position
        if (settings.lineage, position) == self._kept or not (last or started >= self._keep_at):
            return
        self._statistics.keep(settings, position, state.statistics)
        self._kept = settings.lineage, position
        seconds = time.monotonic() - started
        self._keep_at = started + max(KEEP_SECONDS, seconds / KEEP_SHARE)

    def reaches(self, position: int) -> bool:
        """Whether searches find what was written up to a position. Raises PositionLostError."""
        require_kept(self.settings, position)
        if self.position < position:
            self.look()
        return self.position >= position

    def put(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        if_position: int | None = None,
        key: WriteKey | None = None,
        tokens: int = 0,
    ) -> Written:
        """Adds or replaces documents, as `LiveCollection.put`."""
        if not documents:
            raise InvalidDocumentError("a write has no documents; give at least one")
        settings = self.settings
        checked = CheckedDocuments.of(documents, settings.fields, distinct=True)
        rows = check_batch(checked, representations, settings, windows)
        ids = [document.id for document in documents]
        return self._write(lambda _: [(ids, Put.of(rows, if_position))], key, tokens)

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> Written:
        """Removes documents, as `LiveCollection.delete`."""
        condition = self._within(partition)
        return self._write(lambda _: deletions(list(dict.fromkeys(ids)), condition), key)

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> Written:
        """Removes the documents that a filter allows, as `LiveCollection.delete_matching`."""
        condition = checked_condition(filter, self.settings.fields)
        return self._write(lambda collection: deletions(matching(collection, condition)), key)

    def patch(
        self,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        if_position: int | None = None,
        key: WriteKey | None = None,
    ) -> Written:
        """Changes a document's metadata, as `LiveCollection.patch`."""
        change = MetadataChange(require_metadata(f"document {id!r:.80}", metadata), merge)
        return self._write(lambda _: [([id], Patch(encode_id(id), change, if_position))], key)

    def update(
        self,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        partition: str | None = None,
        key: WriteKey | None = None,
    ) -> Written:
        """Changes the metadata of documents, as `LiveCollection.update`; group by group."""
        change = MetadataChange(require_metadata("the change", metadata), merge)
        if not isinstance(which, Filter):
            ids = list(dict.fromkeys(which))
            allowed = self._within(partition)
            return self._write(lambda _: updates(ids, change, allowed), key)
        condition = checked_condition(which, self.settings.fields)
        return self._write(
            lambda collection: updates(matching(collection, condition), change, condition), key
        )

    def _within(self, partition: str | None) -> Condition | None:
        filter = within_partition(None, partition)
        return None if filter is None else checked_condition(filter, self.settings.fields)

    def written_under(self, key: WriteKey) -> Written | None:
        """What was acknowledged under a key in the last day. Raises IdempotencyMismatchError."""
        return self._catalog.written_under(self._name, key)

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares metadata fields over all documents. Raises as `LiveCollection.declare`."""
        with self._lock:
            state = self._newest_to_write()
            former = state.collection.settings
            new = former.with_fields(fields)
            later = {name: kind for name, kind in new.fields.items() if name not in former.fields}
            if not later:
                return former
            for documents in pages(state.collection, None):
                self._turn.go_on(state.position, pending=state.pending)
                columns_of(
                    later, [document.id for document in documents], [each.metadata for each in documents]
                )
            self._turn.require()
            collection = self._engine.written(new)
            collection.declare(later)
            self._turn.require()
            self._catalog.put(new)
            self._known = _State.of(collection, state.position, state.statistics, pending=state.pending)
            return new

    def release(self) -> None:
        """Lets another server write at once, unless a write is still under way here."""
        if self._lock.acquire(blocking=False):
            try:
                self._turn.release()
            finally:
                self._lock.release()

    def begin_merge(self) -> None:
        """Raises NotInBackendError: how its segments are merged is the engine's own affair."""
        raise lacking("merging", self._engine.name)

    def remove(self) -> None:
        """Removes the collection, once no write is under way."""
        with self._lock:
            settings = self._newest_to_write().collection.settings
            self._statistics.forget()  # first: those of a later position would stay, were this interrupted
            self._catalog.delete(settings)
            self._known = None

    def _write(self, steps: Steps, key: WriteKey | None, tokens: int = 0) -> Written:
        with self._lock:
            known = None if key is None else self.written_under(key)
            if known is not None:
                return known
            state = self._newest_to_write()
            position, documents = state.position + 1, 0
            with self._told_in_part():
                try:
                    for ids, operation in steps(state.collection):
                        before = self._concerned(state, ids)
                        applied = operation.apply(before, position)
                        documents += applied.documents
                        if applied.entry is not None:
                            state = self._carried_out(state, before, applied.state, position)
                except SearchIndexError:
                    if state.position == position:  # earlier groups are changed, as the ledger's would be
                        self._turn.finish(Written(position, documents), None)
                        self._known = state
                    raise
                written = Written(state.position, documents, tokens)
                if state.position == position or key is not None:
                    self._turn.finish(written, key)
            self._known = state
            return written

    @contextmanager
    def _told_in_part(self) -> Iterator[None]:
        """Within it, a failure of the engine says that the write may be carried out in part."""
        try:
            yield
        except BackendError as error:
            self._known = None
            raise BackendError(
                f"{error}; the write may be carried out in part: repeat it when the engine answers"
            ) from error

    def _carried_out(self, state: _State, before: LiveState, after: LiveState, position: int) -> _State:
        """Has the engine do what leads from one state of some documents to another."""
        gone, removed, added = difference(before, after, position)
        mean, collection = state.statistics.mean_length, state.collection
        documents = [document for rows in added for document in engine_documents(rows, mean)]
        prepared = collection.prepared(documents)  # before the position is taken: it may be refused
        for some in groups(prepared, CHANGES_AT_ONCE):
            self._turn.go_on(position)
            collection.put(some)
        for ids in groups(gone, CHANGES_AT_ONCE):
            self._turn.go_on(position)
            collection.remove(ids)
        return _State.of(collection, position, state.statistics.moved(added, removed))

    def _concerned(self, state: _State, ids: Sequence[str]) -> LiveState:
        """The documents of some ids, as a live collection has them in memory."""
        collection = state.collection
        rows = collection.rows(collection.keys_of(ids))
        memory = (Segment.in_memory(rows, collection.settings),) if rows else ()
        return LiveState(collection.settings, EMPTY_NAME, (), memory, position=state.position)

    def _state(self) -> _State:
        state = self._known
        if state is not None:
            return state
        with self._lock:
            return self._known or self._opened()

    def _opened(self) -> _State:
        settings = self._catalog.settings(self._name)
        if settings is None:
            raise CollectionNotFoundError(
                f"{self._engine.name} has no collection {self._name!r} that Tercet writes; create it first"
            )
        collection = self._engine.written(settings)
        # Before it is counted: a later write is seen then, and so is the end of one under way.
        noted = self._turn.noted(settings.lineage)
        self._catalog.forget_keys(self._name)
        kept = None if noted.pending else self._statistics.of(settings, noted.position)
        if kept is not None:
            self._kept = settings.lineage, noted.position
        statistics = counted(collection) if kept is None else kept
        state = self._known = _State.of(collection, noted.position, statistics, pending=noted.pending)
        return state

    def _require_newest(self) -> _State:
        """The collection as it is now: counted anew where another server wrote it, or ended in a write."""
        state = self._known
        if state is not None:
            settings = self._catalog.settings(self._name)
            known = state.collection.settings
            if settings is not None and settings == known and settings.lineage == known.lineage:
                noted = self._turn.noted(settings.lineage)
                if (noted.position, noted.pending) == (state.position, state.pending):
                    return state
        self._known = None
        return self._opened()

    def _newest_to_write(self) -> _State:
        """The same, once this server is the one that writes. Raises WriterReplacedError while another is."""
        state = self._require_newest()
        taken = self._turn.take()
        # What was counted during a write that its server did not end may lack a part of it.
        return self._opened() if taken and state.pending else state
