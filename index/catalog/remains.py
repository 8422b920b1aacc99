"""What writers leave in a collection's folder, and who may remove it when.

Callers hold the collection's lock. What cannot be removed only takes room, until a later writer tries again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from pathlib import Path

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.files.directory import remove_files, remove_folder

# A temporary file is replaced at once by what it is for; one that has lain this long has lost its writer.
STALE_SECONDS = 3600.0


def remove_unfinished(layout: CollectionLayout) -> None:
    """Removes what killed writers were in the middle of: unfinished segments, and temporary files.

    Who holds the lock knows that nobody else writes manifests, `CURRENT`, `collection.json`, `fields.json` or
    `lineage.json`.
    Anyone may be storing `defaults.json` just now: temporary files of others are removed when they are old.
    """
    _remove_folders(layout.segments.glob("*.partial"))
    remove_files(layout.manifests.glob(".*.new"))
    for written_under_lock in (layout.current, layout.settings, layout.fields, layout.lineage):
        remove_files(layout.folder.glob(f".{written_under_lock.name}.*.new"))
    remove_files(path for path in layout.folder.glob(".*.new") if _is_stale(path))


def remove_all_but(layout: CollectionLayout, manifest: Manifest, unnamed: Collection[str] = ()) -> None:
    """Removes manifests, segments and delete marks that the current manifest, which is sound, does not name.

    unnamed: ids of segments that stay, since a manifest to come may name them. Other threads may add to it:
    an id first, and then its folder. So it is read after the folders.
    Manifests go first, so that one that is there has its segments, whenever this is interrupted.
    """
    remove_files(path for path in layout.manifests.iterdir() if path != layout.manifest(manifest.name))
    folders = list(layout.segments.iterdir())
    named = {segment.id for segment in manifest.segments}
    named |= {name for id in tuple(unnamed) for name in (id, f"{id}.partial")}
    _remove_folders(folder for folder in folders if folder.name not in named)
    marks = {segment.deletes.file for segment in manifest.segments if segment.deletes is not None}
    remove_files(path for path in layout.deletes.glob("*") if path.name not in marks)


def remove_written(layout: CollectionLayout, name: str, mark: str) -> None:
    """Removes the manifest of this name and the segments that the writer with this mark made for it."""
    remove_files([layout.manifest(name)])
    _remove_folders(layout.segments.glob(f"{name}-*-{mark}"))


def _remove_folders(folders: Iterable[Path]) -> None:
    for folder in list(folders):
        remove_folder(folder)


def _is_stale(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > STALE_SECONDS
    except FileNotFoundError:  # it has just taken its place
        return False
