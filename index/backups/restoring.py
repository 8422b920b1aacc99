"""Restores a backup: in the place of a collection's documents, or as a collection of another name.

A backup is verified before anything of it counts, and stays as it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tercet.index.backups.copying import copy_collection
from tercet.index.backups.records import Backup
from tercet.index.backups.store import BackupStore
from tercet.index.backups.verifying import BytesDone, nobody, require_sound
from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.deletions import take_deleted
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, CollectionExistsError, DamagedIndexError
from tercet.index.files.content import missing
from tercet.index.files.directory import put_in_place, remove_folder, rename
from tercet.index.files.lock import ExclusiveLock
from tercet.index.live.collection import LiveCollection
from tercet.index.verified import note_verified
from tercet.models.files import force

_STAGE_PREFIX = ".restored-"


def restore_into(
    collection: Collection,
    live: LiveCollection,
    store: BackupStore,
    backup: Backup,
    progress: BytesDone = nobody,
) -> str:
    """Lets a collection hold documents, defaults and effort of a backup; returns the new snapshot's name.

    live: the same collection. Searches see the former documents or those of the backup. What is written or
    deleted after this began survives it; what was acknowledged before does not. Defaults and effort
    follow the documents. progress: told of bytes verified and their total.

    Raises DamagedIndexError for a damaged backup, FingerprintMismatchError where the collection has other
    settings, CollectionBusyError where a build or restore of it is under way or somebody holds its backups,
    OSError, or UnforcedPublicationError; after any but the last the documents are as before, unless only
    those could not be stored.
    """
    with store.locked(backup.collection):
        source = _opened(store, backup)
        manifest = _manifest(source)
        return take_over(collection, live, source, lambda: require_sound(source.layout, manifest, progress))


def take_over(
    collection: Collection, live: LiveCollection, source: Collection, check: Callable[[], None]
) -> str:
    """Replaces a collection's documents, defaults and effort by those of any collection's folder.

    check: of that folder, once writes are noted; may raise. Returns the new snapshot's name.
    """
    with live.begin_build() as build:
        defaults, effort = source.defaults(), source.effort()
        check()
        snapshot = live.adopt(build, source.layout, "replace")
        collection.store_defaults(defaults)
        collection.store_effort(effort)
        return snapshot


def restore_as(
    root: Path, name: str, store: BackupStore, backup: Backup, progress: BytesDone = nobody
) -> Collection:
    """A new collection called `name` with the settings, documents, defaults and effort of a backup.

    root: of the collections. Raises InvalidNameError, CollectionExistsError where a collection or an alias
    has the name, DamagedIndexError for a damaged backup, CollectionBusyError where somebody holds its
    backups, or OSError; then there is no new collection.
    """
    _require_free(Aliases(root), root, name)
    with store.locked(backup.collection):
        return copy_as(
            root,
            name,
            _opened(store, backup),
            lambda stage, manifest: require_sound(stage, manifest, progress),
        )


def copy_as(
    root: Path,
    name: str,
    source: Collection,
    check: Callable[[CollectionLayout, Manifest], None] = lambda _layout, _manifest: None,
) -> Collection:
    """Makes a collection called `name` from any collection's folder.

    check: of the copy, before it gets its name; may raise.
    """
    aliases = Aliases(root)
    _require_free(aliases, root, name)
    with _stage(aliases, root, name) as stage:
        check(stage, copy_collection(source, stage, source.settings.of_new_collection(name)))
        note_verified(stage)
        with aliases.locked():
            _require_free(aliases, root, name)
            Lineage.new(take_deleted(root, name)).write(stage.folder)
            force(stage.folder)
            try:
                put_in_place(stage.folder, root / name)
            except BaseException:
                with suppress(OSError):  # it may have got its name
                    rename(root / name, stage.folder)
                raise
    return Collection.open(root, name)


def _opened(store: BackupStore, backup: Backup) -> Collection:
    layout = store.layout(backup)
    try:
        settings = CollectionSettings.read(layout.settings)
    except FileNotFoundError as error:
        raise missing(layout.settings) from error
    if settings.name != backup.collection:
        raise DamagedIndexError(
            f"{layout.settings} belongs to collection {settings.name!r}, not {backup.collection!r}; delete "
            "the backup"
        )
    return Collection(layout, settings)


def _manifest(source: Collection) -> Manifest:
    """The manifest of a backup; every one has one."""
    manifest = source.manifest()
    if manifest is None:
        raise missing(source.layout.current)
    return manifest


def _require_free(aliases: Aliases, root: Path, name: str) -> None:
    check_collection_name(name)
    aliases.require_free(name)
    if (root / name).exists():
        raise CollectionExistsError(
            f"collection {name!r} exists already; restore under another name, or delete the collection"
        )


@contextmanager
def _stage(aliases: Aliases, root: Path, name: str) -> Iterator[CollectionLayout]:
    """A folder beside the collections, locked as one of them; removed in the end, unless it was renamed."""
    stage = CollectionLayout(root / f"{_STAGE_PREFIX}{name}-{secrets.token_hex(4)}")
    lock = ExclusiveLock(stage.lock, f"collection {name!r}")
    try:
        with aliases.locked():
            _remove_left(root)
            stage.folder.mkdir()
            lock.acquire()
        yield stage
    finally:
        remove_folder(stage.folder)
        lock.release()


def _remove_left(root: Path) -> None:
    """Removes what killed restores left: their locks went with them."""
    for folder in root.glob(f"{_STAGE_PREFIX}*"):
        lock = ExclusiveLock(CollectionLayout(folder).lock, folder.name)
        with suppress(CollectionBusyError), lock:
            remove_folder(folder)
