"""What a collection holds of a folder, and how that is changed: over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from tercet.cli.batches import batches, stored_record
from tercet.cli.stores.remote import Remote
from tercet.cli.watching.files import FOLDER, VERSION, version_of
from tercet.index.candidates import Document
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
    """The documents of one collection that carry a folder's mark, and no others."""

    def __init__(self, remote: Remote, collection: str, mark: str) -> None:
        self._remote = remote
        self._collection = collection
        self._mark = mark

    def files(self) -> dict[str, StoredFile]:
        """The files whose documents carry the mark, by name. Raises RemoteError."""
        files: dict[str, StoredFile] = {}
        for document in self._remote.documents(self._collection):
            metadata = document["metadata"]
            if metadata.get(FOLDER) == self._mark:
                stored = files.setdefault(str(metadata.get(SOURCE)), StoredFile())
                stored.ids.add(document["id"])
                stored.versions.add(str(metadata.get(VERSION)))
        return files

    def put(self, documents: Sequence[Document]) -> int:
        """Makes these documents be there; how many had to be encoded for that. Raises RemoteError.

        Of one that is there with the same title and text the metadata alone are changed.
        """
        written = 0
        for some in _chunks(documents):
            there = {document["id"]: document for document in self._get([document.id for document in some])}
            changed = []
            for document in some:
                record, present = stored_record(document), there.get(document.id)
                if present is None or any(present[key] != record[key] for key in ("title", "text")):
                    changed.append(document)
                elif present["metadata"] != record["metadata"]:
                    self._remote.patch_document(self._collection, document.id, record["metadata"])
            for batch in batches(changed):
                self._remote.put_documents(self._collection, batch)
            written += len(changed)
        return written

    def remove(self, ids: Iterable[str]) -> int:
        """Deletes the documents that still carry the mark. Raises RemoteError."""
        removed = 0
        for some in _chunks(sorted(ids)):
            present = self._get(some)
            ours = [record["id"] for record in present if record["metadata"].get(FOLDER) == self._mark]
            if ours:
                removed += self._remote.delete_documents(self._collection, ids=ours)["deleted"]
        return removed

    def _get(self, ids: list[str]) -> list[Mapping[str, Any]]:
        return list(self._remote.get_documents(self._collection, ids)["documents"])


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while chunk := list(islice(left, AT_ONCE)):
        yield chunk
