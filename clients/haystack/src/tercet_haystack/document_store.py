"""A collection of a Tercet server as Haystack's document store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from tercet_client import (
    ConflictError,
    NotFoundError,
    delete_by_id,
    delete_by_id_async,
    documents_by_id,
    documents_by_id_async,
    upsert,
    upsert_async,
)
from tercet_client.types import (
    CollectionRequest,
    CollectionResponse,
    DocumentRequest,
    SearchResponse,
)

from tercet_haystack.collection import BATCH, FilteredCollection, Filtering, Filters
from tercet_haystack.documents import from_hit, listed_at, to_tercet
from tercet_haystack.filters import whole
from tercet_haystack.statistics import kinds, limits, page, unique_values


class TercetDocumentStore(FilteredCollection):
    """Documents that the server encodes and TercetRetriever searches, by all three scores.

    The collection is made where it is missing, when it is first used. Conditions on fields that it declares
    are the server's; what filters say of other fields is looked up in every document here, and refused in
    searches. Methods raise FilterError, DuplicateDocumentError, and what `tercet_client` raises.
    """

    def to_dict(self) -> dict[str, Any]:
        """For a saved pipeline. Raises ValueError where the key is no environment variable."""
        return default_to_dict(
            self,
            url=self.url,
            collection=self.collection,
            key=self.key,
            settings=self.settings,
            title_key=self.title_key,
            timeout=self.timeout,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TercetDocumentStore:
        """From a saved pipeline."""
        return default_from_dict(cls, data)

    # The protocol

    def count_documents(self) -> int:
        """How many there are."""
        return self._opened(fresh=True)["documents"]

    async def count_documents_async(self) -> int:
        """How many there are."""
        return (await self._opened_async(fresh=True))["documents"]

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """Those that match, in the order in which they were written."""
        return [self._document(found) for found in sorted(self._matching(filters), key=listed_at)]

    async def filter_documents_async(self, filters: Filters | None = None) -> list[Document]:
        """Those that match, in the order in which they were written."""
        found = [one async for one in self._matching_async(filters)]
        return [self._document(one) for one in sorted(found, key=listed_at)]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Writes documents; on the server's disk once this returns. How many were written.

        NONE is FAIL. FAIL looks for all ids before it writes anything, and SKIP leaves out those that are
        there; both are sure beside other writers, since the server refuses a batch where one of its documents
        was written since. Each 100 documents are written as a whole or not at all; where a batch fails, those
        before it stay. OVERWRITE asks for nothing first, and is the fastest.
        """
        requests = self._requests(documents, policy)
        self._opened()
        if policy == DuplicatePolicy.OVERWRITE:
            upsert(self.clients.sync, self.collection, requests, batch=BATCH)
            return len(documents)
        position = self.clients.sync.statistics(self.collection)["position"]
        waiting = self._absent(requests, policy, self._present(requests))
        written = 0
        while waiting:
            part = waiting[:BATCH]
            try:
                self.clients.sync.put_documents(self.collection, part, if_position=position)
            except ConflictError as error:
                _expect_change(error)
                position = self.clients.sync.statistics(self.collection)["position"]
                waiting = self._absent(waiting, policy, self._present(waiting))
                continue
            written, waiting = written + len(part), waiting[BATCH:]
        return written

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """The same for an event loop."""
        requests = self._requests(documents, policy)
        await self._opened_async()
        client = self.clients.running
        if policy == DuplicatePolicy.OVERWRITE:
            await upsert_async(client, self.collection, requests, batch=BATCH)
            return len(documents)
        position = (await client.statistics(self.collection))["position"]
        waiting = self._absent(requests, policy, await self._present_async(requests))
        written = 0
        while waiting:
            part = waiting[:BATCH]
            try:
                await client.put_documents(self.collection, part, if_position=position)
            except ConflictError as error:
                _expect_change(error)
                position = (await client.statistics(self.collection))["position"]
                waiting = self._absent(waiting, policy, await self._present_async(waiting))
                continue
            written, waiting = written + len(part), waiting[BATCH:]
        return written

    def delete_documents(self, document_ids: list[str]) -> None:
        """Deletes documents by id; those that are not there are no error."""
        self._opened()
        delete_by_id(self.clients.sync, self.collection, document_ids)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """The same for an event loop."""
        await self._opened_async()
        await delete_by_id_async(self.clients.running, self.collection, document_ids)

    # Beyond the protocol

    def delete_all_documents(self, recreate_collection: bool = False) -> None:
        """Deletes all documents. recreate_collection: by deleting the collection and making one with the same
        settings; faster, but without a collection for a moment, and refused where an alias means it. One that
        learned a codebook for its token vectors is kept, as it could not be made without documents.
        """
        described = self._opened()
        if recreate_collection and _can_be_made_again(described):
            self.clients.sync.delete_collection(self.collection)
            self._described = self.clients.sync.create_collection(self.collection, _settings_of(described))
            return
        self.delete_documents([found["id"] for found in self._matching(None)])

    async def delete_all_documents_async(self, recreate_collection: bool = False) -> None:
        """The same for an event loop."""
        described = await self._opened_async()
        if recreate_collection and _can_be_made_again(described):
            client = self.clients.running
            await client.delete_collection(self.collection)
            self._described = await client.create_collection(self.collection, _settings_of(described))
            return
        await self.delete_documents_async([found["id"] async for found in self._matching_async(None)])

    def delete_by_filter(self, filters: Filters) -> int:
        """Deletes those that match; how many they were."""
        parts = self._split(filters, self._opened())
        if parts.server is not None and parts.here is None:
            with Filtering():
                return self.clients.sync.delete_documents(self.collection, filter=parts.server)["deleted"]
        ids = [found["id"] for found in self._matching(filters)]
        return delete_by_id(self.clients.sync, self.collection, ids)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        """The same for an event loop."""
        parts = self._split(filters, await self._opened_async())
        if parts.server is not None and parts.here is None:
            with Filtering():
                answer = await self.clients.running.delete_documents(self.collection, filter=parts.server)
            return answer["deleted"]
        ids = [found["id"] async for found in self._matching_async(filters)]
        return await delete_by_id_async(self.clients.running, self.collection, ids)

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Sets fields of the meta of those that match; how many they were. Nothing is encoded again.

        A document that is written meanwhile is looked at again, so that no write is lost.
        """
        self._check_update(meta)
        client, updated, settled = self.clients.sync, set[str](), False
        self._opened()
        while not settled:
            settled, position = True, client.statistics(self.collection)["position"]
            for found in list(self._matching(filters)):
                try:
                    client.patch_document(
                        self.collection, found["id"], {**found["metadata"], **meta}, if_position=position
                    )
                    updated.add(found["id"])
                except NotFoundError:
                    pass
                except ConflictError as error:
                    _expect_change(error)
                    settled = False
        return len(updated)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        """The same for an event loop."""
        self._check_update(meta)
        client, updated, settled = self.clients.running, set[str](), False
        await self._opened_async()
        while not settled:
            settled, position = True, (await client.statistics(self.collection))["position"]
            for found in [one async for one in self._matching_async(filters)]:
                try:
                    await client.patch_document(
                        self.collection, found["id"], {**found["metadata"], **meta}, if_position=position
                    )
                    updated.add(found["id"])
                except NotFoundError:
                    pass
                except ConflictError as error:
                    _expect_change(error)
                    settled = False
        return len(updated)

    def count_documents_by_filter(self, filters: Filters) -> int:
        """How many match. They are fetched to be counted."""
        return sum(1 for _ in self._matching(filters))

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        """The same for an event loop."""
        return len([None async for _ in self._matching_async(filters)])

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """Of each field, how many values it has in the documents that match."""
        metas = self._metas(filters)
        return {field: len(unique_values(metas, field)) for field in metadata_fields}

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        """The same for an event loop."""
        metas = await self._metas_async(filters)
        return {field: len(unique_values(metas, field)) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields that documents have, and their types, from all documents."""
        return kinds(self._metas(None))

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """The same for an event loop."""
        return kinds(await self._metas_async(None))

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The least and the greatest value of a field, from all documents."""
        return limits(self._metas(None), metadata_field)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """The same for an event loop."""
        return limits(await self._metas_async(None), metadata_field)

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of a field's values that contain the term, and how many they are."""
        return page(unique_values(self._metas(filters), metadata_field), search_term, from_, size)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """The same for an event loop."""
        values = unique_values(await self._metas_async(filters), metadata_field)
        return page(values, search_term, from_, size)

    # Searches

    def search(
        self,
        query: str,
        *,
        top_k: int = 10,
        filters: Filters | None = None,
        scores: bool = True,
        **options: Any,
    ) -> list[Document]:
        """The best documents by the weighted sum of the three scores, which are in `meta["tercet"]`.

        options: those of `tercet_client.Client.search`. Raises FilterError for a field that is not declared.
        """
        filter = whole(filters, self._opened()["fields"])
        with Filtering():
            answer = self.clients.sync.search(self.collection, query, top_k=top_k, filter=filter, **options)
        return self._hits(answer, scores=scores)

    async def search_async(
        self,
        query: str,
        *,
        top_k: int = 10,
        filters: Filters | None = None,
        scores: bool = True,
        **options: Any,
    ) -> list[Document]:
        """The same for an event loop."""
        filter, client = whole(filters, (await self._opened_async())["fields"]), self.clients.running
        with Filtering():
            answer = await client.search(self.collection, query, top_k=top_k, filter=filter, **options)
        return self._hits(answer, scores=scores)

    # What they share

    def _hits(self, answer: SearchResponse, *, scores: bool) -> list[Document]:
        return [from_hit(hit, self.title_key, scores=scores) for hit in answer["hits"]]

    def _requests(self, documents: list[Document], policy: DuplicatePolicy) -> list[DocumentRequest]:
        """Each id once: with SKIP the first of a kind, with OVERWRITE the last. Raises as the policy says."""
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise ValueError(f"write_documents takes a list of Documents, not {documents!r:.200}")
        by_id: dict[str, Document] = {}
        for document in documents:
            if document.id in by_id and policy not in (DuplicatePolicy.OVERWRITE, DuplicatePolicy.SKIP):
                raise DuplicateDocumentError(f"the id {document.id!r} occurs twice in what is to be written")
            if document.id not in by_id or policy == DuplicatePolicy.OVERWRITE:
                by_id[document.id] = document
        began = time.time_ns()  # a later write is listed later, as far as the writers' clocks agree
        return [to_tercet(document, self.title_key, began + n) for n, document in enumerate(by_id.values())]

    def _present(self, requests: Sequence[DocumentRequest]) -> set[str]:
        ids = [request["id"] for request in requests]
        return set(documents_by_id(self.clients.sync, self.collection, ids))

    async def _present_async(self, requests: Sequence[DocumentRequest]) -> set[str]:
        ids = [request["id"] for request in requests]
        return set(await documents_by_id_async(self.clients.running, self.collection, ids))

    def _absent(
        self, requests: Sequence[DocumentRequest], policy: DuplicatePolicy, present: set[str]
    ) -> list[DocumentRequest]:
        """Those that may be written. Raises DuplicateDocumentError where none may be left out."""
        if present and policy != DuplicatePolicy.SKIP:
            raise DuplicateDocumentError(
                f"collection {self.collection!r} has the document {min(present)!r}; choose another id, or "
                "DuplicatePolicy.OVERWRITE or SKIP"
            )
        return [request for request in requests if request["id"] not in present]

    def _check_update(self, meta: dict[str, Any]) -> None:
        if self.title_key in meta:
            raise ValueError(
                f"{self.title_key!r} is encoded with the content; write the documents anew to change it"
            )


def _expect_change(error: ConflictError) -> None:
    """Raises it where it is not that a document was written meanwhile."""
    if error.code != "document_changed":
        raise error


def _can_be_made_again(described: CollectionResponse) -> bool:
    """Whether a collection of these settings can be made without documents to learn a codebook from."""
    return not described["token_codec"].startswith("residual")


def _settings_of(described: CollectionResponse) -> CollectionRequest:
    """What makes a collection like this one."""
    names = (
        "dense_kind",
        "dense_memory_bytes",
        "token_codec",
        "token_pooling",
        "lexical",
        "bm25",
        "bm25_language",
        "adapter",
        "window",
        "fields",
        "partitioned",
    )
    found = {name: described[name] for name in names}  # type: ignore[literal-required]
    return cast(CollectionRequest, found)
