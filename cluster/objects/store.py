"""What every object store can do, whatever it is.

    store = open_store("s3://bucket/articles")      # cluster/objects/opening.py; also file://, gs://, az://
    require_creation(store)                         # once, by whoever publishes on it

    store.put_file("files/<sha256>", path, sha256)  # streamed, and verified by what the store has
    store.create("manifests/000001.json", content)  # AlreadyThereError where somebody was first
    store.has_file("files/<sha256>", path, sha256)  # whether an earlier upload of it is there, and sound
    store.get("manifests/000001.json")              # bytes; ObjectMissingError
    store.get_file("files/<sha256>", path, sha256)  # streamed; a file only once every byte is verified
    for each in store.list("files/"): ...           # StoredObject(path, size_bytes, modified)
    store.folders()                                 # names of the folders directly below
    store.delete(["files/<sha256>"])
    store.below("shards/1-0")                       # the same one step down

Calls block, and any number of threads may make them. A store is opened again in another process by its `url`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

Moved = Callable[[int], None]
"""Told how many bytes more were sent or fetched."""


def nobody(_bytes: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing has it. path: below the store's URL; modified: by the store's own clock; e_tag:
    the store's name of this content, where it has such.
    """

    path: str
    size_bytes: int
    modified: datetime
    e_tag: str | None = None


class ObjectStore(Protocol):
    """Objects by path below one URL. A path's parts are divided by slashes.

    Every method raises UnreachableStoreError where the store does not answer or refuses.
    """

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""

    def create(self, path: str, content: bytes) -> None:
        """Writes a small object that nobody has written yet. Raises AlreadyThereError.

        content: unlike that of anybody else, so that an answer that got lost can be told from a defeat.
        """

    def put_file(self, path: str, source: Path, sha256: str, moved: Moved = nobody) -> None:
        """Uploads a file in pieces, and verifies what the store has of it by its checksum.

        Raises DamagedObjectError where the file, or what the store has of it, is another one than `sha256`
        says; then there is no such object. Raises OSError where the file cannot be read.
        """

    def has_file(self, path: str, source: Path, sha256: str) -> bool:
        """Whether the store has just this file already, by its checksum. Raises as `put_file`."""

    def get(self, path: str) -> bytes:
        """The content of a small object. Raises ObjectMissingError."""

    def get_file(self, path: str, target: Path, sha256: str, moved: Moved = nobody) -> None:
        """Downloads an object in pieces; the file appears, forced to the disk, once all of it is verified.

        Raises ObjectMissingError, DamagedObjectError for another content than `sha256` says, or OSError.
        """

    def find(self, path: str) -> StoredObject | None:
        """What there is at a path, None where nothing is."""

    def list(self, folder: str = "") -> Iterator[StoredObject]:
        """All objects in a folder and those below, by default all of the store, in any order."""

    def folders(self) -> Sequence[str]:
        """The names of the folders directly below, in order."""

    def delete(self, paths: Iterable[str]) -> None:
        """Removes objects; one that is not there is no error."""

    def below(self, folder: str) -> ObjectStore:
        """The store of one folder of this one."""
