"""One collection by its name, with a method for each thing done to its documents.

Made of the asynchronous one by `clients/python/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tercet_client.errors import ConflictError
from tercet_client.records import Deleted, Document, Documents, Position, Put, SearchResult, Updated

if TYPE_CHECKING:
    from tercet_client.client import Client


class Collection:
    """A collection, or an alias of some. `client.collection(name)` gives it.

    Its methods raise ApiError: NotFoundError once the collection is deleted, ConflictError, OverloadedError.
    """

    def __init__(self, client: Client, name: str, description: Mapping[str, Any]) -> None:
        """description: settings and state, as the client has just read them."""
        self._client = client
        self.name = name
        self.description = dict(description)

    def describe(self) -> dict[str, Any]:
        """The collection's settings and state, read anew: fields, encoder, number of documents, snapshot."""
        self.description = self._client.collection(self.name).description
        return self.description

    def put(
        self,
        documents: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        if_position: Position | None = None,
    ) -> Put:
        """Adds or replaces documents, all of them or none. They are on the disk once this returns.

        documents: each has `id` and `text`, and may have `title` and `metadata`. idempotency_key: a repeat
        with it changes nothing. if_position: only if none of them was written after it, else ConflictError.
        """
        given: Any = list(documents)
        return Put.of(
            self._client.put_documents(
                self.name, given, idempotency_key=idempotency_key, if_position=if_position
            )
        )

    def get(
        self, ids: Sequence[str], *, partition: str | None = None, min_position: Position | None = None
    ) -> Documents:
        """Stored documents by their ids, those of a partition or all.

        min_position: of a write's answer, after which they are read.
        """
        return Documents.of(
            self._client.get_documents(
                self.name, list(ids), partition=partition, min_position=min_position
            )
        )

    def documents(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        order_by: str | None = None,
        descending: bool = False,
        page: int = 100,
    ) -> Iterator[Document]:
        """All documents, or those of a partition, in order of id or of a declared field, page by page."""
        allowed: Any = filter
        for record in self._client.documents(
            self.name,
            filter=allowed,
            partition=partition,
            order_by=order_by,
            descending=descending,
            page=page,
        ):
            yield Document.of(record)

    def count(
        self,
        filter: Mapping[str, Any] | None = None,
        *,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> int:
        """How many documents there are, or how many of them a filter allows, of one partition or of all."""
        allowed: Any = filter
        return self._client.count_documents(
            self.name, allowed, partition=partition, min_position=min_position
        )

    def update(
        self,
        *,
        metadata: Mapping[str, Any],
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        merge: bool = False,
        idempotency_key: str | None = None,
    ) -> Updated:
        """Changes the metadata of documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error. merge: the metadata is merged into what is stored (RFC 7396),
        instead of replacing it.
        """
        allowed: Any = filter
        return Updated.of(
            self._client.update_documents(
                self.name,
                metadata,
                ids=ids,
                filter=allowed,
                partition=partition,
                merge=merge,
                idempotency_key=idempotency_key,
            )
        )

    def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Deletes documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error.
        """
        allowed: Any = filter
        return Deleted.of(
            self._client.delete_documents(
                self.name,
                ids=ids,
                filter=allowed,
                partition=partition,
                idempotency_key=idempotency_key,
            )
        )

    def search(self, query: Any, **options: Any) -> SearchResult:
        """The best documents for a query, each with its three scores.

        query: a text, ready representations, or `{"id": …}` of a stored document that others shall be like.
        options: top_k, filter, weights, candidates, explain, highlight and whatever else `POST /search`
        takes, by the same names.
        """
        return SearchResult.of(self._client.search(self.name, query, **options))

    def search_many(self, queries: Sequence[Any], **options: Any) -> list[SearchResult]:
        """The best documents for each of several queries, in one request. options: as of `search`."""
        answer: Mapping[str, Any] = self._client.search_many(self.name, queries, **options)
        return [SearchResult.of({**answer, **result}) for result in answer["results"]]


def agreeing(description: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raises ConflictError where an existing collection has other settings than those asked for."""
    for setting, wanted in settings.items():
        has = description.get(setting)
        if wanted is not None and has != wanted:
            raise ConflictError(
                409,
                f"collection {description['name']!r} has {setting} {has!r}, not {wanted!r}; settings are "
                "fixed at creation: leave this one out, choose another name, or delete the collection",
                "collection_exists",
                setting,
            )
