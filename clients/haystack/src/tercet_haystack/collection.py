"""A collection of a Tercet server, and what Haystack's filters choose of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from haystack import Document
from haystack.errors import FilterError
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter
from tercet_client import ApiError, ClientPair, open_collection, open_collection_async
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import CollectionRequest, CollectionResponse, DocumentResponse

from tercet_haystack.documents import from_tercet
from tercet_haystack.filters import Split, split
from tercet_haystack.keys import as_secret, default_key, value_of

Filters = dict[str, Any]
BATCH = 100  # documents of a write or of a page


class FilteredCollection:
    """A collection, made where it is missing when it is first used, as Haystack's filters choose from it.

    Conditions on fields that it declares are the server's; those on other fields are looked up here.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        collection: str = "documents",
        key: Secret | str | None = default_key(),  # noqa: B008 - a secret names a variable, and is not changed
        settings: dict[str, Any] | None = None,
        title_key: str | None = "title",
        timeout: float = 60.0,
    ) -> None:
        """settings: of the collection if it is made here, such as `{"fields": {"year": "integer"}}`; one that
        exists must agree with them. title_key: where the meta has a title, which is encoded before the
        content; None for none.
        """
        self.url, self.collection, self.key = url, collection, as_secret(key)
        self.settings, self.title_key, self.timeout = settings, title_key, timeout
        self._pair: ClientPair | None = None
        self._described: CollectionResponse | None = None

    @property
    def clients(self) -> ClientPair:
        """The clients of the server, for what Haystack has no method for."""
        if self._pair is None:
            self._pair = ClientPair(self.url, key=value_of(self.key), timeout=self.timeout)
        return self._pair

    def close(self) -> None:
        """Closes the connections."""
        self.clients.close()

    async def close_async(self) -> None:
        """Closes the connections of this event loop."""
        await self.clients.close_async()

    def _opened(self, *, fresh: bool = False) -> CollectionResponse:
        if self._described is None or fresh:
            settings = cast("CollectionRequest | None", self.settings)
            self._described = open_collection(self.clients.sync, self.collection, settings)
        return self._described

    async def _opened_async(self, *, fresh: bool = False) -> CollectionResponse:
        if self._described is None or fresh:
            settings = cast("CollectionRequest | None", self.settings)
            self._described = await open_collection_async(self.clients.running, self.collection, settings)
        return self._described

    def _matching(self, filters: Filters | None) -> Iterator[DocumentResponse]:
        parts = self._split(filters, self._opened())
        with Filtering():
            for found in self.clients.sync.documents(self.collection, filter=parts.server, page=BATCH):
                if self._matches(found, parts):
                    yield found

    async def _matching_async(self, filters: Filters | None) -> AsyncIterator[DocumentResponse]:
        parts = self._split(filters, await self._opened_async())
        with Filtering():
            async for found in self.clients.running.documents(
                self.collection, filter=parts.server, page=BATCH
            ):
                if self._matches(found, parts):
                    yield found

    def _metas(self, filters: Filters | None) -> list[dict[str, Any]]:
        return [self._document(found).meta for found in self._matching(filters)]

    async def _metas_async(self, filters: Filters | None) -> list[dict[str, Any]]:
        return [self._document(found).meta async for found in self._matching_async(filters)]

    def _matches(self, found: DocumentResponse, parts: Split) -> bool:
        return parts.here is None or document_matches_filter(parts.here, self._document(found))

    def _split(self, filters: Filters | None, described: CollectionResponse) -> Split:
        return split(filters, described["fields"])

    def _document(self, found: DocumentResponse) -> Document:
        return from_tercet(found, self.title_key)


class Filtering:
    """Turns what the server says of a filter into FilterError."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ApiError) and error.code == "invalid_filter":
            raise FilterError(str(error)) from error
