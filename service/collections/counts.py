"""What metrics tell of collections that are not written here, read again only where files are others."""

from __future__ import annotations

from pathlib import Path

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import Collection
from tercet.index.files.versions import FileVersion, version_of
from tercet.index.ledger.file import log_of
from tercet.index.live.statistics import CollectionCounts, published_counts

_LAYOUT = CollectionLayout(Path())
FILES = (_LAYOUT.current.name, _LAYOUT.ledger.name, log_of(_LAYOUT.ledger).name)

Versions = tuple[FileVersion | None, ...]


class PublishedCounts:
    """Counts of a folder's collections. A scrape of thousands reads sizes and times of their files alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[Versions, CollectionCounts]] = {}

    def of(self, name: str) -> CollectionCounts:
        """The counts of a collection. Raises CollectionNotFoundError, DamagedIndexError or StorageError."""
        folder = f"{self._root}/{name}/"
        versions = tuple(_version_of(folder + file) for file in FILES)
        known = self._known.get(name)
        if known is None or known[0] != versions:
            # A file replaced since then is another than noted here, and so is read once more.
            known = self._known[name] = versions, published_counts(Collection.open(self._root, name))
        return known[1]

    def forget(self, name: str) -> None:
        """Lets go of what is known of it."""
        self._known.pop(name, None)


def _version_of(path: str) -> FileVersion | None:
    """The version of a file that holds something: to read a ledger leaves an empty log beside it."""
    version = version_of(path)
    return None if version is None or not version[2] else version
