"""What else is stored of collections and counts for requests: defaults and efforts of searches, encoders."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import SETTINGS_FILE, CollectionSettings
from tercet.index.collection import collection_folders
from tercet.index.errors import SearchIndexError
from tercet.index.snapshot import Snapshot
from tercet.ingest.encoder_match import checkpoint_of
from tercet.service.collections.files import ReadFiles
from tercet.service.collections.readable import SearchTarget

DEFAULTS = CollectionLayout(Path()).defaults.name
EFFORT = CollectionLayout(Path()).effort.name


class SmallFiles:
    """These files of all collections below one folder, read again where they are others. Safe to use from
    several threads.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = str(root)
        self._defaults = ReadFiles[SearchDefaults]()
        self._efforts = ReadFiles[DenseEffort]()
        self._encoders = ReadFiles[tuple[str, str | None]]()

    def target(self, name: str, snapshot: Snapshot, defaults: bool, effort: bool) -> SearchTarget[Snapshot]:
        """A snapshot with what is stored beside a collection: its own, or of several the first. Raises
        DamagedIndexError for what is asked for.
        """
        folder = f"{self._folders}/{name}"

        def read(path: Path) -> SearchDefaults:
            return SearchDefaults.read(path, snapshot.settings)

        return SearchTarget(
            snapshot,
            self._defaults.of(name, f"{folder}/{DEFAULTS}", read) if defaults else None,
            self._efforts.of(name, f"{folder}/{EFFORT}", DenseEffort.read) if effort else None,
        )

    def checkpoints(self) -> dict[str, str]:
        """The checkpoints that collections were built with, where known, by their encoders' names."""
        checkpoints: dict[str, str] = {}
        for name in collection_folders(self._root):
            with suppress(SearchIndexError, OSError):
                named = self._encoders.of(name, f"{self._folders}/{name}/{SETTINGS_FILE}", _encoder_of)
                if named is not None and named[1] is not None:
                    checkpoints.setdefault(named[0], named[1])
        return checkpoints

    def forget(self, name: str) -> None:
        """Lets go of what was read of a collection."""
        for files in (self._defaults, self._efforts, self._encoders):
            files.forget(name)


def _encoder_of(path: Path) -> tuple[str, str | None]:
    """The name of a collection's encoder, and what opens it."""
    settings = CollectionSettings.read(path)
    return settings.encoder, checkpoint_of(settings)
