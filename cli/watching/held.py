"""What a collection holds of a folder, and how that is changed: over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from tercet.cli.batches import batches, stored_record
from tercet.cli.remote import Remote, path_of
from tercet.cli.watching.files import FOLDER, VERSION, version_of
from tercet.index.candidates import Document
from tercet.ingest.passages.split import SOURCE

T = TypeVar("T")
AT_ONCE = 100  # ids of a request


@dataclass(slots=True)
class HeldFile:
    """The ids of a file's documents, and their versions."""

    ids: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)

    def is_whole(self, hashed: str) -> bool:
        """Whether these are all documents of the file that has this hash."""
        return self.versions == {version_of(hashed, len(self.ids))}


class HeldFolder:
    """The documents of one collection that carry a folder's mark, and no others."""

    def __init__(self, remote: Remote, collection: str, mark: str) -> None:
        self._remote = remote
        self._collection = collection
        self._mark = mark

    def files(self) -> dict[str, HeldFile]:
        """What is there, by the name of the file. Raises RemoteError."""
        found: dict[str, HeldFile] = {}
        for document in self._listed():
            metadata = document["metadata"]
            if metadata.get(FOLDER) == self._mark:
                held = found.setdefault(str(metadata.get(SOURCE)), HeldFile())
                held.ids.add(document["id"])
                held.versions.add(str(metadata.get(VERSION)))
        return found

    def put(self, documents: Sequence[Document]) -> int:
        """Makes these documents be there; how many had to be encoded for that. Raises RemoteError.

        Of one that is there with the same title and text the metadata alone are changed.
        """
        written = 0
        for some in _chunks(documents):
            there = {one["id"]: one for one in self._get([one.id for one in some])}
            changed = []
            for document in some:
                record, present = stored_record(document), there.get(document.id)
                if present is None or any(present[key] != record[key] for key in ("title", "text")):
                    changed.append(document)
                elif present["metadata"] != record["metadata"]:
                    path = self._path("documents", document.id)
                    self._remote.ask("PATCH", path, json={"metadata": record["metadata"]})
            for batch in batches(changed):
                self._remote.ask("PUT", self._path("documents"), json={"documents": batch})
            written += len(changed)
        return written

    def remove(self, ids: Iterable[str]) -> int:
        """Deletes those of these documents that still carry the mark. Raises RemoteError."""
        removed = 0
        for some in _chunks(sorted(ids)):
            ours = [one["id"] for one in self._get(some) if one["metadata"].get(FOLDER) == self._mark]
            if ours:
                path = self._path("documents", "delete")
                removed += self._remote.ask("POST", path, json={"ids": ours})["deleted"]
        return removed

    def _get(self, ids: list[str]) -> list[Mapping[str, Any]]:
        path = self._path("documents", "get")
        found: list[Mapping[str, Any]] = self._remote.ask("POST", path, json={"ids": ids})["documents"]
        return found

    def _listed(self) -> Iterator[Mapping[str, Any]]:
        after = None
        while True:
            params: dict[str, str | int] = {} if after is None else {"after": after}
            page = self._remote.ask("GET", self._path("documents"), params=params)
            yield from page["documents"]
            after = page["next"]
            if after is None:
                return

    def _path(self, *parts: str) -> str:
        return path_of(self._collection, *parts)


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while chunk := list(islice(left, AT_ONCE)):
        yield chunk
