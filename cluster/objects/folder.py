"""Objects in a folder: of one machine, or of a file system that several share.

Each is forced to the disk before it has its name, which no option of obstore's LocalStore does (0.12, in
Python). Creation is by a hard link, so of several machines that create the same object one
succeeds, on NFS too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tercet.cluster.objects.digests import pieces_of, require_sha256, verified
from tercet.cluster.objects.errors import (
    AlreadyThereError,
    DamagedObjectError,
    ObjectMissingError,
    UnreachableStoreError,
)
from tercet.cluster.objects.store import Moved, ObjectStore, StoredObject, nobody
from tercet.index.files.directory import create_atomically, make_folder, remove_file, write_atomically
from tercet.index.wording import reason_of


def _require_gone(error: OSError) -> None:
    """Raises what hides a folder's content: who took that for nothing would collect what it names."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


class FolderStore:
    """The objects of one folder, which is made with the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def url(self) -> str:
        return self._folder.as_uri()

    def create(self, path: str, content: bytes) -> None:
        target = self._folder / path
        try:
            make_folder(target.parent)
            create_atomically(target, [content])
        except FileExistsError as error:
            raise AlreadyThereError(f"{self.url}/{path} is there already") from error
        except OSError as error:
            raise self._failed(error) from error

    def put_file(self, path: str, source: Path, sha256: str, moved: Moved = nobody) -> None:
        target = self._folder / path
        pieces = pieces_of(source, moved)
        try:
            make_folder(target.parent)
            write_atomically(
                target, pieces, lambda written: require_sha256(written, sha256, f"{source} or its copy")
            )
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def has_file(self, path: str, source: Path, sha256: str) -> bool:
        there = self._folder / path
        if not there.is_file() or there.stat().st_size != source.stat().st_size:
            return False
        with suppress(DamagedObjectError):
            require_sha256(there, sha256, path)
            return True
        return False

    def get(self, path: str) -> bytes:
        try:
            return (self._folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._missing(path) from error
        except OSError as error:
            raise self._failed(error) from error

    def get_file(self, path: str, target: Path, sha256: str, moved: Moved = nobody) -> None:
        source = self._folder / path
        if not source.is_file():
            raise self._missing(path)
        pieces = pieces_of(source, moved)
        write_atomically(target, verified(pieces, sha256, f"{self.url}/{path}"))

    def find(self, path: str) -> StoredObject | None:
        return self._described(self._folder / path)

    def list(self, folder: str = "") -> Iterator[StoredObject]:
        try:
            for parent, _, names in os.walk(self._folder / folder, onerror=_require_gone):
                for name in names:
                    described = self._described(Path(parent, name))
                    if described is not None:
                        yield described
        except OSError as error:
            raise self._failed(error) from error

    def folders(self) -> Sequence[str]:
        try:
            if not self._folder.is_dir():
                return []
            return sorted(each.name for each in self._folder.iterdir() if each.is_dir())
        except OSError as error:
            raise self._failed(error) from error

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                remove_file(self._folder / path)
                self._remove_empty(path)
            except OSError as error:
                raise self._failed(error) from error

    def below(self, folder: str) -> ObjectStore:
        return FolderStore(self._folder / folder)

    def _remove_empty(self, path: str) -> None:
        """Removes the folders that an object left empty. The first below ours stays: others may just make
        something there.
        """
        with suppress(OSError):  # of the first that is not empty
            for folder in list(Path(path).parents)[:-2]:
                (self._folder / folder).rmdir()

    def _described(self, path: Path) -> StoredObject | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            if path.is_file():
                status = path.stat()
                name = path.relative_to(self._folder).as_posix()
                return StoredObject(name, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
        return None

    def _missing(self, path: str) -> ObjectMissingError:
        return ObjectMissingError(f"{self.url}/{path} is not there")

    def _failed(self, error: OSError) -> UnreachableStoreError:
        reason = reason_of(error)
        return UnreachableStoreError(
            f"{self.url} cannot be used ({reason}); see to the folder and its file system"
        )
