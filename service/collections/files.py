"""The files of collections that a service looks at, read again only where they are others."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tercet.index.catalog.deletions import was_deleted
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.errors import CollectionNotFoundError
from tercet.index.files.versions import FileVersion, version_of
from tercet.index.wording import failure_text

Versions = tuple[FileVersion, FileVersion | None]
"""The versions of a collection's settings and of its `CURRENT`."""

log = logging.getLogger("tercet")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchedFiles:
    """The files that a search looks at, of a collection that is not written here."""

    settings: str
    current: str

    @staticmethod
    def of(layout: CollectionLayout) -> SearchedFiles:
        return SearchedFiles(str(layout.settings), str(layout.current))

    def versions(self) -> Versions:
        """Raises FileNotFoundError where there is no collection."""
        settings = version_of(self.settings)
        if settings is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.settings)
        return settings, version_of(self.current)

    def required(self, name: str) -> Versions:
        """The versions of a collection's files. Raises CollectionNotFoundError, which names it."""
        try:
            return self.versions()
        except FileNotFoundError as error:
            raise CollectionNotFoundError(
                f"collection {name!r} does not exist; create or build it first",
                Path(self.settings).parent,
                was_deleted=was_deleted(Path(self.settings).parents[1], name),
            ) from error

    def are(self, name: str, versions: Versions) -> bool:
        """Whether the files of a collection are still these."""
        try:
            return self.versions() == versions
        except FileNotFoundError:
            return False
        except OSError as error:  # of this moment or this process: what is open can still be searched
            reason = failure_text(error)
            log.error("collection %s: cannot tell whether it was published again: %s", name, reason)
            return True


@dataclass(frozen=True, slots=True)
class _Read(Generic[T]):
    """What was read from a file, and which file that was."""

    version: FileVersion
    content: T


class ReadFiles(Generic[T]):
    """What one file of each collection holds."""

    def __init__(self) -> None:
        self._known: dict[str, _Read[T]] = {}

    def of(self, name: str, path: str, read: Callable[[Path], T]) -> T | None:
        """What a collection's file says, read where it is another than before; None where it is not there.

        Raises what `read` does.
        """
        version = version_of(path)
        if version is None:
            self.forget(name)
            return None
        known = self._known.get(name)
        if known is None or known.version != version:
            # A file replaced since then is newer than noted here, and so is read once more.
            try:
                known = self._known[name] = _Read(version, read(Path(path)))
            except FileNotFoundError:  # removed since the look
                self.forget(name)
                return None
        return known.content

    def forget(self, name: str) -> None:
        """Lets go of what is known of a collection."""
        self._known.pop(name, None)
