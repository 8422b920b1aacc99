"""Aliases: second names of the collections below one root, each switched in one step.

They are in one small file beside the collections. A name is a collection's or an alias's, never both: who
makes either holds the lock of `held`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from index.catalog.layout import CollectionLayout
from index.catalog.records import check_keys, check_version
from index.catalog.settings import check_collection_name
from index.errors import (
    AliasNotFoundError,
    CollectionAliasedError,
    CollectionExistsError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidNameError,
)
from index.files.lock import waiting_lock
from index.files.storage import make_folder, read_json_object, write_json_atomically

FORMAT_VERSION = 1
NONE: Mapping[str, str] = MappingProxyType({})
_REMEDY = "restore it, or remove it and give the aliases again"

_FileVersion = tuple[int, int, int]


class Aliases:
    """The aliases below one root. Holds no open files; safe to use from several threads and processes.

    What was read is kept until the file is another one, so that to follow a name takes two looks at files.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "aliases.json"
        self._lock = root / "aliases.lock"
        self._read: tuple[_FileVersion, Mapping[str, str]] | None = None

    def collection_of(self, name: str) -> str:
        """The collection that a name means: that of the alias, or else the name itself.

        Whether the collection is there is for its opener to tell. Raises InvalidNameError or
        DamagedIndexError.
        """
        check_collection_name(name)
        try:
            # As strings, since to put a `Path` together takes longer than to look.
            if _version(f"{self._root}/{name}/{_SETTINGS}") is not None:
                return name
            aliases = self.all()
        except OSError:  # of this moment or this process: what is open can still be searched
            aliases = NONE if self._read is None else self._read[1]
        return aliases.get(name, name)

    def all(self) -> Mapping[str, str]:
        """The collection of each alias, in order of alias. Raises DamagedIndexError."""
        version = _version(str(self._path))
        if version is None:
            return NONE
        if self._read is None or self._read[0] != version:
            # A file replaced since then is newer than noted here, and so is read once more.
            self._read = version, _aliases(self._path)
        return self._read[1]

    def get(self, alias: str) -> str:
        """The collection of an alias. Raises InvalidNameError, AliasNotFoundError or DamagedIndexError."""
        collection = self.all().get(check_collection_name(alias))
        if collection is None:
            raise AliasNotFoundError(f"there is no alias {alias!r}; GET /aliases lists them")
        return collection

    def put(self, alias: str, collection: str) -> str:
        """Makes the alias, or lets it mean another collection from now on; returns that collection's name.

        collection: may be an alias, and then stands for what it means now.
        Raises InvalidNameError, CollectionNotFoundError, CollectionExistsError where a collection has the
        alias's name, or DamagedIndexError.
        """
        check_collection_name(alias)
        with self.held():
            target = self.collection_of(collection)
            if not self._exists(target):
                raise CollectionNotFoundError(
                    f"collection {collection!r} does not exist; create or build it first"
                )
            if self._exists(alias):
                raise CollectionExistsError(
                    f"{alias!r} is a collection; give the alias another name, or delete the collection"
                )
            self._write({**self.all(), alias: target})
        return target

    def remove(self, alias: str) -> None:
        """Removes the alias; its collection stays. Raises as `get`."""
        with self.held():
            self.get(alias)
            self._write({name: target for name, target in self.all().items() if name != alias})

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps others from making and removing names below the root meanwhile; waits for who does."""
        make_folder(self._root)
        with waiting_lock(self._lock):
            yield

    def require_free(self, name: str) -> None:
        """Raises CollectionExistsError where an alias has this name, which a new collection would have."""
        target = self.all().get(name)
        if target is not None:
            raise CollectionExistsError(
                f"{name!r} is an alias of collection {target!r}; choose another name, or delete the alias"
            )

    def require_unnamed(self, collection: str) -> None:
        """Raises CollectionAliasedError where an alias means this collection, which is to be deleted."""
        aliases = [alias for alias, target in self.all().items() if target == collection]
        if aliases:
            shown = ", ".join(map(repr, aliases[:5])) + (", …" if len(aliases) > 5 else "")
            raise CollectionAliasedError(
                f"collection {collection!r} has the alias {shown}; let each mean another collection, or "
                "delete it, then delete the collection"
            )

    def _exists(self, collection: str) -> bool:
        return CollectionLayout(self._root / collection).settings.exists()

    def _write(self, aliases: Mapping[str, str]) -> None:
        write_json_atomically(
            self._path, {"format_version": FORMAT_VERSION, "aliases": dict(sorted(aliases.items()))}
        )


_SETTINGS = CollectionLayout(Path()).settings.name


def _aliases(path: Path) -> Mapping[str, str]:
    try:
        record = read_json_object(path, _REMEDY)
    except FileNotFoundError:  # removed just now
        return NONE
    check_version(record, FORMAT_VERSION, path)
    check_keys(record, {"format_version", "aliases"}, path)
    aliases = record["aliases"]
    if not isinstance(aliases, dict):
        raise DamagedIndexError(f"{path}: aliases is no object; {_REMEDY}")
    try:
        for name in (*aliases, *aliases.values()):
            check_collection_name(name)
    except InvalidNameError as error:
        raise DamagedIndexError(f"{path}: {error}; {_REMEDY}") from error
    return MappingProxyType(dict(sorted(aliases.items())))


def _version(path: str) -> _FileVersion | None:
    """What tells a file from one before or after it: inode, time in ns, size; None where there is none."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - for the reason given in `collection_of`
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
