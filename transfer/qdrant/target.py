"""Pushes documents into a Qdrant collection."""

from __future__ import annotations

from typing import Any

from qdrant_client import QdrantClient, models

from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.description import KEY
from tercet.transfer.errors import TransferError
from tercet.transfer.push import exists, left_over, require_same
from tercet.transfer.qdrant.connection import QdrantPlace, qdrant_errors
from tercet.transfer.qdrant.points import FIELD_TYPES, field_key, points_of, vector_parameters
from tercet.transfer.qdrant.query import query_script
from tercet.transfer.queries import CollectionQuery
from tercet.transfer.records import DocumentLimits, StoredDocuments

MULTIVECTOR_VALUES = 1_048_576  # Qdrant takes fewer values in a point's multivector
REQUEST_TOKENS = 8192  # token vectors of a request: of 128 values some 12 MB of JSON, of 32 that servers take


class QdrantTarget:
    """A collection of a server or of the local mode."""

    def __init__(self, place: QdrantPlace, collection: str, settings: CollectionSettings, batch: int) -> None:
        """settings: of the exported collection; its codec is none where token vectors are left out."""
        values = max(settings.dense_dimension, settings.colbert_dimension)
        self._place = place
        self._collection = collection
        self._settings = settings
        self._client: QdrantClient | None = None
        self.name = f"Qdrant collection {collection!r}"
        self.limits = DocumentLimits()
        if settings.stores_token_vectors:
            self.limits = DocumentLimits(token_vectors=(MULTIVECTOR_VALUES - 1) // values)
        self.batch = (batch, max(1, REQUEST_TOKENS * 128 // values))
        self.remarks: list[str] = []
        if settings.window is not None and settings.stores_token_vectors:
            self.remarks.append(
                "late interaction goes over all windows of a document together, and not over the best one: "
                "its scores are at least ours"
            )

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError."""
        client = self._client = self._place.open()
        with qdrant_errors(self.name):
            if client.collection_exists(self._collection):
                if resume:
                    metadata = client.get_collection(self._collection).config.metadata or {}
                    require_same(description, metadata.get(KEY), self.name)
                    return
                if not overwrite:
                    raise exists(self.name)
                client.delete_collection(self._collection)
            client.create_collection(
                self._collection,
                vectors_config=vector_parameters(self._settings),
                sparse_vectors_config={"sparse": models.SparseVectorParams()},
                metadata={KEY: description},
            )
            if self._place.path is None:  # the local mode has no indexes
                for field, kind in self._settings.fields.items():
                    key = field_key(field)
                    if key is not None:
                        client.create_payload_index(self._collection, key, FIELD_TYPES[kind])

    def write(self, documents: StoredDocuments) -> None:
        """Puts points; those of the same documents are replaced."""
        with qdrant_errors(self.name):
            self._opened().upsert(self._collection, points_of(documents), wait=True)

    def finish(self) -> None:
        """Nothing: each write waited until its points were there."""

    def close(self) -> None:
        """Lets go of the client."""
        if self._client is not None:
            self._client.close()

    def abandon(self, written: int) -> str:
        """Says what is there."""
        return left_over(self.name, written)

    def query(self, query: CollectionQuery) -> str:
        """A script that asks for the sum of three scores."""
        return query_script(self._place, self._collection, query, windows=self._settings.window is not None)

    def _opened(self) -> QdrantClient:
        if self._client is None:
            raise TransferError(f"{self.name} was not begun")
        return self._client
