"""Reads back what was exported to Qdrant: points with all their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tercet.ingest.errors import SourceError
from tercet.ingest.ready import ReadyBatch
from tercet.transfer.description import KEY, described_settings
from tercet.transfer.errors import TransferError
from tercet.transfer.qdrant.connection import QdrantPlace, qdrant_errors
from tercet.transfer.qdrant.stored import documents_of

POINTS_AT_ONCE = 64


class QdrantSource:
    """The points of a collection."""

    def __init__(self, place: QdrantPlace, collection: str) -> None:
        """Raises SourceError where the collection is none that an export made."""
        self.name = f"Qdrant collection {collection!r}"
        self._collection = collection
        try:
            self._client = place.open()
        except TransferError as error:
            raise SourceError(str(error)) from error
        try:
            with qdrant_errors(self.name):
                metadata = self._client.get_collection(collection).config.metadata or {}
                self.total: int | None = self._client.count(collection, exact=True).count
            self.settings, self.window = described_settings(metadata.get(KEY), self.name)
        except TransferError as error:
            self._client.close()
            raise SourceError(str(error)) from error
        except SourceError:
            self._client.close()
            raise

    def __iter__(self) -> Iterator[ReadyBatch]:
        offset: Any = None
        while True:
            try:
                with qdrant_errors(self.name):
                    records, offset = self._client.scroll(
                        self._collection, limit=POINTS_AT_ONCE, offset=offset, with_vectors=True
                    )
            except TransferError as error:
                raise SourceError(str(error)) from error
            yield documents_of(records, self.settings, self.name)
            if offset is None:
                return

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()
