"""Makes a server the writer of a collection whose ledger is on a store, with all that was acknowledged.

Its data root may be empty, that of a server that follows the collection, or that of a former writer. Whoever
wrote it until now is refused from its next write on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tercet.cluster.ledgers.chain import listed_numbers, read_batch, read_tail
from tercet.cluster.ledgers.store_ledger import STAGES, StoreLedger
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.errors import NotContinuedError, SnapshotNotFoundError
from tercet.cluster.snapshots.followed import FILE, take_up
from tercet.cluster.snapshots.moving import unwritten
from tercet.cluster.snapshots.published import required_snapshot
from tercet.cluster.snapshots.transfers import BytesDone, nobody
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import Collection, delete_collection
from tercet.index.files.directory import remove_file
from tercet.index.ledger.reader import LedgerReader
from tercet.index.ledger.remote import RemoteWriter
from tercet.index.live.collection import LiveCollection
from tercet.models.files import force
from tercet.service.collections.registry import CollectionRegistry


@dataclass(frozen=True, slots=True)
class Promoted:
    """A collection that this data root writes from now on. position: of its last write."""

    collection: str
    documents: int
    position: int


def ledgers_at(store: ObjectStore) -> list[str]:
    """The names of the collections that have a ledger below a URL, and were not deleted."""
    return [name for name in store.folders() if _is_there(store.below(name))]


def promote(name: str, store: ObjectStore, data: Path, progress: BytesDone = nobody) -> Promoted:
    """store: of the URL below which the ledgers are; data: the data root, which no server has open.

    Raises SnapshotNotFoundError where there is no such ledger, NotFollowedError where the data root has
    another collection of the name, CollectionBusyError while a server has it, and as `take_up` and
    `LiveCollection` do. A repeat goes on.
    """
    own = store.below(name)
    if not _is_there(own):
        raise SnapshotNotFoundError(
            f"{own.url} has no ledger; give the ledger_url of the server that wrote it"
        )
    root, stages = data / "collections", data / "snapshots"
    layout = CollectionLayout(root / name)
    published = required_snapshot(own)
    written = RemoteWriter.of(layout) if layout.settings.exists() else None
    if written is not None and written.url == own.url:
        _require_all_there(layout, own, published.manifest.ledger_position)
        delete_collection(root, name)
    registry = CollectionRegistry(root)
    try:
        with unwritten(layout, name):
            take_up(own, published, registry, stages, progress)
    finally:
        registry.close()
    remote = StoreLedger(layout, own, data / STAGES, takes_over=True)
    with LiveCollection(Collection.named(root, name), remote=remote) as live:
        remove_file(layout.folder / FILE)  # it follows nobody any more
        force(layout.folder)
        return Promoted(name, live.snapshot().documents, live.position)


def _require_all_there(layout: CollectionLayout, store: ObjectStore, published: int) -> None:
    """Raises NotContinuedError where a former writer has a write that neither snapshot nor ledger has."""
    with LedgerReader.open(layout.ledger) as ledger:
        here = ledger.last_position
    there = max([published, *(batch.last for batch in read_tail(store, published))])
    if here > there:
        raise NotContinuedError(
            f"{store.url} has writes up to position {there}, and the collection here up to {here}: start its "
            "server again with this ledger_url, so that it sends them, or remove the collection here"
        )


def _is_there(store: ObjectStore) -> bool:
    numbers = listed_numbers(store)
    return bool(numbers) and read_batch(store, numbers[-1]).kind != "deleted"
