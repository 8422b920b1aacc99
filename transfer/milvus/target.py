"""Pushes documents into a Milvus collection: of a server, or of Milvus Lite in a file.

Dense and lexical vectors are searched by their inner product. The query fetches the token vectors of its
candidates, and adds up the three scores itself.
"""

from __future__ import annotations

from typing import Any

import orjson
from pymilvus import MilvusClient

from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.description import KEY
from tercet.transfer.errors import TransferError
from tercet.transfer.milvus.connection import MilvusPlace, milvus_errors
from tercet.transfer.milvus.query import query_script
from tercet.transfer.milvus.rows import ARRAY_ITEMS, STRING_BYTES, rows_of, schema_of
from tercet.transfer.push import exists, left_over, require_same
from tercet.transfer.queries import CollectionQuery
from tercet.transfer.records import DocumentLimits, StoredDocuments

REQUEST_TOKENS = 16_384


class MilvusTarget:
    """A collection in Milvus."""

    def __init__(self, place: MilvusPlace, collection: str, settings: CollectionSettings, batch: int) -> None:
        """settings: of the exported collection; its codec is none where token vectors are left out.

        Raises TransferError for a collection with windows.
        """
        if settings.window is not None:
            raise TransferError(
                f"collection {settings.name!r} has windows, and Milvus one dense vector for a document: "
                "export to parquet, qdrant, elasticsearch or vespa"
            )
        self._place = place
        self._collection = collection
        self._settings = settings
        self._client: MilvusClient | None = None
        self.name = f"Milvus collection {collection!r}"
        self.limits = DocumentLimits(STRING_BYTES, ARRAY_ITEMS if settings.stores_token_vectors else None)
        self.batch = (batch, REQUEST_TOKENS)
        self.remarks: list[str] = []
        if settings.stores_token_vectors:
            self.remarks.append(
                "token vectors are stored, not searched: the query fetches those of its candidates"
            )

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError."""
        client = self._client = self._place.open()
        with milvus_errors(self.name):
            if client.has_collection(self._collection):
                if resume:
                    require_same(description, self._place.described(client, self._collection), self.name)
                    return
                if not overwrite:
                    raise exists(self.name)
                client.drop_collection(self._collection)
            written = orjson.dumps(description).decode()
            schema = schema_of(client, self._settings, written if self._place.remote else "")
            indexes = client.prepare_index_params()
            indexes.add_index(
                "dense", index_type="AUTOINDEX" if self._place.remote else "FLAT", metric_type="IP"
            )
            indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
            client.create_collection(
                self._collection,
                schema=schema,
                index_params=indexes,
                properties=None if self._place.remote else {KEY: written},  # Lite keeps no description
            )

    def write(self, documents: StoredDocuments) -> None:
        """Puts rows; those of the same documents are replaced."""
        with milvus_errors(self.name):
            self._opened().upsert(self._collection, list(rows_of(documents, self._settings)))

    def finish(self) -> None:
        """Writes what is in memory."""
        with milvus_errors(self.name):
            self._opened().flush(self._collection)

    def close(self) -> None:
        """Lets go of the client."""
        if self._client is not None:
            self._client.close()

    def abandon(self, written: int) -> str:
        """Says what is there."""
        return left_over(self.name, written)

    def query(self, query: CollectionQuery) -> str:
        """A script that asks twice for candidates and sums up their scores."""
        return query_script(self._place, self._collection, query)

    def _opened(self) -> MilvusClient:
        if self._client is None:
            raise TransferError(f"{self.name} was not begun")
        return self._client
