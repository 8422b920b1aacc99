"""Records of work that was done, on the object store: of several who did the same, the first counts."""

from __future__ import annotations

from collections.abc import Callable

from tercet.cluster.objects.errors import AlreadyThereError, ObjectMissingError
from tercet.cluster.objects.store import ObjectStore


def agreed(store: ObjectStore, path: str, content: bytes) -> bytes:
    """Creates an object; returns what it holds, which is another's content where somebody was first."""
    try:
        store.create(path, content)
    except AlreadyThereError:
        return store.get(path)
    return content


def once(store: ObjectStore, path: str, make: Callable[[], bytes]) -> bytes:
    """What an object holds; where it is not there yet, it is made and created first."""
    found = recorded(store, path)
    return agreed(store, path, make()) if found is None else found


def recorded(store: ObjectStore, path: str) -> bytes | None:
    """What an object holds, None where it is not there."""
    try:
        return store.get(path)
    except ObjectMissingError:
        return None
