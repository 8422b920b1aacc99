"""A collection as a command opens it: here to read or to write, or at a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cli import options
from cli.remote import Remote, named_url

if TYPE_CHECKING:
    from index.live.collection import LiveCollection
    from index.snapshot import Snapshot


@contextmanager
def opened_live(name: str, data: Path | None) -> Iterator[LiveCollection]:
    """A collection to write, which no server writes."""
    from index.collection import Collection
    from index.live.collection import LiveCollection

    root = options.collections_root(options.settings_from(data=data))
    with named_url(), LiveCollection(Collection.open(root, name)) as live:
        yield live


@contextmanager
def opened_remote(url: str, data: Path | None) -> Iterator[Remote]:
    """A server, with the keys that the settings name."""
    with Remote(url, options.settings_from(data=data)) as remote:
        yield remote


@contextmanager
def opened_snapshot(name: str, data: Path | None) -> Iterator[Snapshot]:
    """The documents of a collection, or of all that an alias means; those that only a ledger holds, too."""
    from index.catalog.aliases import Aliases
    from index.snapshot import Snapshot

    root = options.collections_root(options.settings_from(data=data))
    with ExitStack() as opened:
        names = Aliases(root).collections_of(name)
        parts = [opened.enter_context(_snapshot_of(root, each)) for each in names]
        yield parts[0] if len(parts) == 1 else Snapshot.united(name, parts)


@contextmanager
def _snapshot_of(root: Path, name: str) -> Iterator[Snapshot]:
    """Of one collection, by its own name."""
    from index.collection import Collection
    from index.live.collection import LiveCollection

    collection = Collection.open(root, name)
    if not collection.layout.ledger.exists():
        yield collection.snapshot()
        return
    with named_url(), LiveCollection(collection) as live:
        yield live.snapshot()
