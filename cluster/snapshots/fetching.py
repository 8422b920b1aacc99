"""Puts a published snapshot together in a folder: what is here already is linked, the rest is downloaded.

Every file is verified before it counts. What an interrupted fetch left is not downloaded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tercet.cluster.objects.digests import require_sha256
from tercet.cluster.objects.errors import DamagedObjectError, ObjectMissingError
from tercet.cluster.objects.store import Moved, ObjectStore
from tercet.cluster.snapshots.published import file_path
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.cluster.snapshots.transfers import BytesDone, move_all, nobody
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.errors import DamagedIndexError
from tercet.index.files.directory import (
    link_or_copy,
    make_folder,
    remove_file,
    remove_files,
    remove_folder,
    write_atomically,
)
from tercet.models.files import force


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was downloaded to put a snapshot together; the rest was here."""

    files: int
    bytes: int


def fetch(
    store: ObjectStore,
    snapshot: PublishedSnapshot,
    layout: CollectionLayout,
    here: Mapping[str, Path],
    progress: BytesDone = nobody,
    *,
    trusted: bool = False,
) -> Fetched:
    """Makes an empty folder the collection as it was pushed; `CURRENT`, written last, has its number.

    here: files that may have some of the content, by its SHA-256; trusted: without reading them for that,
    as they were verified when they came. Raises ObjectMissingError where files were
    collected meanwhile, DamagedObjectError for content that is another than was published, or OSError.
    """
    cache = layout.folder.parent / "files"
    make_folder(cache)
    _remove_others(cache, snapshot)
    sizes = {entry.sha256: entry.size_bytes for entry in snapshot.files.values()}
    downloaded: list[str] = []

    def move(sha256: str, moved: Moved) -> None:
        target = cache / sha256
        if _is_sound(target, sha256) or _linked(here.get(sha256), target, sha256, trusted):
            moved(sizes[sha256])
            return
        try:
            store.get_file(file_path(sha256), target, sha256, moved)
        except ObjectMissingError as error:
            raise ObjectMissingError(
                f"{error}, and snapshot {snapshot.name} names it: it was collected meanwhile, so try again, "
                "or lost, so push the collection again from where it is sound (tercet collection push "
                "--repair)"
            ) from error
        downloaded.append(sha256)

    move_all(sorted(sizes, key=sizes.__getitem__, reverse=True), move, snapshot.size_bytes, progress)
    _put_together(snapshot, cache, layout)
    return Fetched(len(downloaded), sum(map(sizes.__getitem__, downloaded)))


def remove_fetched(layout: CollectionLayout) -> None:
    """Removes what a fetch keeps for the next one, beside the folder that it was for."""
    remove_folder(layout.folder.parent / "files")


def _remove_others(cache: Path, snapshot: PublishedSnapshot) -> None:
    """Removes what is left of fetches of other snapshots, and halves."""
    wanted = {entry.sha256 for entry in snapshot.files.values()}
    remove_files(path for path in cache.iterdir() if path.name not in wanted)


def _is_sound(path: Path, sha256: str) -> bool:
    """Whether a file is there and as it should be; another one is removed."""
    if not path.exists():
        return False
    try:
        require_sha256(path, sha256, str(path))
    except DamagedObjectError:
        remove_file(path)
        return False
    return True


def _linked(source: Path | None, target: Path, sha256: str, trusted: bool) -> bool:
    """Whether a file that is here has the content; then it has a second name."""
    if source is None:
        return False
    try:
        link_or_copy(source, target)
    except DamagedIndexError:  # it is not there any more
        return False
    return trusted or _is_sound(target, sha256)


def _put_together(snapshot: PublishedSnapshot, cache: Path, layout: CollectionLayout) -> None:
    for folder in (layout.segments, layout.manifests, layout.deletes):
        folder.mkdir()
    for path, entry in snapshot.files.items():
        target = layout.folder / path
        target.parent.mkdir(exist_ok=True)
        link_or_copy(cache / entry.sha256, target)
    for segment in snapshot.manifest.segments:
        force(layout.segment(segment.id))
    for folder in (layout.segments, layout.deletes):
        force(folder)
    if snapshot.lineage is not None:
        snapshot.lineage.write(layout.folder)
    snapshot.manifest.write(layout.manifest(snapshot.name))
    write_atomically(layout.current, [f"{snapshot.name}\n".encode()])
