"""Collections of a data root in this program, with no server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tercet.embedded.collection import Collection, agreeing
from tercet.embedded.encoder import Encoder
from tercet.embedded.errors import ConflictError, NotFoundError
from tercet.embedded.failures import translated
from tercet.embedded.records import Position
from tercet.embedded.service import EmbeddedService
from tercet.service.routes import aliases, backups, collections, document_writes, documents, rerank, search
from tercet.service.routes.upkeep import merge_collection
from tercet.service.settings.reading import load_settings

Answer = dict[str, Any]


class Store:
    """Collections of a data root. Use as a context manager, or call `close`. Safe for many threads at once.

    Methods are named as those of `tercet_client.Client`, take the same arguments and answer the same. They
    raise ApiError and its kinds, with the codes of HTTP.
    """

    def __init__(self, service: EmbeddedService) -> None:
        self._service = service

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finishes what was accepted and lets another process have the data root."""
        self._service.close()

    def collections(self) -> list[Answer]:
        """Settings and state of all collections, in order of name."""
        return list(self._service.call(collections.list_collections)["collections"])

    def collection(
        self,
        name: str,
        *,
        create: bool = False,
        fields: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Collection:
        """A collection, by its name or an alias, with methods for its documents.

        create: make it where it is missing, else that raises NotFoundError. fields: metadata fields by name
        and type. settings: others that `PUT /collections/{name}` takes. Raises ConflictError where it exists
        with others.
        """
        wanted = settings if fields is None else {"fields": dict(fields), **settings}
        try:
            description = self._service.call(collections.get_collection, name=name)
        except NotFoundError:
            if not create:
                raise
            try:
                description = self.create_collection(name, wanted)
            except ConflictError:  # made by another thread meanwhile
                description = self._service.call(collections.get_collection, name=name)
        agreeing(description, wanted)
        return Collection(self, name, description)

    def create_collection(self, name: str, settings: Mapping[str, Any] | None = None) -> Answer:
        """Makes an empty collection. Raises ConflictError where it exists."""
        return self._answer(collections.create_collection, name, settings or {})

    def declare_fields(self, name: str, fields: Mapping[str, str]) -> Answer:
        """Declares more metadata fields over what a collection holds."""
        return self._answer(collections.declare_fields, name, {"fields": dict(fields)})

    def delete_collection(self, name: str) -> None:
        """Deletes a collection and all it holds."""
        self._service.call(collections.delete_collection, name=name)

    def statistics(self, name: str) -> Answer:
        """What a collection holds: documents, segments, bytes, unpublished writes."""
        return self._answer(collections.get_statistics, name)

    def merge(self, name: str) -> Answer:
        """Publishes what was written and joins segments, in the background."""
        return self._answer(merge_collection, name)

    def put_documents(
        self,
        collection: str,
        documents: Sequence[Mapping[str, Any]],
        *,
        create: bool = False,
        idempotency_key: str | None = None,
        if_position: Position | None = None,
    ) -> Answer:
        """Adds or replaces documents, all of them or none; on the disk once this returns.

        create: makes the collection where it is missing.
        if_position: only if none of them was written after it, else ConflictError.
        """
        body = {
            "documents": list(documents),
            "create": create,
            "idempotency_key": idempotency_key,
            "if_position": if_position,
        }
        return self._answer(document_writes.put_documents, collection, body)

    def document(
        self,
        collection: str,
        id: str,
        *,
        representations: bool = False,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> Answer:
        """A stored document. Raises NotFoundError. representations: with all that is stored of it."""
        return self._answer(
            documents.get_document,
            collection,
            document_id=id,
            representations=representations,
            partition=partition,
            min_position=min_position,
        )

    def documents(
        self,
        collection: str,
        *,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        order_by: str | None = None,
        descending: bool = False,
        page: int = 100,
        min_position: Position | None = None,
    ) -> Iterator[Answer]:
        """All documents, or those of a partition, in order of id or of a declared field, page by page."""
        after = None
        while True:
            answer = self._answer(
                documents.list_documents,
                collection,
                after=after,
                limit=page,
                filter=None if filter is None else json.dumps(filter),
                partition=partition,
                order_by=order_by,
                order=None if order_by is None else ("desc" if descending else "asc"),
                min_position=min_position,
            )
            yield from answer["documents"]
            after = answer["next"]
            if after is None:
                return

    def patch_document(
        self,
        collection: str,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        idempotency_key: str | None = None,
        if_position: Position | None = None,
    ) -> Answer:
        """Replaces a document's metadata, or merges this into it (RFC 7396); nothing is encoded again."""
        body = {
            "metadata": dict(metadata),
            "merge": merge,
            "idempotency_key": idempotency_key,
            "if_position": if_position,
        }
        return self._answer(document_writes.patch_document, collection, body, document_id=id)

    def count_documents(
        self,
        collection: str,
        filter: Mapping[str, Any] | None = None,
        *,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> int:
        """How many documents there are, or how many of them a filter allows, of one partition or of all."""
        body = {"filter": filter, "partition": partition, "min_position": min_position}
        return int(self._answer(documents.count_documents, collection, body)["count"])

    def get_documents(
        self,
        collection: str,
        ids: Sequence[str],
        *,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> Answer:
        """Several documents by their ids, and the ids that are not there, or not in a partition."""
        body = {"ids": list(ids), "partition": partition, "min_position": min_position}
        return self._answer(documents.get_documents, collection, body)

    def update_documents(
        self,
        collection: str,
        metadata: Mapping[str, Any],
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        merge: bool = False,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Changes the metadata of documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error.
        """
        body = {
            "metadata": dict(metadata),
            "merge": merge,
            "ids": _list_of(ids),
            "filter": filter,
            "partition": partition,
            "idempotency_key": idempotency_key,
        }
        return self._answer(document_writes.update_documents, collection, body)

    def delete_documents(
        self,
        collection: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        partition: str | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Deletes documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error.
        """
        body = {
            "ids": _list_of(ids),
            "filter": filter,
            "partition": partition,
            "idempotency_key": idempotency_key,
        }
        return self._answer(document_writes.delete_documents, collection, body)

    def search(self, collection: str, query: Any, **options: Any) -> Answer:
        """The best documents of a collection, each with its scores. options: those of `POST /search`."""
        body = {"collection": collection, "query": query, **options}
        return self._answer(search.search, body=body)

    def search_many(self, collection: str, queries: Sequence[Any], **options: Any) -> Answer:
        """The best documents for each of several queries, in one request."""
        body = {"collection": collection, "queries": list(queries), **options}
        return self._answer(search.search, body=body)

    def rerank(self, query: str, inputs: Sequence[str], **options: Any) -> Answer:
        """Texts by their three-way score with a query. options: those of `POST /rerank`."""
        return self._answer(rerank.rerank, body={"query": query, "inputs": list(inputs), **options})

    def aliases(self) -> list[Answer]:
        """All aliases, in order of name."""
        return list(self._service.call(aliases.list_aliases)["aliases"])

    def alias(self, name: str) -> Answer:
        """What an alias means. Raises NotFoundError."""
        return self._answer(aliases.get_alias, name)

    def put_alias(self, name: str, collection: str | Sequence[str]) -> Answer:
        """Makes an alias, or switches it in one step; of several collections, which are searched as one."""
        single = isinstance(collection, str)
        body = {"collection": collection} if single else {"collections": list(collection)}
        return self._answer(aliases.put_alias, name, body)

    def delete_alias(self, name: str) -> None:
        """Removes an alias; its collections stay."""
        self._service.call(aliases.delete_alias, name=name)

    def backups(self, collection: str) -> list[Answer]:
        """The backups of a collection, the newest first."""
        return list(self._answer(backups.list_backups, collection)["backups"])

    def create_backup(self, collection: str) -> Answer:
        """Copies a collection as it is now."""
        return self._answer(backups.make_backup, collection)

    def restore_backup(self, collection: str, backup: str, *, name: str | None = None) -> Answer:
        """Restores a backup in place, or as the new collection `name`."""
        body = {} if name is None else {"name": name}
        return self._answer(backups.restore_backup, collection, body, backup_id=backup)

    def delete_backup(self, collection: str, backup: str) -> None:
        """Removes a backup."""
        self._service.call(backups.delete_backup, name=collection, backup_id=backup)

    def _answer(self, handler: Any, name: str | None = None, body: Any = None, **arguments: Any) -> Answer:
        return dict(self._service.call(handler, name=name, body=body, **arguments))


def open_store(
    data: str | os.PathLike[str] = "data", *, encoder: Encoder | None = None, **settings: Any
) -> Store:
    """Opens a data root, and makes it where it is missing. One process at a time may have it open.

    encoder: one that `tercet.load` gave, for new collections and for those that it wrote. By default that of
    the settings. settings: by the names of `tercet serve`, such as checkpoint="minilm-m3".
    Raises ConflictError, with the code `data_root_in_use`, while a server or another process has it open.
    """
    if encoder is not None and encoder.info.adapter is not None:
        raise ValueError("the encoder has an adapter; open with its base, and give collections adapter=")
    with translated():
        given = load_settings({**settings, "data": Path(data)})
        return Store(EmbeddedService(given, None if encoder is None else encoder.loaded))


def _list_of(ids: Sequence[str] | None) -> Any:
    """A text is left as it is, for the service to refuse: its letters are no ids."""
    return list(ids) if ids is not None and not isinstance(ids, str) else ids
