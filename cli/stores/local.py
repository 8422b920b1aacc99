"""The collections of a data root on this machine, with the methods of a client.

`tercet.open` has the same methods, but keeps the data root for itself and loads an encoder. A command reads
beside a server that runs, and loads an encoder only where it encodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from tercet.cli import options
from tercet.cli.batches import document_record
from tercet.cli.output import error_console
from tercet.cli.stores.remote import Answer, PutReport, named_url, server_url
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import CollectionBusyError, StorageError
from tercet.index.reading.ordered import Order
from tercet.service.answers.statistics import statistics_record
from tercet.service.collections.registry import CollectionRegistry

if TYPE_CHECKING:
    from tercet.index.candidates import Document
    from tercet.index.documents.filters import Filter
    from tercet.index.documents.metadata import FieldType
    from tercet.index.live.collection import LiveCollection
    from tercet.index.snapshot import Snapshot
    from tercet.ingest.sources.files import Source
    from tercet.ingest.sources.reading import Reading
    from tercet.service.copies.backups import CollectionBackups
    from tercet.service.settings.settings import Settings

PAGE = 1000  # documents that are listed at a time
UNWRITABLE = (CollectionBusyError, StorageError, OSError)


class LocalStore:
    """One data root; used as a context manager. What it writes is published before a method returns."""

    def __init__(self, settings: Settings) -> None:
        self.location = str(settings.data)
        self._settings = settings
        self._root = options.collections_root(settings)
        self._collections = CollectionRegistry(self._root)

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._collections.close()

    def collections(self) -> list[Answer]:
        """Name, documents and model of all collections, in order of name."""
        descriptions = map(self._collections.describe, self._collections.names())
        return [
            {"name": known.settings.name, "documents": known.documents, "model": known.settings.encoder}
            for known in descriptions
        ]

    def delete_collection(self, name: str) -> None:
        """Deletes a collection with all it holds."""
        with named_url(self._settings):
            self._collections.delete(name)

    def declare_fields(self, name: str, fields: Mapping[str, FieldType]) -> Answer:
        """Declares metadata fields over what a collection holds."""
        with self._writing(name) as live:
            return {"fields": dict(live.declare(fields).fields)}

    def statistics(self, name: str) -> Answer:
        """What a collection holds: documents, segments, bytes, unpublished writes."""
        statistics = self._collections.statistics(name)
        return statistics_record(self._collections.aliases.collection_of(name), statistics)

    def merge(self, name: str) -> Answer:
        """Publishes what was written, joins segments, and gives the statistics after that."""
        with self._writing(name) as live:
            live.flush()
            live.merge()
            return self.statistics(name)

    def publish(self, name: str) -> None:
        """Publishes what was written. Raises CollectionBusyError where a server writes the collection."""
        self._collections.flush(self._collections.aliases.collection_of(name))

    def documents(
        self,
        collection: str,
        *,
        filter: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Answer]:
        """Documents in order of id, behind the one called `after`, or in order of a declared field."""
        snapshot, condition = self._snapshot(collection), None if filter is None else parse_filter(filter)
        documents = (
            _by_id(snapshot, after, condition)
            if order_by is None
            else _ordered(snapshot, Order(order_by, descending), condition)
        )
        return islice(map(document_record, documents), limit)

    def count_documents(self, collection: str, filter: Mapping[str, Any] | None = None) -> int:
        """How many documents there are, or how many a filter allows."""
        return self._snapshot(collection).count(None if filter is None else parse_filter(filter))

    def get_documents(self, collection: str, ids: Sequence[str]) -> Answer:
        """Several documents by their ids, and the ids that are not there."""
        wanted = list(dict.fromkeys(ids))
        documents = dict(zip(wanted, self._snapshot(collection).get_all(wanted), strict=True))
        return {
            "documents": [document_record(document) for copies in documents.values() for document in copies],
            "missing": [id for id, copies in documents.items() if not copies],
        }

    def update_documents(
        self,
        collection: str,
        metadata: Mapping[str, Any],
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        merge: bool = False,
    ) -> Answer:
        """Changes the metadata of documents, by ids or by a filter."""
        which = (ids or []) if filter is None else parse_filter(filter)
        with self._writing(collection) as live:
            written = live.update(which, metadata, merge=merge)
            live.flush()
        return {"updated": written.documents}

    def delete_documents(
        self,
        collection: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Deletes documents by ids or by a filter."""
        with self._writing(collection) as live:
            written = live.delete(ids or []) if filter is None else live.delete_matching(parse_filter(filter))
            live.flush()
        return {"deleted": written.documents}

    def put_source(
        self, collection: str, source: Source, reading: Reading, on_error: Literal["stop", "skip"]
    ) -> PutReport:
        """Adds or replaces the documents of a source, all of them in one step."""
        from tercet.cli.building.run import build_with

        Collection.open(self._root, collection)
        done = build_with(
            self._settings, collection, source, on_error=on_error, reading=reading, mode="upsert"
        )
        return PutReport(done.documents, done.skips, done.skipped)

    def search(self, collection: str, query: Any, **options: Any) -> Answer:
        """The best documents of a collection, each with its scores. What only a ledger holds is published."""
        from tercet.cli.stores.local_search import search_here

        self.publish_or_say(collection)
        return search_here(self._settings, collection, query, **options)

    def create_backup(self, collection: str) -> Answer:
        """Copies a collection as it is now."""
        from tercet.cli.progress import count_progress

        with named_url(self._settings), count_progress("Verifying", "bytes") as progress:
            return asdict(self._backups.make(collection, progress=progress))

    def backups(self, collection: str) -> list[Answer]:
        """The backups of a collection, the newest first."""
        return [asdict(backup) for backup in self._backups.list(collection)]

    def restore_backup(self, collection: str, backup: str, *, name: str | None = None) -> Answer:
        """Restores a backup in place, or as the new collection `name`."""
        from tercet.cli.progress import count_progress

        with named_url(self._settings), count_progress("Verifying", "bytes") as progress:
            restored = self._backups.restore(collection, backup, name, progress=progress)
        return {"name": restored.settings.name, "documents": restored.documents}

    def delete_backup(self, collection: str, backup: str) -> None:
        """Removes a backup."""
        self._backups.delete(collection, backup)

    @property
    def _backups(self) -> CollectionBackups:
        from tercet.service.copies.backups import CollectionBackups

        return CollectionBackups(self._collections, self._settings.data / "backups")

    def publish_or_say(self, name: str) -> None:
        """Publishes what was written of a collection, or of all that an alias means.

        Says what is left out where a server writes it, or it cannot be written.
        """
        self._open_ledgers(name, publish=True)

    def _snapshot(self, name: str) -> Snapshot:
        """The documents of a collection, or of all that an alias means.

        Those that only a ledger holds, too, unless a server writes it, which is said then.
        """
        self._open_ledgers(name, publish=False)
        return self._collections.snapshot(name)

    def _open_ledgers(self, name: str, *, publish: bool) -> None:
        """Opens those of a name's collections whose ledgers hold what no segment does."""
        for own_name in self._collections.aliases.collections_of(name):
            if Collection.open(self._root, own_name).has_unpublished():
                try:
                    with self._collections.writing(own_name) as live:
                        if publish:
                            live.flush()
                except UNWRITABLE as error:
                    self._say_left_out(own_name, error)

    @contextmanager
    def _writing(self, name: str) -> Iterator[LiveCollection]:
        """A collection to write, by its name or an alias, which no server writes."""
        own = self._collections.aliases.collection_of(name)
        with named_url(self._settings), self._collections.writing(own) as live:
            yield live

    def _say_left_out(self, name: str, error: Exception) -> None:
        """Says what is not read of a collection, and how it would be."""
        why = f"a server writes collection {name!r}"
        remedy = f"tercet collection merge {name} --url {server_url(self._settings)} brings them there."
        if not isinstance(error, CollectionBusyError):
            why = f"collection {name!r} cannot be written here ({error})"
            remedy = (
                f"Merge it where the data root can be written (tercet collection merge {name}), or give "
                "--data a copy that can be."
            )
        error_console().print(
            f"Note: {why}; its last writes are in no segment and are left out. {remedy}",
            markup=False,
            soft_wrap=True,
        )


def _by_id(snapshot: Snapshot, after: str | None, condition: Filter | None) -> Iterator[Document]:
    collection = None
    while page := snapshot.page(after, PAGE, condition, collection):
        yield from page
        after, collection = page[-1].id, page[-1].collection


def _ordered(snapshot: Snapshot, order: Order, condition: Filter | None) -> Iterator[Document]:
    after = None
    while page := snapshot.ordered_page(order, after, PAGE, condition):
        yield from map(snapshot.read, page)
        after = page[-1].at
