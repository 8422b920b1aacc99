"""Many texts or documents: in as many requests as the server's limits ask for, some of them at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

import numpy as np

from tercet_client.async_client import AsyncClient
from tercet_client.bulk import BATCH, IN_FLIGHT
from tercet_client.client import Client
from tercet_client.embeddings import Embeddings, Float32
from tercet_client.errors import NotFoundError
from tercet_client.types import DocumentResponse, HitResponse

IDS = 1000  # of one delete: the server's own limit unless its operator changed it
MISSING = "document_not_found"  # unlike a missing collection, no error here

Part = TypeVar("Part")
Answer = TypeVar("Answer")


def dense_vectors(
    client: Client,
    texts: Sequence[str],
    *,
    input_type: Literal["document", "query"] = "document",
    adapter: str | None = None,
    batch: int = BATCH,
) -> Float32:
    """The dense vectors of any number of texts, float32[N, D]; float32[0, 0] of none."""

    def embed(part: Sequence[str]) -> Embeddings:
        return client.embed(part, input_type=input_type, outputs=["dense"], adapter=adapter)

    return _stacked(_map(embed, list(_parts(texts, batch))))


async def dense_vectors_async(
    client: AsyncClient,
    texts: Sequence[str],
    *,
    input_type: Literal["document", "query"] = "document",
    adapter: str | None = None,
    batch: int = BATCH,
) -> Float32:
    """The same for an event loop."""

    async def embed(part: Sequence[str]) -> Embeddings:
        return await client.embed(part, input_type=input_type, outputs=["dense"], adapter=adapter)

    return _stacked(await _map_async(embed, list(_parts(texts, batch))))


def documents_by_id(client: Client, collection: str, ids: Sequence[str]) -> dict[str, DocumentResponse]:
    """Those of the documents that are there, by id, in the order of `ids`: a request for each."""

    def document(id: str) -> DocumentResponse | None:
        try:
            return client.document(collection, id)
        except NotFoundError as error:
            if error.code == MISSING:
                return None
            raise

    return _present(_map(document, list(dict.fromkeys(ids))))


async def documents_by_id_async(
    client: AsyncClient, collection: str, ids: Sequence[str]
) -> dict[str, DocumentResponse]:
    """The same for an event loop."""

    async def document(id: str) -> DocumentResponse | None:
        try:
            return await client.document(collection, id)
        except NotFoundError as error:
            if error.code == MISSING:
                return None
            raise

    return _present(await _map_async(document, list(dict.fromkeys(ids))))


def delete_by_id(client: Client, collection: str, ids: Sequence[str]) -> int:
    """Deletes any number of documents; how many were there. Each thousand is one write."""
    parts = _parts(list(dict.fromkeys(ids)), IDS)
    return sum(client.delete_documents(collection, ids=part)["deleted"] for part in parts)


async def delete_by_id_async(client: AsyncClient, collection: str, ids: Sequence[str]) -> int:
    """The same for an event loop."""
    deleted = 0
    for part in _parts(list(dict.fromkeys(ids)), IDS):
        deleted += (await client.delete_documents(collection, ids=part))["deleted"]
    return deleted


def passage(hit: HitResponse) -> str:
    """What of a hit was encoded: its title and text, or where these are divided its best window."""
    window, whole = hit.get("window"), (0, len(hit["text"]))
    if window is not None and (window["start"], window["end"]) != whole:
        return hit["text"][window["start"] : window["end"]]
    return hit["text"] if hit["title"] is None else f"{hit['title']}\n{hit['text']}"


def _parts(items: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _map(do: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
    if len(parts) < 2:
        return [do(part) for part in parts]
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        return list(pool.map(do, parts))


async def _map_async(do: Callable[[Part], Awaitable[Answer]], parts: Sequence[Part]) -> list[Answer]:
    places = asyncio.Semaphore(IN_FLIGHT)

    async def one(part: Part) -> Answer:
        async with places:
            return await do(part)

    return await asyncio.gather(*map(one, parts))


def _stacked(embeddings: Sequence[Embeddings]) -> Float32:
    rows = [each.dense for each in embeddings if each.dense is not None]
    return np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)


def _present(found: Sequence[DocumentResponse | None]) -> dict[str, DocumentResponse]:
    return {document["id"]: document for document in found if document is not None}
