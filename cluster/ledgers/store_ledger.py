"""A collection's ledger on an object store, as its writer uses it: see `tercet.index.ledger.remote`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tercet.cluster.errors import ClusterError
from tercet.cluster.ledgers.batch import Batch, Kind, entries_after
from tercet.cluster.ledgers.chain import batch_path, read_batch, read_tail
from tercet.cluster.objects.errors import AlreadyThereError, DamagedObjectError, UnreachableStoreError
from tercet.cluster.objects.opening import open_store, require_creation
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.published import newest_published
from tercet.cluster.snapshots.pushing import push
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError, StorageError, WriterReplacedError, WriteUnknownError
from tercet.index.ledger.records import LedgerEntry
from tercet.index.ledger.remote import Begun, RemoteLedgers, RemoteWriter

STAGES = "snapshots/ledger"  # beside those of pushes that go on at the same time
ATTEMPTS = 20  # of becoming the writer while another one appends


def ledgers_below(url: str, data: Path) -> RemoteLedgers:
    """What gives the ledger of each collection, in a folder of its name below a URL. data: the data root.
    Raises StoreAddressError.
    """
    store = open_store(url)
    return lambda layout: StoreLedger(layout, store.below(layout.folder.name), data / STAGES)


class StoreLedger:
    """The batches below a collection's URL, beside its snapshots. An append is one creation."""

    def __init__(
        self, layout: CollectionLayout, store: ObjectStore, stages: Path, *, takes_over: bool = False
    ) -> None:
        """store: of the collection's URL; stages: as for a push; takes_over: it becomes the writer in the
        place of whoever is.
        """
        self._layout = layout
        self._store = store
        self._stages = stages
        self._takes_over = takes_over
        self._next: Batch | None = None  # the claim that was made, with the number of the next batch
        self._pending: Batch | None = None  # what may be there, and not in the ledger here
        self._replaced: WriterReplacedError | None = None

    def begin(self, position: int) -> Begun:
        with self._failing():
            require_creation(self._store)
            writer = RemoteWriter.at(self._layout, self._store.url).id
            for _ in range(ATTEMPTS):
                batches, published = read_tail(self._store, position), newest_published(self._store)
                last = batches[-1] if batches else Batch(0, 0, writer, "deleted", 1)
                is_new, is_same = last.kind == "deleted", self._is_of(published)
                if last.writer != writer and not self._takes_over and (is_same or not is_new):
                    raise self._refusal(last)
                entries = [] if is_new else entries_after(batches, position, self._store.url)
                reached = 0 if published is None or not is_same else published.manifest.ledger_position
                self._require_reaching(position + len(entries), reached)
                ended = 0 if is_new else last.last
                claim = Batch(last.number + 1, last.epoch + 1, writer, "claim", ended + 1)
                try:
                    self._store.create(batch_path(claim.number), claim.content)
                except AlreadyThereError:
                    continue
                self._next = replace(claim, number=claim.number + 1)
                if is_new and batches and published is not None and not is_same:
                    self._take_place_of(published)
                return Begun(entries, needs_snapshot=not is_same or max(reached, ended) < position)
        raise StorageError(
            f"others wrote the ledger at {self._store.url} {ATTEMPTS} times while this server was to become "
            "its writer; nothing was written: try again"
        )

    def append(self, first: int, entries: Sequence[LedgerEntry]) -> None:
        batch = self._batch("entries", first, entries)
        self._pending = batch
        with self._failing():
            try:
                self._create(batch)
            except UnreachableStoreError as error:
                raise WriteUnknownError(
                    f"{error}; whether the write is there is unknown: repeat it when the store answers"
                ) from error

    def appended(self) -> None:
        assert self._pending is not None  # noqa: S101 - what was appended is pending until now
        self._passed(self._pending)

    def settle(self) -> Sequence[LedgerEntry]:
        pending = self._pending
        if pending is None:
            return ()
        void = replace(pending, kind="void", entries=())
        with self._failing():
            try:
                self._store.create(batch_path(void.number), void.content)
            except AlreadyThereError:
                found = self._store.get(batch_path(void.number))
                if found == pending.content:
                    return pending.entries
                if found != void.content:
                    raise self._lost() from None
        self._passed(void)
        return ()

    def publish(self) -> None:
        with self._failing():
            collection = Collection.named(self._layout.folder.parent, self._layout.folder.name)
            push(collection, self._store, self._stages)

    def end(self) -> None:
        self.settle()
        last = self._batch("deleted", 1)
        with self._failing():
            self._create(last)
        self._replaced = WriterReplacedError(f"collection {self._layout.folder.name!r} is being deleted")

    def _batch(self, kind: Kind, first: int, entries: Sequence[LedgerEntry] = ()) -> Batch:
        """The next one. Raises WriterReplacedError once that is known."""
        if self._replaced is not None:
            raise self._replaced
        assert self._next is not None  # noqa: S101 - begun before
        return replace(self._next, kind=kind, first=first, entries=tuple(entries))

    def _create(self, batch: Batch) -> None:
        try:
            self._store.create(batch_path(batch.number), batch.content)
        except AlreadyThereError:
            raise self._lost() from None

    def _passed(self, batch: Batch) -> None:
        """The number of a batch is taken for good."""
        self._pending = None
        self._next = replace(batch, number=batch.number + 1)

    def _lost(self) -> WriterReplacedError:
        """What is raised from now on: another server has the next number."""
        assert self._next is not None  # noqa: S101 - begun before
        self._pending = None
        self._replaced = self._refusal(read_batch(self._store, self._next.number))
        return self._replaced

    def _refusal(self, other: Batch) -> WriterReplacedError:
        return WriterReplacedError(
            f"collection {self._layout.folder.name!r} is written by another server since epoch {other.epoch} "
            f"of its ledger at {self._store.url}; nothing was written: write there, or make this server the "
            "writer (tercet collection promote)"
        )

    def _require_reaching(self, position: int, published: int) -> None:
        """Raises StorageError where a copy that comes to a position lacks writes that are published."""
        if position < published:
            raise StorageError(
                f"{self._store.url} has writes up to position {published}, and the collection here comes to "
                f"{position}, as where an older copy of the disk was restored: have it all by tercet "
                "collection promote"
            )

    def _take_place_of(self, deleted: PublishedSnapshot) -> None:
        """Has the lineage here say that it takes the place of what is published, which was deleted."""
        there, here = deleted.lineage, Lineage.read(self._layout.folder)
        if there is not None and here is not None:
            replace(here, former=(*here.former, there.id)).write(self._layout.folder)

    def _is_of(self, published: PublishedSnapshot | None) -> bool:
        """Whether what is published is of the collection here."""
        there, here = None if published is None else published.lineage, Lineage.read(self._layout.folder)
        return here is not None and there is not None and here.id == there.id

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Within it, a failure of the store is told as one of the collection's storage."""
        try:
            yield
        except DamagedObjectError as error:
            raise DamagedIndexError(str(error)) from error
        except ClusterError as error:
            raise StorageError(f"{error}; nothing was written") from error
