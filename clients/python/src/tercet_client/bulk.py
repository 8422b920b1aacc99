"""Many documents: sent in batches, some of them at a time, and no faster than the server takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tercet_client.async_client import AsyncClient
from tercet_client.client import Client
from tercet_client.embeddings import Embeddings
from tercet_client.positions import Position, later
from tercet_client.types import DocumentRequest, PutDocumentsResponse

BATCH = 100  # documents of a request
IN_FLIGHT = 4  # requests at a time


@dataclass(frozen=True, slots=True)
class EmbeddedDocuments:
    """Documents that one request sends with their representations."""

    documents: list[DocumentRequest]
    embeddings: Embeddings


@dataclass(frozen=True, slots=True)
class Upserted:
    """documents: how many were sent; tokens: encoded for them; position: of the last write."""

    documents: int = 0
    tokens: int = 0
    position: Position = 0

    def after(self, answer: PutDocumentsResponse) -> Upserted:
        """With one more answer."""
        return Upserted(
            self.documents + answer["upserted"],
            self.tokens + answer["usage"]["tokens"],
            later(self.position, answer["position"]),
        )


Progress = Callable[[Upserted], None]
Item = DocumentRequest | EmbeddedDocuments
Batch = list[DocumentRequest] | EmbeddedDocuments


def upsert(
    client: Client,
    collection: str,
    items: Iterable[Item],
    *,
    batch: int = BATCH,
    in_flight: int = IN_FLIGHT,
    progress: Progress | None = None,
) -> Upserted:
    """Puts all documents of an iterable, which is read no further ahead than requests are under way.

    items: documents, of which `batch` go together, or EmbeddedDocuments, each of which is one request.
    progress: is told after each request. Each request is written as a whole or not at all; an error is raised
    once the others under way have ended, and what was written before it stays. Raises as
    `Client.put_documents`.
    """
    done, waiting = Upserted(), deque[Future[PutDocumentsResponse]]()

    def settle() -> None:
        nonlocal done
        done = done.after(waiting.popleft().result())
        if progress is not None:
            progress(done)

    with ThreadPoolExecutor(in_flight) as pool:
        for each in _batches(items, batch):
            if len(waiting) == in_flight:
                settle()
            waiting.append(pool.submit(_put, client, collection, each))
        while waiting:
            settle()
    return done


async def upsert_async(
    client: AsyncClient,
    collection: str,
    items: Iterable[Item] | AsyncIterable[Item],
    *,
    batch: int = BATCH,
    in_flight: int = IN_FLIGHT,
    progress: Progress | None = None,
) -> Upserted:
    """The same for an event loop; items may come asynchronously."""
    done, waiting = Upserted(), deque[asyncio.Task[PutDocumentsResponse]]()

    async def settle() -> None:
        nonlocal done
        done = done.after(await waiting.popleft())
        if progress is not None:
            progress(done)

    async with asyncio.TaskGroup() as group:
        async for each in _batches_async(items, batch):
            if len(waiting) == in_flight:
                await settle()
            waiting.append(group.create_task(_put_async(client, collection, each)))
        while waiting:
            await settle()
    return done


def _batches(items: Iterable[Item], size: int) -> Iterator[Batch]:
    documents: list[DocumentRequest] = []
    for item in items:
        if isinstance(item, EmbeddedDocuments):
            yield item
            continue
        documents.append(item)
        if len(documents) == size:
            yield documents
            documents = []
    if documents:
        yield documents


async def _batches_async(items: Iterable[Item] | AsyncIterable[Item], size: int) -> AsyncIterator[Batch]:
    if isinstance(items, Iterable):
        for each in _batches(items, size):
            yield each
        return
    documents: list[DocumentRequest] = []
    async for item in items:
        if isinstance(item, EmbeddedDocuments):
            yield item
            continue
        documents.append(item)
        if len(documents) == size:
            yield documents
            documents = []
    if documents:
        yield documents


def _put(client: Client, collection: str, batch: Batch) -> PutDocumentsResponse:
    if isinstance(batch, EmbeddedDocuments):
        return client.put_documents(collection, batch.documents, embeddings=batch.embeddings)
    return client.put_documents(collection, batch)


async def _put_async(client: AsyncClient, collection: str, batch: Batch) -> PutDocumentsResponse:
    if isinstance(batch, EmbeddedDocuments):
        return await client.put_documents(collection, batch.documents, embeddings=batch.embeddings)
    return await client.put_documents(collection, batch)
