"""What is published below a collection's URL, and where each thing lies."""

from __future__ import annotations

import re
from operator import itemgetter

from tercet.cluster.objects.errors import ObjectMissingError
from tercet.cluster.objects.store import ObjectStore, StoredObject
from tercet.cluster.snapshots.errors import SnapshotNotFoundError
from tercet.cluster.snapshots.record import PublishedSnapshot, name_of, read_snapshot

MANIFESTS = "manifests"
FILES = "files"
ATTEMPTS = 5  # of reading the newest manifest, which may be collected meanwhile
_MANIFEST = re.compile(rf"{MANIFESTS}/([0-9]{{6,12}})\.json")


def manifest_path(number: int) -> str:
    """Where the manifest of a number lies."""
    return f"{MANIFESTS}/{name_of(number)}.json"


def file_path(sha256: str) -> str:
    """Where a file of this content lies."""
    return f"{FILES}/{sha256}"


def number_of(path: str) -> int | None:
    """The number of the manifest at a path; None where that is none."""
    found = _MANIFEST.fullmatch(path)
    return None if found is None else int(found[1])


def newest_listed(store: ObjectStore) -> tuple[int, StoredObject | None]:
    """The number of the newest manifest, and that as the store lists it; 0 where nothing is published."""
    listed = [(number_of(each.path) or 0, each) for each in store.list(MANIFESTS)]
    return max(listed, key=itemgetter(0), default=(0, None))


def newest_number(store: ObjectStore) -> int:
    """That of the newest manifest, 0 where nothing is published."""
    return newest_listed(store)[0]


def read_published(store: ObjectStore, number: int) -> PublishedSnapshot:
    """The snapshot of a number. Raises ObjectMissingError or DamagedSnapshotError."""
    path = manifest_path(number)
    return read_snapshot(store.get(path), number, f"{store.url}/{path}")


def newest_published(store: ObjectStore) -> PublishedSnapshot | None:
    """The newest snapshot, None where nothing is published. Raises DamagedSnapshotError."""
    for _ in range(ATTEMPTS):
        number = newest_number(store)
        if number == 0:
            return None
        try:
            return read_published(store, number)
        except ObjectMissingError:  # collected since it was listed: there are newer ones
            continue
    raise ObjectMissingError(f"the manifests of {store.url} are gone whenever they are read; try again")


def required_snapshot(store: ObjectStore, number: int | None = None) -> PublishedSnapshot:
    """The snapshot of a number, by default the newest. Raises SnapshotNotFoundError."""
    try:
        found = newest_published(store) if number is None else read_published(store, number)
    except ObjectMissingError as error:
        raise SnapshotNotFoundError(f"{error}; it was collected, or never published") from error
    if found is None:
        raise SnapshotNotFoundError(
            f"nothing is published at {store.url}; give the URL of a collection's snapshots, or "
            "push one first"
        )
    return found
