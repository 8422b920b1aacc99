"""A collection as a command opens it: here to read or to write, or at a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.cli import options
from tercet.cli.output import error_console
from tercet.cli.remote import Remote, named_url, usual_url
from tercet.index.errors import CollectionBusyError, StorageError

UNWRITABLE = (CollectionBusyError, StorageError, OSError)

if TYPE_CHECKING:
    from tercet.index.collection import Collection
    from tercet.index.live.collection import LiveCollection
    from tercet.index.snapshot import Snapshot
    from tercet.service.settings.settings import Settings


@contextmanager
def opened_live(name: str, data: Path | None) -> Iterator[LiveCollection]:
    """A collection to write, which no server writes."""
    from tercet.index.collection import Collection
    from tercet.index.live.collection import LiveCollection

    settings = options.settings_from(data=data)
    collection = Collection.open(options.collections_root(settings), name)
    with named_url(settings), LiveCollection(collection) as live:
        yield live


@contextmanager
def opened_remote(url: str, data: Path | None) -> Iterator[Remote]:
    """A server, with the keys that the settings name."""
    with Remote(url, options.settings_from(data=data)) as remote:
        yield remote


@contextmanager
def opened_snapshot(name: str, data: Path | None) -> Iterator[Snapshot]:
    """The documents of a collection, or of all that an alias means; those that only a ledger holds, too,
    unless a server writes it, which is said then.
    """
    from tercet.index.catalog.aliases import Aliases
    from tercet.index.snapshot import Snapshot

    settings = options.settings_from(data=data)
    with ExitStack() as opened:
        names = Aliases(options.collections_root(settings)).collections_of(name)
        parts = [_snapshot_of(opened, settings, each) for each in names]
        yield parts[0] if len(parts) == 1 else Snapshot.united(name, parts)


def _snapshot_of(opened: ExitStack, settings: Settings, name: str) -> Snapshot:
    """Of one collection, by its own name, open until the stack is left."""
    from tercet.index.collection import Collection
    from tercet.index.live.collection import LiveCollection

    collection = Collection.open(options.collections_root(settings), name)
    if collection.has_unpublished():
        try:
            return opened.enter_context(LiveCollection(collection)).snapshot()
        except UNWRITABLE as error:
            _say_left_out(collection, settings, error)
    snapshot = collection.snapshot()
    opened.callback(snapshot.close)
    return snapshot


def publish_unpublished(collection: Collection, settings: Settings) -> None:
    """Brings what only a collection's ledger holds into a segment; where a server writes it, or it cannot be
    written, says that this is left out.
    """
    from tercet.index.live.collection import LiveCollection

    if collection.has_unpublished():
        try:
            with LiveCollection(collection) as live:
                live.flush()
        except UNWRITABLE as error:
            _say_left_out(collection, settings, error)


def _say_left_out(collection: Collection, settings: Settings, error: Exception) -> None:
    """Says what is not read of a collection, and how it would be."""
    name, url = collection.settings.name, usual_url(settings)
    why = f"a server writes collection {name!r}"
    if not isinstance(error, CollectionBusyError):
        why = f"collection {name!r} cannot be written here ({error})"
    error_console().print(
        f"Note: {why}; its last writes are in no segment and are left out. "
        f"tercet index merge {name} --url {url} brings them there.",
        markup=False,
        soft_wrap=True,
    )
