"""Collections that are made where they are missing."""

from __future__ import annotations

from typing import cast

from tercet_client.async_client import AsyncClient
from tercet_client.client import Client
from tercet_client.collection import agreeing
from tercet_client.errors import ConflictError, NotFoundError
from tercet_client.types import CollectionRequest, CollectionResponse


def open_collection(
    client: Client,
    name: str,
    settings: CollectionRequest | None = None,
    *,
    default: CollectionRequest | None = None,
) -> CollectionResponse:
    """The collection of this name, made with these settings where there is none.

    default: settings of a new one where `settings` is None; one that exists need not agree with them. Raises
    ConflictError where there is one with another value of a setting that is given: settings are fixed at
    creation. A collection that exists is not written, so that a key for reading suffices.
    """
    try:
        found = client.collection(name).description
    except NotFoundError:
        try:
            return client.create_collection(name, default if settings is None else settings)
        except ConflictError:  # made by somebody else meanwhile
            found = client.collection(name).description
    agreeing(found, settings or {})
    return cast(CollectionResponse, found)


async def open_collection_async(
    client: AsyncClient,
    name: str,
    settings: CollectionRequest | None = None,
    *,
    default: CollectionRequest | None = None,
) -> CollectionResponse:
    """The same for an event loop."""
    try:
        found = (await client.collection(name)).description
    except NotFoundError:
        try:
            return await client.create_collection(name, default if settings is None else settings)
        except ConflictError:
            found = (await client.collection(name)).description
    agreeing(found, settings or {})
    return cast(CollectionResponse, found)
