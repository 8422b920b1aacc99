"""What a collection holds of a folder, and how that is changed: over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from tercet.cli.batches import batches, stored_record
from tercet.cli.stores.remote import Remote
from tercet.cli.watching.files import VERSION, version_of
from tercet.cli.watching.mark import FOLDER, FolderMark
from tercet.index.candidates import Document
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.split import SOURCE

T = TypeVar("T")
AT_ONCE = 100  # ids of a request


@dataclass(slots=True)
class StoredFile:
    """The ids of a file's documents, and their versions."""

    ids: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)

    def is_whole(self, hashed: str) -> bool:
        """Whether these are all documents of the file that has this hash."""
        return self.versions == {version_of(hashed, len(self.ids))}


class StoredFolder:
    """The documents of one collection that are a folder's by its mark, and no others."""

    def __init__(self, remote: Remote, collection: str, mark: FolderMark) -> None:
        self._remote = remote
        self._collection = collection
        self._mark = mark

    def files(self) -> dict[str, StoredFile]:
        """The folder's files, by name.

        Raises SourceError where documents carry its name and not its place, and RemoteError.
        """
        files: dict[str, StoredFile] = {}
        for document in self._remote.documents(self._collection):
            metadata = document["metadata"]
            if self._mark.is_of(metadata):
                stored = files.setdefault(str(metadata.get(SOURCE)), StoredFile())
                stored.ids.add(document["id"])
                stored.versions.add(str(metadata.get(VERSION)))
            elif metadata.get(FOLDER) == self._mark.name:
                raise SourceError(
                    f"collection {self._collection!r} has documents of a folder {self._mark.name!r} that "
                    "may be another one: it was at another place, or given by --mark; nothing was changed. "
                    f"--mark {self._mark.name} says that it is this one; for another folder give another name"
                )
        return files

    def present(self, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """What the collection has under these ids.

        Raises InvalidDocumentError where another folder has one of them, and RemoteError.
        """
        present: dict[str, Mapping[str, Any]] = {}
        for some in _chunks(sorted(ids)):
            for record in self._get(some):
                metadata = record["metadata"]
                if FOLDER in metadata and not self._mark.is_of(metadata):
                    raise InvalidDocumentError(
                        f"the document {record['id']!r} is of the folder {metadata[FOLDER]!r} already; put "
                        f"the folders into collections of their own, or give --mark {metadata[FOLDER]} where "
                        "this is that folder"
                    )
                present[record["id"]] = record
        return present

    def put(self, documents: Sequence[Document], present: Mapping[str, Mapping[str, Any]]) -> int:
        """Makes these documents be there; how many had to be encoded for that. Raises RemoteError.

        present: what the collection has under their ids. Of one that is there with the same title and text
        the metadata alone are changed.
        """
        changed = []
        for document in documents:
            record, stored = stored_record(document), present.get(document.id)
            if stored is None or any(stored[key] != record[key] for key in ("title", "text")):
                changed.append(document)
            elif stored["metadata"] != record["metadata"]:
                self._remote.patch_document(self._collection, document.id, record["metadata"])
        for batch in batches(changed):
            self._remote.put_documents(self._collection, batch)
        return len(changed)

    def remove(self, ids: Iterable[str]) -> int:
        """Deletes the documents that are still the folder's. Raises RemoteError."""
        removed = 0
        for some in _chunks(sorted(ids)):
            present = self._get(some)
            ours = [record["id"] for record in present if self._mark.is_of(record["metadata"])]
            if ours:
                removed += self._remote.delete_documents(self._collection, ids=ours)["deleted"]
        return removed

    def _get(self, ids: list[str]) -> list[Mapping[str, Any]]:
        return list(self._remote.get_documents(self._collection, ids)["documents"])


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while chunk := list(islice(left, AT_ONCE)):
        yield chunk
