"""A collection of a Tercet server as LlamaIndex's vector store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.tercet.filters import filter_tree
from llama_index.vector_stores.tercet.nodes import SOURCE, from_hit, from_tercet, to_tercet
from llama_index.vector_stores.tercet.queries import search_of
from tercet_client import (
    ClientPair,
    delete_by_id,
    delete_by_id_async,
    dense_vectors,
    dense_vectors_async,
    documents_by_id,
    documents_by_id_async,
    open_collection,
    open_collection_async,
    passage,
    upsert,
    upsert_async,
)
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import CollectionRequest, CollectionResponse, HitResponse


class TercetVectorStore(BasePydanticVectorStore):
    """Nodes that the server encodes and searches, by the sum of their dense, lexical and ColBERT scores.

    The collection is made where it is missing, when it is first used, with the field `ref_doc_id` declared.
    Embeddings of nodes are not used: give an index `MockEmbedding(1)`, so that none are computed. Methods
    raise what `tercet_client` raises, and ValueError for what Tercet lacks.
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    flat_metadata: bool = False

    url: str = DEFAULT_URL
    collection: str
    settings: dict[str, Any] | None = Field(None, description="Of the collection, if it is made here.")
    scores: bool = Field(True, description="Put the scores of found nodes into metadata['tercet'].")
    timeout: float = Field(60.0, description="Seconds of one attempt.")
    _clients: ClientPair = PrivateAttr()
    _described: CollectionResponse | None = PrivateAttr(None)

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        collection: str,
        key: str | None = None,
        settings: dict[str, Any] | None = None,
        scores: bool = True,
        timeout: float = 60.0,
        **kwargs: Any,
    ) -> None:
        """settings: such as `{"fields": {"year": "integer"}}`, the fields that filters work on; a collection
        that exists must agree with them. key: is saved nowhere.
        """
        super().__init__(
            url=url, collection=collection, settings=settings, scores=scores, timeout=timeout, **kwargs
        )
        self._clients = ClientPair(url, key=key, timeout=timeout)

    @classmethod
    def class_name(cls) -> str:
        """Of a saved store."""
        return "TercetVectorStore"

    @property
    def client(self) -> ClientPair:
        """The clients of the server, for what LlamaIndex has no method for."""
        return self._clients

    # Nodes

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Adds nodes, or replaces those of the same ids; on the server's disk once this returns.

        kwargs: `batch`, `in_flight` and `progress` of `tercet_client.upsert`. Each request is written as a
        whole or not at all; where one fails, those before it stay.
        """
        requests = [to_tercet(node) for node in _each_once(nodes)]
        self._open()
        upsert(self._clients.sync, self.collection, requests, **kwargs)
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """The same for an event loop."""
        requests = [to_tercet(node) for node in _each_once(nodes)]
        await self._open_async()
        await upsert_async(self._clients.running, self.collection, requests, **kwargs)
        return [node.node_id for node in nodes]

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Those of the ids that are there, in their order, or those that a filter allows, or all.

        Raises ValueError where ids and filters are given.
        """
        _one_of(node_ids, filters)
        self._open()
        client = self._clients.sync
        if node_ids is not None:
            return [from_tercet(one) for one in documents_by_id(client, self.collection, node_ids).values()]
        return [from_tercet(one) for one in client.documents(self.collection, filter=filter_tree(filters))]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The same for an event loop."""
        _one_of(node_ids, filters)
        await self._open_async()
        client = self._clients.running
        if node_ids is not None:
            found = await documents_by_id_async(client, self.collection, node_ids)
            return [from_tercet(one) for one in found.values()]
        listed = client.documents(self.collection, filter=filter_tree(filters))
        return [from_tercet(one) async for one in listed]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Deletes the nodes of a document. Raises ApiError where ref_doc_id is not declared."""
        self._open()
        self._clients.sync.delete_documents(self.collection, filter={"eq": {SOURCE: ref_doc_id}})

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """The same for an event loop."""
        await self._open_async()
        await self._clients.running.delete_documents(self.collection, filter={"eq": {SOURCE: ref_doc_id}})

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Deletes nodes by ids, or those that a filter allows. Raises ValueError unless one is given."""
        tree = _deletion(node_ids, filters)
        self._open()
        if node_ids is not None:
            delete_by_id(self._clients.sync, self.collection, node_ids)
        else:
            self._clients.sync.delete_documents(self.collection, filter=tree)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """The same for an event loop."""
        tree = _deletion(node_ids, filters)
        await self._open_async()
        if node_ids is not None:
            await delete_by_id_async(self._clients.running, self.collection, node_ids)
        else:
            await self._clients.running.delete_documents(self.collection, filter=tree)

    def clear(self) -> None:
        """Deletes all nodes; the collection stays."""
        self._open()
        client = self._clients.sync
        delete_by_id(client, self.collection, [one["id"] for one in client.documents(self.collection)])

    async def aclear(self) -> None:
        """The same for an event loop."""
        await self._open_async()
        client = self._clients.running
        ids = [one["id"] async for one in client.documents(self.collection)]
        await delete_by_id_async(client, self.collection, ids)

    # Searches

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes for a query's text by all three scores, or for its vector by dense ones.

        kwargs: those of the client's `search`, as `weights` or `explain`; mode mmr takes `mmr_prefetch_k` or
        `mmr_prefetch_factor`, and encodes what it chooses from.
        """
        arguments = search_of(query, **kwargs)
        self._open()
        client = self._clients.sync
        hits = client.search(self.collection, **arguments)["hits"]
        if query.mode != VectorStoreQueryMode.MMR or not hits:
            return self._result(hits, [hit["score"] for hit in hits])
        vectors = dense_vectors(client, [passage(hit) for hit in hits], adapter=self._adapter).tolist()
        vector = query.query_embedding if query.query_str is None else None
        if vector is None:
            text = [query.query_str or ""]
            vector = dense_vectors(client, text, input_type="query", adapter=self._adapter)[0].tolist()
        return self._diverse(query, hits, vector, vectors)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The same for an event loop."""
        arguments = search_of(query, **kwargs)
        await self._open_async()
        client = self._clients.running
        hits = (await client.search(self.collection, **arguments))["hits"]
        if query.mode != VectorStoreQueryMode.MMR or not hits:
            return self._result(hits, [hit["score"] for hit in hits])
        passages = [passage(hit) for hit in hits]
        vectors = (await dense_vectors_async(client, passages, adapter=self._adapter)).tolist()
        vector = query.query_embedding if query.query_str is None else None
        if vector is None:
            text = [query.query_str or ""]
            found = await dense_vectors_async(client, text, input_type="query", adapter=self._adapter)
            vector = found[0].tolist()
        return self._diverse(query, hits, vector, vectors)

    # What they share

    @property
    def _adapter(self) -> str | None:
        return None if self._described is None else self._described["adapter"]

    def _open(self) -> None:
        if self._described is None:
            given, default = self._settings()
            self._described = open_collection(self._clients.sync, self.collection, given, default=default)

    async def _open_async(self) -> None:
        if self._described is None:
            given, default = self._settings()
            self._described = await open_collection_async(
                self._clients.running, self.collection, given, default=default
            )

    def _settings(self) -> tuple[CollectionRequest | None, CollectionRequest]:
        """What a collection must agree with, and what a new one gets where nothing was asked for."""
        default: CollectionRequest = {"fields": {SOURCE: "keyword"}}
        if self.settings is None:
            return None, default
        given: CollectionRequest = {**self.settings}  # type: ignore[typeddict-item]
        given["fields"] = {SOURCE: "keyword", **(self.settings.get("fields") or {})}
        return given, default

    def _result(self, hits: Sequence[HitResponse], similarities: list[float]) -> VectorStoreQueryResult:
        nodes = [from_hit(hit, scores=self.scores) for hit in hits]
        return VectorStoreQueryResult(nodes, similarities, [hit["id"] for hit in hits])

    def _diverse(
        self,
        query: VectorStoreQuery,
        hits: Sequence[HitResponse],
        vector: list[float],
        vectors: list[list[float]],
    ) -> VectorStoreQueryResult:
        similarities, places = get_top_k_mmr_embeddings(
            vector,
            vectors,
            similarity_top_k=query.similarity_top_k,
            embedding_ids=list(range(len(hits))),
            mmr_threshold=query.mmr_threshold,
        )
        return self._result([hits[place] for place in places], similarities)


def _each_once(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    """The last of each id, since a later node replaces an earlier one."""
    return list({node.node_id: node for node in nodes}.values())


def _one_of(node_ids: list[str] | None, filters: MetadataFilters | None) -> None:
    if node_ids is not None and filters is not None:
        raise ValueError("give node_ids or filters: one of them")


def _deletion(node_ids: list[str] | None, filters: MetadataFilters | None) -> Any:
    tree = filter_tree(filters)
    if (node_ids is None) == (tree is None):
        raise ValueError("give node_ids or filters, one of them; clear deletes all nodes")
    return tree
