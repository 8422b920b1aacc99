"""Collections: folders below one root, created, opened, listed and deleted by name."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.deletions import note_deleted, take_deleted, was_deleted
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.layout import EMPTY_NAME, CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import SETTINGS_FILE, CollectionSettings
from tercet.index.dense.kinds import NO_VECTORS, Device, Vectors
from tercet.index.errors import (
    CollectionExistsError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidNameError,
)
from tercet.index.files.directory import put_in_place, remove_file, remove_folder
from tercet.index.files.lock import ExclusiveLock, is_locked
from tercet.index.ledger.reader import LedgerReader
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.index.verified import note_verified, require_verified
from tercet.index.writer import SegmentLimits, SnapshotWriter
from tercet.models.files import force

T = TypeVar("T")

OPEN_ATTEMPTS = 20
_DELETED_PREFIX = ".deleted-"


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection on disk; holds no open files."""

    layout: CollectionLayout
    settings: CollectionSettings

    @staticmethod
    def create(root: Path, name: str, settings: CollectionSettings) -> Collection:
        """A new collection without documents. Of the lineage in `settings`, if any, it has the part alone.

        Raises InvalidNameError, also where `settings.name` differs, CollectionExistsError, also where an
        alias has the name, or DamagedIndexError where the folder holds a snapshot that lost its settings.
        """
        layout = CollectionLayout(root / check_collection_name(name))
        if settings.name != name:
            raise InvalidNameError(
                f"the settings name the collection {settings.name!r}, not {name!r}; use one name"
            )
        aliases = Aliases(root)
        with aliases.locked():
            aliases.require_free(name)
            return Collection._create(layout, settings)

    @staticmethod
    def _create(layout: CollectionLayout, settings: CollectionSettings) -> Collection:
        name = settings.name
        _require_missing(layout, name)  # before the lock, which whoever writes the collection holds
        layout.folder.mkdir(exist_ok=True)
        with ExclusiveLock(layout.lock, f"collection {name!r}"):
            _require_missing(layout, name)
            if layout.current.exists():
                raise DamagedIndexError(
                    f"{layout.settings} is missing, but {layout.current} names a snapshot; "
                    f"restore the first, or remove {layout.folder}"
                )
            for left in (layout.defaults, layout.effort, layout.fields):
                remove_file(left)  # of a collection that lost its settings
            part = None if settings.lineage is None else settings.lineage.part
            lineage = Lineage.new(take_deleted(layout.folder.parent, name), part)
            lineage.write(layout.folder)
            settings.write(layout.settings)
            note_verified(layout)
            force(layout.folder.parent)
        return Collection(layout, replace(settings, lineage=lineage))

    @staticmethod
    def open(root: Path, name: str) -> Collection:
        """An existing collection, by its name or an alias.

        Raises InvalidNameError, CollectionNotFoundError or DamagedIndexError.
        """
        return Collection.named(root, Aliases(root).collection_of(name))

    @staticmethod
    def named(root: Path, name: str) -> Collection:
        """An existing collection, by its own name. Raises as `open`."""
        layout = CollectionLayout(root / check_collection_name(name))
        try:
            settings = CollectionSettings.read(layout.settings)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CollectionNotFoundError(
                f"collection {name!r} does not exist; create or build it first",
                layout.folder,
                was_deleted=was_deleted(root, name),
            ) from error
        if settings.name != name:
            raise DamagedIndexError(
                f"{layout.settings} belongs to collection {settings.name!r}, not {name!r}; "
                "rename the folder back"
            )
        return Collection(layout, settings)

    def current(self) -> str | None:
        """The name of the current snapshot, or None before the first publication; reads one small file.

        Raises CollectionNotFoundError where the collection was deleted.
        """
        name = self.layout.read_current()
        if name is None and not self.layout.settings.exists():
            raise CollectionNotFoundError(f"collection {self.settings.name!r} was deleted; create it again")
        return name

    def snapshot(self, device: Device = "cpu", former: dict[str, Segment] | None = None) -> Snapshot:
        """Opens the current snapshot; an empty one before the first publication.

        On the device "gpu" flat and IVF-PQ search runs on the first GPU (FAISS must be built for it).
        former: open segments of a former snapshot, as for `Snapshot.open`. A folder that was copied
        here is verified first.
        Raises DamagedIndexError naming the file at fault, or CollectionNotFoundError.
        """

        def verified(name: str) -> Snapshot:
            require_verified(self.layout, name)
            return Snapshot.open(self.layout, self.settings, name, device, former)

        opened = self.of_current(verified)
        return Snapshot(EMPTY_NAME, self.settings, []) if opened is None else opened

    def manifest(self) -> Manifest | None:
        """What the current snapshot holds, or None before the first publication; opens none of its arrays.

        Raises DamagedIndexError naming the file at fault, or CollectionNotFoundError.
        """
        return self.of_current(lambda name: Manifest.read(self.layout.manifest(name)))

    def verified_manifest(self) -> Manifest | None:
        """As `manifest`, of a folder that was made here or whose files have their checksums.

        Raises DamagedIndexError naming the file at fault, or CollectionNotFoundError.
        """

        def verified(name: str) -> Manifest:
            require_verified(self.layout, name)
            return Manifest.read(self.layout.manifest(name))

        return self.of_current(verified)

    def of_current(self, read: Callable[[str], T]) -> T | None:
        """What `read` gives for the name of the current snapshot, None before the first publication.

        Where a publication replaces it meanwhile, and removes files, `read` is asked again.
        """
        for _ in range(OPEN_ATTEMPTS):
            name = self.current()
            if name is None:
                return None
            try:
                return read(name)
            except DamagedIndexError:
                # A publication removes the files of the snapshot before; the new one is complete.
                if self.current() == name:
                    raise
        raise DamagedIndexError(
            f"{self.layout.current} changed {OPEN_ATTEMPTS} times while it was being opened; try again"
        )

    def has_unpublished(self) -> bool:
        """Whether the ledger holds operations that the current snapshot does not.

        Raises DamagedIndexError, StorageError or CollectionNotFoundError.
        """
        manifest = self.manifest()
        if not self.layout.ledger.exists():
            return False
        with LedgerReader.open(self.layout.ledger) as ledger:
            return ledger.last_position > (0 if manifest is None else manifest.ledger_position)

    def is_idle(self) -> bool:
        """Whether nobody writes it, and all that was written is published. Raises as `has_unpublished`."""
        return not is_locked(self.layout.lock) and not self.has_unpublished()

    def defaults(self) -> SearchDefaults | None:
        """What searches use where a request does not say, or None where nothing is stored.

        Raises DamagedIndexError naming the file.
        """
        with suppress(FileNotFoundError):
            return SearchDefaults.read(self.layout.defaults, self.settings)
        return None

    def store_defaults(self, defaults: SearchDefaults | None) -> None:
        """Replaces the defaults at once for all later searches; None removes them.

        Raises CollectionNotFoundError.
        """
        self._store(defaults, self.layout.defaults)

    def remove_defaults(self) -> bool:
        """Removes the stored defaults, damaged ones too. Returns whether there were any."""
        return self._removed(self.layout.defaults)

    def effort(self) -> DenseEffort | None:
        """The effort of dense searches that say none, or None where nothing is stored.

        Raises DamagedIndexError naming the file.
        """
        with suppress(FileNotFoundError):
            return DenseEffort.read(self.layout.effort)
        return None

    def store_effort(self, effort: DenseEffort | None) -> None:
        """Replaces the effort at once for all later searches; None removes it. Raises as `store_defaults`."""
        self._store(effort, self.layout.effort)

    def remove_effort(self) -> bool:
        """Removes the stored effort, a damaged one too. Returns whether there was any."""
        return self._removed(self.layout.effort)

    def _store(self, record: SearchDefaults | DenseEffort | None, path: Path) -> None:
        if record is None:
            self._removed(path)
            return
        try:
            record.write(path)
        except FileNotFoundError as error:
            raise CollectionNotFoundError(
                f"collection {self.settings.name!r} was deleted; {path.name} was not stored"
            ) from error

    def _removed(self, path: Path) -> bool:
        if not path.exists():
            return False
        remove_file(path)
        force(self.layout.folder)
        return True

    def writer(
        self, limits: SegmentLimits | None = None, mark: str | None = None, beside: Vectors = NO_VECTORS
    ) -> SnapshotWriter:
        """A writer of the next snapshot, which replaces all documents.

        mark: by which the manifest is known as its own, of letters a to f and digits; by default random.
        beside: as for `SnapshotWriter`.
        """
        return SnapshotWriter(self.layout, self.settings, limits, mark, beside)


@contextmanager
def staged_build(collection: Collection, mark: str) -> Iterator[Collection]:
    """A folder for a build beside a collection that is written meanwhile, for `LiveCollection.adopt`.

    The caller holds the collection's lock, or does it for one that does. The folder is removed in the end.
    """
    stage = open_stage(collection, mark)
    try:
        yield stage
    finally:
        remove_folder(stage.layout.folder)


def open_stage(collection: Collection, mark: str) -> Collection:
    """The folder of the build of this mark, made where it is missing; who adopts the build removes it."""
    layout = CollectionLayout(collection.layout.builds / mark)
    layout.folder.mkdir(parents=True, exist_ok=True)
    settings = collection.settings.of_new_collection(collection.settings.name)
    settings.write(layout.settings)
    note_verified(layout)
    return Collection(layout, settings)


def list_collections(root: Path) -> list[str]:
    """The names of all collections below the root, in order."""
    folders = collection_folders(root)
    return [name for name in folders if os.path.exists(f"{root}/{name}/{SETTINGS_FILE}")]  # noqa: PTH110 - of thousands


def collection_folders(root: Path) -> list[str]:
    """What may be collections by their names, in order, for who finds out by other files of theirs."""
    if not root.is_dir():
        return []
    with os.scandir(root) as entries:
        return sorted(entry.name for entry in entries if _is_name(entry.name))


def delete_collection(root: Path, name: str) -> None:
    """Removes a collection: it is gone at once, and its files follow.

    Raises InvalidNameError, CollectionNotFoundError, CollectionAliasedError where an alias means it, or
    CollectionBusyError while it is being written.
    """
    aliases = Aliases(root)
    name = aliases.collection_of(name)
    layout = CollectionLayout(root / name)
    if not layout.settings.exists():
        raise CollectionNotFoundError(f"collection {name!r} does not exist; nothing was deleted")
    with aliases.locked():
        aliases.require_unnamed(name)
        with ExclusiveLock(layout.lock, f"collection {name!r}"):
            lineage = _lineage_of(layout)
            put_in_place(layout.folder, root / f"{_DELETED_PREFIX}{name}-{secrets.token_hex(4)}")
            note_deleted(root, name, lineage)
    for remains in root.glob(f"{_DELETED_PREFIX}*"):  # also those of a deletion that was killed
        remove_folder(remains)


def _lineage_of(layout: CollectionLayout) -> Lineage | None:
    """That of a collection that is to be deleted, damaged or not."""
    with suppress(DamagedIndexError):
        return Lineage.read(layout.folder)
    return None


def _require_missing(layout: CollectionLayout, name: str) -> None:
    if layout.settings.exists():
        raise CollectionExistsError(f"collection {name!r} exists already; delete it or choose another name")


def _is_name(name: str) -> bool:
    try:
        check_collection_name(name)
    except InvalidNameError:
        return False
    return True
