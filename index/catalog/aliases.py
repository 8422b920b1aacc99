"""Aliases: second names of the collections below one root, each switched in one step.

They are in one small file beside the collections. A name is a collection's or an alias's, never both: who
makes either holds the lock of `held`. An alias may mean several collections, which are searched as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tercet.index.catalog.alike import names_of, united_settings
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.catalog.settings import SETTINGS_FILE, CollectionSettings
from tercet.index.errors import (
    AliasNotFoundError,
    CollectionAliasedError,
    CollectionExistsError,
    CollectionNotFoundError,
    InvalidNameError,
    SeveralCollectionsError,
)
from tercet.index.files.directory import make_folder, write_json_atomically
from tercet.index.files.lock import waiting_lock
from tercet.index.files.versions import FileVersion, version_of

MOST_COLLECTIONS = 32  # of one alias
Meant = tuple[str, ...]
"""The collections that an alias means, one or several, in the order in which they were given."""

NONE: Mapping[str, Meant] = MappingProxyType({})
_REMEDY = "restore it, or remove it and give the aliases again"


def the_one(name: str, meant: Meant) -> str:
    """The one collection that a name means. Raises SeveralCollectionsError where that is of several."""
    if len(meant) > 1:
        raise SeveralCollectionsError(
            f"alias {name!r} means collections {names_of(meant)}, which are only searched and read as "
            "one: use one of them by its own name"
        )
    return meant[0]


def meant_by(alias: str, aliases: Mapping[str, Meant]) -> Meant:
    """What an alias means, of all there are. Raises InvalidNameError or AliasNotFoundError."""
    meant = aliases.get(check_collection_name(alias))
    if meant is None:
        raise AliasNotFoundError(f"there is no alias {alias!r}; GET /aliases lists them")
    return meant


def require_free(name: str, aliases: Mapping[str, Meant]) -> None:
    """Raises CollectionExistsError where one of these has this name, which a new collection would have."""
    if name in aliases:
        raise CollectionExistsError(
            f"{name!r} is an alias of collection {names_of(aliases[name])}; choose another name, or delete "
            "the alias"
        )


def require_unnamed(collection: str, aliases: Mapping[str, Meant]) -> None:
    """Raises CollectionAliasedError where one of these means a collection, which is to be deleted."""
    naming = [alias for alias, meant in aliases.items() if collection in meant]
    if naming:
        shown = ", ".join(map(repr, naming[:5])) + (", …" if len(naming) > 5 else "")
        raise CollectionAliasedError(
            f"collection {collection!r} has the alias {shown}; let each mean another collection, or "
            "delete it, then delete the collection"
        )


class Aliases:
    """The aliases below one root. Holds no open files; safe to use from several threads and processes.

    What was read is kept until the file is another one, so that to follow a name takes two looks at files.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "aliases.json"
        self._lock = root / "aliases.lock"
        self._read: tuple[FileVersion, Mapping[str, Meant]] | None = None

    def collection_of(self, name: str) -> str:
        """The one collection that a name means: that of the alias, or else the name itself.

        Whether the collection is there is for its opener to tell. Raises InvalidNameError,
        SeveralCollectionsError where the alias means more than one, or DamagedIndexError.
        """
        return the_one(name, self.collections_of(name))

    def collections_of(self, name: str) -> Meant:
        """The collections that a name means, as `collection_of`."""
        check_collection_name(name)
        try:
            # As strings, since to put a `Path` together takes longer than to look.
            if version_of(f"{self._root}/{name}/{SETTINGS_FILE}") is not None:
                return (name,)
            aliases = self.all()
        except OSError:  # of this moment or this process: what is open can still be searched
            aliases = NONE if self._read is None else self._read[1]
        return aliases.get(name, (name,))

    def all(self) -> Mapping[str, Meant]:
        """The collections of each alias, in order of alias. Raises DamagedIndexError."""
        version = version_of(str(self._path))
        if version is None:
            return NONE
        if self._read is None or self._read[0] != version:
            # A file replaced since then is newer than noted here, and so is read once more.
            self._read = version, _aliases(self._path)
        return self._read[1]

    def get(self, alias: str) -> Meant:
        """The collections of an alias. Raises InvalidNameError, AliasNotFoundError or DamagedIndexError."""
        return meant_by(alias, self.all())

    def put(self, alias: str, collection: str, *others: str) -> Meant:
        """Makes the alias, or lets it mean other collections from now on; returns the names of these.

        collection, others: each is meant once; one may be an alias, and then stands for what it means now.
        Raises InvalidNameError, CollectionNotFoundError, CollectionExistsError where a collection has the
        alias's name, UnlikeCollectionsError for several that cannot be searched as one,
        SeveralCollectionsError for too many, or DamagedIndexError.
        """
        check_collection_name(alias)
        with self.locked():
            meant = tuple(
                dict.fromkeys(existing for name in (collection, *others) for existing in self._existing(name))
            )
            if self._exists(alias):
                raise CollectionExistsError(
                    f"{alias!r} is a collection; give the alias another name, or delete the collection"
                )
            if len(meant) > MOST_COLLECTIONS:
                raise SeveralCollectionsError(
                    f"alias {alias!r} is to mean {len(meant)} collections; the limit is {MOST_COLLECTIONS}"
                )
            if len(meant) > 1:
                united_settings(alias, [self._settings(name) for name in meant])
            self._write({**self.all(), alias: meant})
        return meant

    def remove(self, alias: str) -> None:
        """Removes the alias; its collections stay. Raises as `get`."""
        with self.locked():
            self.get(alias)
            self._write({name: meant for name, meant in self.all().items() if name != alias})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps others from making and removing names below the root meanwhile; waits for who does."""
        make_folder(self._root)
        with waiting_lock(self._lock):
            yield

    def require_free(self, name: str) -> None:
        """Raises CollectionExistsError where an alias has this name, which a new collection would have."""
        require_free(name, self.all())

    def require_unnamed(self, collection: str) -> None:
        """Raises CollectionAliasedError where an alias means this collection, which is to be deleted."""
        require_unnamed(collection, self.all())

    def _existing(self, name: str) -> Meant:
        """The collections that a name means, all of which are there. Raises CollectionNotFoundError."""
        meant = self.collections_of(name)
        for collection in meant:
            if not self._exists(collection):
                shown = name if len(meant) == 1 else collection
                raise CollectionNotFoundError(
                    f"collection {shown!r} does not exist; create or build it first"
                )
        return meant

    def _exists(self, collection: str) -> bool:
        return CollectionLayout(self._root / collection).settings.exists()

    def _settings(self, collection: str) -> CollectionSettings:
        return CollectionSettings.read(CollectionLayout(self._root / collection).settings)

    def _write(self, aliases: Mapping[str, Meant]) -> None:
        written = {
            alias: meant[0] if len(meant) == 1 else list(meant) for alias, meant in sorted(aliases.items())
        }
        write_json_atomically(self._path, {"format_version": FORMAT_VERSION, "aliases": written})


def _aliases(path: Path) -> Mapping[str, Meant]:
    try:
        record = Record.read(path, _REMEDY)
    except FileNotFoundError:  # removed just now
        return NONE
    record.require_version()
    record.require_keys(("format_version", "aliases"))
    stored = record.part("aliases").values
    aliases = {alias: _meant(given) for alias, given in sorted(stored.items())}
    try:
        for alias, meant in aliases.items():
            for name in (alias, *meant):
                check_collection_name(name)
            if len(set(meant)) < len(meant):
                raise record.damaged(f"{alias!r} means a collection twice")
    except InvalidNameError as error:
        raise record.damaged(str(error)) from error
    return MappingProxyType(aliases)


def _meant(given: Any) -> tuple[Any, ...]:
    """What stands for an alias, not yet checked: a name, or a list of several."""
    return tuple(given) if isinstance(given, list) and len(given) > 1 else (given,)
