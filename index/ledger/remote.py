"""A collection's second ledger, elsewhere: what it has is not lost with the disk.

It has each operation before the ledger here has it, and so before it is acknowledged. One server at a time is
its writer; the former one is refused from its next write on.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.errors import CollectionBusyError, DamagedIndexError
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import write_json_atomically
from tercet.index.ledger.records import LedgerEntry


@dataclass(frozen=True, slots=True)
class Begun:
    """What a writer begins with. entries: operations that follow those it has; needs_snapshot: whether a
    snapshot has to be published before the next write, as what is elsewhere does not lead up to it.
    """

    entries: Sequence[LedgerEntry]
    needs_snapshot: bool


class RemoteLedger(Protocol):
    """The remote ledger of one collection. Methods but `publish` are of one thread at a time.

    All raise StorageError where it cannot be reached, or WriterReplacedError once another server is the
    writer; then nothing was written.
    """

    def begin(self, position: int) -> Begun:
        """Becomes the writer, as whoever was it from this folder before. position: of the last operation
        here.
        """

    def append(self, first: int, entries: Sequence[LedgerEntry]) -> None:
        """Adds operations, all or none, the first of them with this position.

        Raises WriteUnknownError where it may have them: `settle` tells.
        """

    def appended(self) -> None:
        """The ledger here has what was added last, too."""

    def settle(self) -> Sequence[LedgerEntry]:
        """What was added last, where it is there and perhaps not here; else it never will be there."""

    def publish(self) -> None:
        """Publishes the collection's current snapshot, for what is no operation: builds, fields, lineages."""

    def end(self) -> None:
        """Notes that the collection is deleted, so that nobody recovers it."""


RemoteLedgers = Callable[[CollectionLayout], RemoteLedger]


@dataclass(frozen=True, slots=True)
class RemoteWriter:
    """Who writes a remote ledger: `remote.json` of the collection's folder. url: where that is; id: random,
    by which its writers know each other.
    """

    url: str
    id: str

    @staticmethod
    def of(layout: CollectionLayout) -> RemoteWriter | None:
        """That of a folder, None of one without a remote ledger. Raises DamagedIndexError."""
        try:
            record = read_json_object(layout.remote)
        except FileNotFoundError:
            return None
        match record:
            case {"url": str(url), "id": str(id)}:
                return RemoteWriter(url, id)
        raise DamagedIndexError(f"{layout.remote} does not say where the remote ledger is; restore it")

    @staticmethod
    def at(layout: CollectionLayout, url: str) -> RemoteWriter:
        """That of a folder for the remote ledger at a URL, made and forced to the disk where it is not."""
        found = RemoteWriter.of(layout)
        if found is None or found.url != url:
            found = RemoteWriter(url, secrets.token_hex(16))
            write_json_atomically(layout.remote, asdict(found))
        return found


def require_none(layout: CollectionLayout) -> None:
    """Raises CollectionBusyError where a collection has a remote ledger, which would miss what is written
    without it.
    """
    found = RemoteWriter.of(layout)
    if found is not None:
        raise CollectionBusyError(
            f"collection {layout.folder.name!r} has its ledger at {found.url}, and is written by a server "
            f"that has that as its ledger_url: use that one, or remove {layout.remote} to go on without"
        )
