"""Whether the files of a backup are those that were published: by size and SHA-256."""

from __future__ import annotations

from collections.abc import Callable

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.errors import DamagedIndexError
from tercet.index.verified import file_problems

BytesDone = Callable[[int, int], None]
"""Told of bytes that are done, and their total."""


def nobody(_done: int, _total: int) -> None:
    """Tells nobody."""


def require_sound(layout: CollectionLayout, manifest: Manifest, progress: BytesDone) -> None:
    """Reads every byte that a manifest names. Raises DamagedIndexError, naming the first file at fault."""
    total = sum(file.size_bytes for entry in manifest.segments for file in entry.files.values())
    done = 0

    def checked(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    problem = next(file_problems(layout, manifest, checked), None)
    if problem is not None:
        raise DamagedIndexError(problem)
