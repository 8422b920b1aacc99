"""Folders below a data root where snapshots are put together: one for each collection and purpose.

They are on the file system of the collections, so that files are linked and not copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from index.catalog.layout import CollectionLayout
from index.files.directory import make_folder, remove_folder
from index.files.lock import ExclusiveLock


@contextmanager
def stage(stages: Path, purpose: str, name: str) -> Iterator[CollectionLayout]:
    """An empty folder for a collection, beside what an interrupted one of the same purpose left there.

    Nobody else has it meanwhile, in this process or another. Raises CollectionBusyError, or OSError.
    """
    folder = stages / f"{purpose}-{name}"
    make_folder(folder)
    lock = ExclusiveLock(folder / "LOCK", f"the folder of the {purpose} of collection {name!r}")
    lock.acquire()
    layout = CollectionLayout(folder / "collection")
    try:
        remove_folder(layout.folder)
        layout.folder.mkdir()
        yield layout
    finally:
        remove_folder(layout.folder)
        lock.release()
