"""Client of Tercet: hybrid retrieval with three scores for every hit."""

from tercet_client.async_client import AsyncClient
from tercet_client.bulk import EmbeddedDocuments, Upserted, upsert, upsert_async
from tercet_client.client import Client
from tercet_client.embeddings import Embeddings
from tercet_client.errors import (
    ApiError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    OverloadedError,
    TercetError,
)

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ConflictError",
    "ConnectionFailedError",
    "EmbeddedDocuments",
    "Embeddings",
    "NotFoundError",
    "OverloadedError",
    "TercetError",
    "Upserted",
    "upsert",
    "upsert_async",
]
