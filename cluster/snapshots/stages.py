"""Folders below a data root where snapshots are put together: one for each collection and purpose.

They are on the file system of the collections, so that files are linked and not copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.files.directory import make_folder, remove_folder, rename
from tercet.index.files.lock import ExclusiveLock


@contextmanager
def stage(stages: Path, purpose: str, name: str) -> Iterator[CollectionLayout]:
    """An empty folder for a collection, beside what an interrupted one of the same purpose left there.

    Nobody else has it meanwhile, in this process or another. Raises CollectionBusyError, or OSError.
    """
    folder = stages / f"{purpose}-{name}"
    make_folder(folder)
    layout = CollectionLayout(folder / "collection")
    with ExclusiveLock(folder / "LOCK", f"the folder of the {purpose} of collection {name!r}"):
        try:
            _remove(layout.folder)
            layout.folder.mkdir()
            yield layout
        finally:
            _remove(layout.folder)


def _remove(folder: Path) -> None:
    """Removes a stage, which is gone at once: nobody takes what is left of it, after a kill, for complete."""
    remains = folder.with_name(f"{folder.name}.removed")
    remove_folder(remains)
    with suppress(FileNotFoundError):
        rename(folder, remains)
    remove_folder(remains)
