"""Client of Tercet: hybrid retrieval with three scores for every hit."""

from tercet_client.async_client import AsyncClient
from tercet_client.bulk import EmbeddedDocuments, Upserted, upsert, upsert_async
from tercet_client.client import Client
from tercet_client.collections import open_collection, open_collection_async
from tercet_client.embeddings import Embeddings
from tercet_client.errors import (
    ApiError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    OverloadedError,
    TercetError,
)
from tercet_client.many import (
    delete_by_id,
    delete_by_id_async,
    dense_vectors,
    dense_vectors_async,
    documents_by_id,
    documents_by_id_async,
    passage,
)
from tercet_client.metadata import json_metadata
from tercet_client.pair import ClientPair

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientPair",
    "ConflictError",
    "ConnectionFailedError",
    "EmbeddedDocuments",
    "Embeddings",
    "NotFoundError",
    "OverloadedError",
    "TercetError",
    "Upserted",
    "delete_by_id",
    "delete_by_id_async",
    "dense_vectors",
    "dense_vectors_async",
    "documents_by_id",
    "documents_by_id_async",
    "json_metadata",
    "open_collection",
    "open_collection_async",
    "passage",
    "upsert",
    "upsert_async",
]
