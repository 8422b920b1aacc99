"""Checks a collection's files by their checksums, once for a folder that was copied here.

A folder is known by its `LOCK`, which is never written nor linked: by the number of that file, and the time
when it was last changed. No copy has both, even where it takes the place of what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.errors import DamagedIndexError, damaged
from tercet.index.files.content import open_file, sha256_of
from tercet.index.files.directory import write_atomically
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.files import check_file

LONGEST = 64  # bytes of a note, and more


def require_verified(layout: CollectionLayout, name: str) -> None:
    """Verifies the files of a snapshot, unless the folder was made or verified here; then notes that it was.

    Reads every byte of a folder that was copied, once; where the note cannot be written, each time. Raises
    DamagedIndexError naming the first file at fault.
    """
    if is_noted(layout):
        return
    for problem in file_problems(layout, Manifest.read(layout.manifest(name))):
        raise DamagedIndexError(problem)
    with suppress(OSError):  # a root that is only read
        note_verified(layout)


def note_verified(layout: CollectionLayout) -> None:
    """Notes that what a folder holds was made, verified or trusted here. Raises OSError."""
    if not is_noted(layout):
        with suppress(FileExistsError):
            layout.lock.touch(exist_ok=False)  # else it might follow a link that came with the folder
        write_atomically(layout.verified, [_origin(layout)])


def file_problems(
    layout: CollectionLayout, manifest: Manifest, checked: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
    """What is wrong with the files of a manifest, by size and checksum; what they hold is not looked at.

    checked: told of the bytes of each file of a segment that was read.
    """
    yield from settings_problems(layout, manifest)
    for entry in manifest.segments:
        for name in sorted(entry.files):
            problem = file_problem(layout.segment(entry.id), entry, name)
            checked(entry.files[name].size_bytes)
            if problem is not None:
                yield problem
        try:
            read_deletes(layout, entry)
        except DamagedIndexError as error:
            yield str(error)


def settings_problems(layout: CollectionLayout, manifest: Manifest) -> list[str]:
    """What is wrong with the settings that a manifest was written for: they were altered, or nothing."""
    if sha256_of(layout.settings) == manifest.settings_sha256:
        return []
    return [f"{layout.settings} was altered since {layout.manifest(manifest.name)} was written; restore it"]


def file_problem(folder: Path, entry: SegmentEntry, name: str) -> str | None:
    """What is wrong with a file of a segment, or None."""
    path = folder / name
    try:
        check_file(path, entry.files[name], content=True)
    except DamagedIndexError as error:
        return str(error)
    except OSError as error:
        return str(damaged(path, f"cannot be read ({error.strerror})"))
    return None


def is_noted(layout: CollectionLayout) -> bool:
    """Whether what a folder holds was made, verified or trusted here, and not copied here since."""
    try:
        with open_file(layout.verified) as file:
            return file.read(LONGEST) == _origin(layout)
    except OSError:
        return False


def _origin(layout: CollectionLayout) -> bytes:
    status = layout.lock.stat()
    return f"{status.st_ino} {status.st_ctime_ns}\n".encode()
