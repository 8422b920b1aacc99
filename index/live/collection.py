"""A collection that one process writes and searches: each write is durable before it is acknowledged."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import Device
from tercet.index.documents.checked import CheckedDocuments
from tercet.index.documents.conditions import Condition, checked_condition
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType, MetadataChange, require_metadata
from tercet.index.documents.partitions import within_partition
from tercet.index.documents.store import encode_id
from tercet.index.errors import CollectionBusyError, InvalidDocumentError
from tercet.index.files.lock import ExclusiveLock
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.remote import RemoteLedger
from tercet.index.live.adoption import AdoptionMode, Build
from tercet.index.live.claims import Claims
from tercet.index.live.operations import (
    Claim,
    Delete,
    DeleteMatching,
    Nothing,
    Patch,
    Put,
    Update,
    matching_ids,
)
from tercet.index.live.parts import LiveParts, open_parts
from tercet.index.live.records import LiveLimits, LiveObserver, WriteKey, Written
from tercet.index.live.state import LiveState
from tercet.index.live.statistics import CollectionCounts, CollectionStatistics, live_counts, live_statistics
from tercet.index.live.threads import LiveThreads
from tercet.index.segments.checks import check_batch
from tercet.index.snapshot import Snapshot
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations

DEFAULT_LIMITS = LiveLimits()
UPDATED_AT_ONCE = 1000


class LiveCollection:
    """The one writer of a collection, used as a context manager; any number of threads may call it.

    Entering takes the collection's lock and carries out again what the ledger holds and no segment does:
    nothing is encoded. Raises CollectionBusyError where another process writes, or DamagedIndexError. In a
    process that is forked from this one, and has none of its threads, all methods raise CollectionBusyError.
    Flushes and merges run in other threads meanwhile. Leaving does not flush: the ledger has it all. One
    whose folder was copied here goes on at positions that the original one has not given.
    """

    def __init__(
        self,
        collection: Collection,
        limits: LiveLimits = DEFAULT_LIMITS,
        observer: LiveObserver | None = None,
        device: Device = "cpu",
        threads: LiveThreads | None = None,
        remote: RemoteLedger | None = None,
    ) -> None:
        """device: where dense search of published segments runs. threads: shared with other collections; by
        default it has its own. remote: has operations before they are acknowledged, and gives those that are
        not here; a collection that had one is not opened without.
        """
        self._threads = threads
        self._remote = remote
        self._collection = collection
        self._settings = collection.settings
        self._limits = limits
        self._observer = observer or LiveObserver()
        self._device: Device = device
        self._lock = ExclusiveLock(collection.layout.lock, f"collection {collection.settings.name!r}")
        self._parts: LiveParts | None = None
        self._process = os.getpid()
        self._opening = threading.Lock()
        self._opened: tuple[LiveState, Snapshot] | None = None
        self._claims = Claims()

    def __enter__(self) -> LiveCollection:
        self._lock.acquire()
        self._process = os.getpid()
        with ExitStack() as opened:  # what fails on the way leaves nothing open
            opened.callback(self._lock.release)
            self._parts = open_parts(
                self._collection,
                self._limits,
                self._observer,
                self._device,
                self._threads,
                self._remote,
                opened,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process == os.getpid():  # else the process that entered is the one to close it
            self._running().opened.close()

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created, with the fields declared since."""
        return self._settings if self._parts is None else self._parts.committer.state.settings

    @property
    def lineage(self) -> Lineage:
        """Of which collection this is a copy, and which of its positions were lost."""
        lineage = self.settings.lineage
        assert lineage is not None  # noqa: S101 - what an older release left without gets one on entering
        return lineage

    @property
    def position(self) -> int:
        """The position of the last operation."""
        return self._running().committer.state.position

    @property
    def version(self) -> tuple[int, int, int]:
        """Another one whenever searches may find something else; flushes and merges leave it as it is."""
        state = self._running().committer.state
        return state.position, state.adoptions, len(state.settings.fields)

    @property
    def is_idle(self) -> bool:
        """Whether segments hold all that was written, and neither upkeep nor a build is under way.

        Where nobody writes meanwhile it may be closed, and searches of the published snapshot find the same.
        """
        parts = self._running()
        return parts.upkeep.is_idle and parts.committer.state.deleted is None

    @property
    def may_close(self) -> bool:
        """Whether nothing but a flush would be cut off by closing it: no build, and no merge."""
        parts = self._running()
        return not parts.upkeep.merging and parts.committer.state.deleted is None

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
        """Adds or replaces documents; returns once they are on the disk. All or none.

        if_position: none of those that are there may have been written after it. key: as for every write, a
        repeat under it within a day changes nothing and returns what the first one did, and another write
        under it raises IdempotencyMismatchError. tokens: that were encoded for it, for the answer.
        Raises InvalidDocumentError, also for no documents, DuplicateDocumentError for an id that occurs
        twice, DocumentChangedError, PartitionConflictError, StorageFullError or StorageError.
        """
        if not documents:
            raise InvalidDocumentError("a write has no documents; give at least one")
        settings = self.settings
        checked = CheckedDocuments.of(
            documents, settings.fields, distinct=True, partitioned=settings.partitioned
        )
        rows = check_batch(checked, representations, settings, windows)
        if rows.continues:
            raise InvalidDocumentError("a live collection takes complete documents; give all windows at once")
        self._limits.require_fitting(rows)
        parts = self._running()
        parts.upkeep.wait_for_room()
        put = Put.of(rows, if_position, self._claims)
        return self._acknowledged(parts.committer.submit(put, key, tokens).result())

    def claim(
        self, ids: Sequence[str], owner: str, *, own: Mapping[str, str] | None = None, ends: bool = False
    ) -> None:
        """Puts no documents of these ids, until this claim ends, as another shard of a partitioned collection
        is about to get them. owner: a name for their put. own: the partitions, by their ids, of documents
        that are about to come here by that put. Raises PartitionConflictError where one of `ids` is here, or
        one of `own` is in another partition.
        """
        encoded, here = (PackedBytes.of([encode_id(id) for id in some]) for some in (ids, own or {}))
        partitions = [partition.encode() for partition in (own or {}).values()]
        claim = Claim(encoded, self._claims, owner, here, partitions, ends=ends)
        self._running().committer.submit(claim).result()

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> Written:
        """Removes documents; ids that are not there count nothing and are no error. partition: documents in
        another one stay. Raises InvalidQueryError for it, where the collection has none.
        """
        condition = self._within(partition)
        encoded = PackedBytes.of(list(dict.fromkeys(encode_id(id) for id in ids)))
        return self._acknowledged(self._running().committer.submit(Delete(encoded, condition), key).result())

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> Written:
        """Removes the documents that a filter over declared fields allows. Raises InvalidQueryError."""
        operation = DeleteMatching(checked_condition(filter, self.settings.fields))
        return self._acknowledged(self._running().committer.submit(operation, key).result())

    def patch(
        self,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        if_position: int | None = None,
        key: WriteKey | None = None,
    ) -> Written:
        """Replaces a document's metadata, or merges this into it as a JSON Merge Patch (RFC 7396).

        Raises DocumentNotFoundError, DocumentChangedError, InvalidDocumentError or WriteOverloadedError.
        """
        parts = self._running()
        parts.upkeep.wait_for_room()  # the document is in memory again, all of it
        change = MetadataChange(require_metadata(f"document {id!r:.80}", metadata), merge)
        operation = Patch(encode_id(id), change, if_position)
        return self._acknowledged(parts.committer.submit(operation, key).result())

    def update(
        self,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        partition: str | None = None,
        key: WriteKey | None = None,
    ) -> Written:
        """Changes the metadata of documents as `patch` does: of these ids, or of those that a filter over
        declared fields allows. Ids that are not there are no error, and count nothing. partition: documents
        of ids in another one stay as they are.

        So many as UPDATED_AT_ONCE are changed in one step; of more, each group by itself, as its documents
        are by then. A crash before the end leaves earlier groups changed. Raises InvalidQueryError for the
        filter, InvalidDocumentError for what a document would become, or WriteOverloadedError.
        """
        parts = self._running()
        change = MetadataChange(require_metadata("the change", metadata), merge)
        condition = self._within(partition)
        if isinstance(which, Filter):
            condition = checked_condition(which, self.settings.fields)
            ids = matching_ids(parts.committer.state, condition)
        else:
            ids = PackedBytes.of(list(dict.fromkeys(encode_id(id) for id in which)))
        if len(ids) <= UPDATED_AT_ONCE:
            parts.upkeep.wait_for_room()
            return self._acknowledged(parts.committer.submit(Update(ids, change, condition), key).result())
        known = None if key is None else self.written_under(key)
        if known is not None:
            return known
        count = 0
        for start in range(0, len(ids), UPDATED_AT_ONCE):
            some = ids.gather(np.arange(start, min(start + UPDATED_AT_ONCE, len(ids))))
            parts.upkeep.wait_for_room()
            written = parts.committer.submit(Update(some, change, condition)).result()
            count += self._acknowledged(written).documents
        return self._acknowledged(parts.committer.submit(Nothing(count), key).result())

    def _within(self, partition: str | None) -> Condition | None:
        """What allows the documents of a partition, where one is given."""
        filter = within_partition(None, partition)
        return None if filter is None else checked_condition(filter, self.settings.fields)

    def written_under(self, key: WriteKey) -> Written | None:
        """What was acknowledged under a key in the last day, so that a repeat need not be encoded.

        Raises IdempotencyMismatchError where it was another write.
        """
        return self._running().committer.written_under(key)

    def snapshot(self) -> Snapshot:
        """The collection after the last acknowledged write, for as long as it is held."""
        state = self._running().committer.state
        with self._opening:
            if self._opened is None or self._opened[0] is not state:
                self._opened = (state, state.snapshot())
            return self._opened[1]

    def stats(self) -> CollectionStatistics:
        """What the collection holds now, and how far its upkeep is. Waits for neither flush nor merge."""
        parts = self._running()
        return live_statistics(
            parts.committer.state,
            parts.ledger.total_bytes,
            flushing=parts.upkeep.flushing,
            merging=parts.upkeep.merging,
        )

    def counts(self) -> CollectionCounts:
        """The part of `stats` that metrics tell."""
        return live_counts(self._running().committer.state)

    def flush(self) -> None:
        """Publishes what was written so far in a segment on the disk, where other processes see it.

        Writes and searches go on meanwhile. Raises OSError, StorageError or DamagedIndexError; nothing that
        was acknowledged is lost then, and the next flush tries again.
        """
        self._running().flush.run()

    def merge(self) -> int:
        """Joins published segments as long as there are too many of a size; returns how often.

        Writes and searches go on meanwhile. Raises OSError or DamagedIndexError; then all is as before.
        """
        merge, merges = self._running().merge, 0
        while merge.run():
            merges += 1
        return merges

    def begin_merge(self) -> None:
        """Has the background flush and merge now; `stats` tells when neither is under way any more."""
        self._running().upkeep.begin()

    def put_off_merges(self, seconds: float) -> None:
        """Has the background begin no merge for so long from now on, and give up one that is under way."""
        self._running().upkeep.put_off_merges(seconds)

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares metadata fields over all documents, and returns the settings with them.

        Those that are declared already stay. Writes and searches go on meanwhile. Raises InvalidFieldError,
        InvalidNameError, InvalidDocumentError naming a document whose metadata has another type,
        CollectionBusyError while a build is under way, and what a flush raises; then none is declared.
        """
        settings = self._running().declaration.run(fields)
        self._publish_remotely()
        return settings

    def check_fields(self, fields: Mapping[str, FieldType]) -> None:
        """Raises what `declare` would at present, but for what its flush raises; nothing is declared."""
        self._running().declaration.check(fields)

    def begin_build(self) -> Build:
        """Begins a build beside writes, which `adopt` ends; flushes, and takes note of deletes from now on.

        Raises CollectionBusyError where another one is under way, and what a flush raises.
        """
        return self._running().adoption.begin()

    def adopt(
        self,
        build: Build,
        source: CollectionLayout,
        mode: AdoptionMode = "replace",
        mark: str | None = None,
        superseded: Sequence[str] = (),
    ) -> str:
        """Publishes the snapshot of another collection folder of these settings; returns its new name.

        It takes the place of all documents (replace), or of those with the same ids and those of `superseded`
        (upsert); what was written or deleted since `build` began stays. The folder's files are linked, and it
        stays as it is. mark: by which the manifest is known, see `Collection.writer`.

        Raises FingerprintMismatchError for other settings, DamagedIndexError, OSError, or
        UnforcedPublicationError; after any but the last all is as before.
        """
        name = self._running().adoption.run(build, source, mode, mark, superseded)
        self._publish_remotely()
        return name

    def resume(self, lineage: Lineage, position: int) -> None:
        """Goes on as a copy of this lineage, after a position above all that were given here: see
        `Lineage.resumed`. Raises as `Resuming.run`.
        """
        self._running().resuming.run(lineage, position)
        self._publish_remotely()

    def join(self, part: ShardPart | None, *, keeps_id: bool = False) -> ShardPart | None:
        """Becomes this part of a collection over shards; returns which part it is. keeps_id: where it is this
        part of one already, it stays that. Raises as `resume`.
        """
        present = self.lineage.part
        if part is None or (
            keeps_id and present is not None and replace(part, collection=present.collection) == present
        ):
            return present
        if part != present:
            self.resume(replace(self.lineage, part=part), self.position)
        return part

    def fence(self, version: int) -> int:
        """Refuses writes from now on, as the collection moves to other servers: then every write, declaration
        and build raises CollectionFencedError. Returns the position of the last write that was acknowledged.

        version: of the map of shards that this makes way for. Raises CollectionBusyError where that was given
        up, or while a build is under way, or OSError.
        """
        return self._running().fencing.close(version)

    def settle(self, version: int, part: ShardPart, received: CollectionLayout | None = None) -> int:
        """Takes writes again, as this part of a collection over shards by a version of the map; returns the
        position. Nobody may write meanwhile. Raises as `Settling.run`.
        """
        position = self._running().settling.run(version, part, received)
        self._publish_remotely()
        return position

    def end_remotely(self) -> None:
        """Notes elsewhere that the collection is deleted, which whoever calls does next: it takes no writes
        any more. Raises as `RemoteLedger` says.
        """
        remote = self._remote
        if remote is not None:

            def end(state: LiveState) -> LiveState:
                remote.end()
                return state

            self._running().committer.change(end)

    def _publish_remotely(self) -> None:
        """Has what is no operation outlast the disk, where operations do."""
        if self._remote is not None:
            self._remote.publish()

    def _acknowledged(self, written: Written) -> Written:
        """Tells the upkeep that something was written."""
        self._running().upkeep.wrote()
        return written

    def _running(self) -> LiveParts:
        if self._parts is None:
            raise RuntimeError("a live collection is used as a context manager")
        if self._process != os.getpid():
            raise CollectionBusyError(
                f"collection {self._settings.name!r} is written by process {self._process}, of which this "
                f"one, {os.getpid()}, was forked: send writes there, or open the collection here once it is "
                "closed there; to search, open its published snapshot here"
            )
        return self._parts
