"""A collection of a Tercet server as LangChain's vector store."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from pydantic import SecretStr
from tercet_client import (
    ClientPair,
    NotFoundError,
    delete_by_id,
    delete_by_id_async,
    documents_by_id,
    documents_by_id_async,
    open_collection,
    open_collection_async,
    passage,
    upsert,
    upsert_async,
)
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import (
    CollectionRequest,
    CollectionResponse,
    DocumentRequest,
    Filter,
    SearchResponse,
)

from langchain_tercet.documents import from_tercet, to_tercet, with_ids
from langchain_tercet.embeddings import TercetEmbeddings, secret
from langchain_tercet.filters import filter_tree
from langchain_tercet.relevance import relevance_of_sum

Scored = list[tuple[Document, float]]


class TercetVectorStore(VectorStore):
    """Hybrid search over a collection: every hit's score is the sum of its dense, lexical and ColBERT scores.

    The server encodes texts and queries; no embeddings are given. The collection is made where it is missing,
    when it is first used. Searches take, beside `k`, `filter` and `scores`, what the client's `search` takes:
    `weights`, `candidates`, `explain`, `search_options`. Methods raise what `tercet_client` raises.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        collection: str,
        key: str | SecretStr | None = None,
        settings: CollectionRequest | None = None,
        title_key: str | None = "title",
        timeout: float = 60.0,
    ) -> None:
        """settings: of the collection if it is made here, such as `{"fields": {"year": "integer"}}`, the
        fields that filters work on; one that exists must agree with them. title_key: where the metadata has
        a title, which is encoded before the text; None for none.
        """
        self._clients = ClientPair(url, key=secret(key), timeout=timeout)
        self._url, self._key, self._timeout = url, key, timeout
        self._name, self._settings, self._title_key = collection, settings, title_key
        self._described: CollectionResponse | None = None

    @property
    def embeddings(self) -> Embeddings:
        """The server's dense vectors. The store itself needs no embeddings."""
        adapter = None if self._described is None else self._described["adapter"]
        return TercetEmbeddings(self._url, key=self._key, adapter=adapter, timeout=self._timeout)

    @property
    def clients(self) -> ClientPair:
        """The clients of the server, for what LangChain has no method for."""
        return self._clients

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A store with these texts; kwargs are those of the constructor. embedding: is not used."""
        store = cls(**kwargs)
        _warn_of(embedding)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """The same for an event loop."""
        store = cls(**kwargs)
        _warn_of(embedding)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    # Documents

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As add_documents, of texts and as many metadatas."""
        return self.add_documents(_documents(texts, metadatas), ids=ids, **kwargs)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """The same for an event loop."""
        return await self.aadd_documents(_documents(texts, metadatas), ids=ids, **kwargs)

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Adds documents, or replaces those of the same ids; on the server's disk once this returns.

        kwargs: `batch`, `in_flight` and `progress` of `tercet_client.upsert`. Each request is written as a
        whole or not at all; where one fails, those before it stay.
        """
        named, requests = self._requests(documents, ids)
        self._open()
        upsert(self._clients.sync, self._name, requests, **kwargs)
        return named

    async def aadd_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """The same for an event loop."""
        named, requests = self._requests(documents, ids)
        await self._open_async()
        await upsert_async(self._clients.running, self._name, requests, **kwargs)
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Deletes documents by their ids, or with `filter` those that match, or without both all of them.

        Ids that are not there are no error. True once the deletion is on the server's disk.
        """
        filter, client = _filter_of_deletion(ids, kwargs), self._clients.sync
        self._open()
        if filter is not None:
            client.delete_documents(self._name, filter=filter)
            return True
        if ids is None:
            ids = [document["id"] for document in client.documents(self._name)]
        delete_by_id(client, self._name, ids)
        return True

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """The same for an event loop."""
        filter, client = _filter_of_deletion(ids, kwargs), self._clients.running
        await self._open_async()
        if filter is not None:
            await client.delete_documents(self._name, filter=filter)
            return True
        if ids is None:
            ids = [document["id"] async for document in client.documents(self._name)]
        await delete_by_id_async(client, self._name, ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Those of the documents that are there, in the order of the ids."""
        self._open()
        found = documents_by_id(self._clients.sync, self._name, ids)
        return [from_tercet(document, self._title_key) for document in found.values()]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The same for an event loop."""
        await self._open_async()
        found = await documents_by_id_async(self._clients.running, self._name, ids)
        return [from_tercet(document, self._title_key) for document in found.values()]

    def delete_collection(self) -> None:
        """Deletes the collection with all documents; the next use makes an empty one."""
        with contextlib.suppress(NotFoundError):
            self._clients.sync.delete_collection(self._name)
        self._described = None

    # Searches

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The k best documents. `scores=True` puts their scores into their metadata, below `tercet`."""
        scores = kwargs.pop("scores", False)
        return self._found(self._search(query, k, kwargs), scores=scores)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The same for an event loop."""
        scores = kwargs.pop("scores", False)
        return self._found(await self._search_async(query, k, kwargs), scores=scores)

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        """The k best documents, each with its weighted sum; more is better, without a limit above."""
        scores = kwargs.pop("scores", False)
        return self._scored(self._search(query, k, kwargs), scores=scores)

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        """The same for an event loop."""
        scores = kwargs.pop("scores", False)
        return self._scored(await self._search_async(query, k, kwargs), scores=scores)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """The k documents with the nearest dense vectors, of the server's encoder, by that side alone."""
        scores = kwargs.pop("scores", False)
        return self._found(self._search(*_dense_alone(embedding, k, kwargs)), scores=scores)

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """The same for an event loop."""
        scores = kwargs.pop("scores", False)
        return self._found(await self._search_async(*_dense_alone(embedding, k, kwargs)), scores=scores)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """k of the fetch_k best documents, chosen by their dense vectors to be relevant and diverse.

        The texts of the fetch_k documents, or in a collection with windows their best passages, are encoded
        for it. lambda_mult: 0 for the most diverse, 1 for the most relevant.
        """
        scores = kwargs.pop("scores", False)
        answer = self._search(query, fetch_k, kwargs)
        vectors = self.embeddings.embed_documents(self._passages(answer))
        chosen = _diverse(self.embeddings.embed_query(query), vectors, k, lambda_mult)
        return self._found(answer, scores=scores, chosen=chosen)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The same for an event loop."""
        scores = kwargs.pop("scores", False)
        answer = await self._search_async(query, fetch_k, kwargs)
        vectors = await self.embeddings.aembed_documents(self._passages(answer))
        chosen = _diverse(await self.embeddings.aembed_query(query), vectors, k, lambda_mult)
        return self._found(answer, scores=scores, chosen=chosen)

    def _similarity_search_with_relevance_scores(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        """With relevance from 0 to 1, which grows with the score."""
        scores = kwargs.pop("scores", False)
        return self._relevant(self._search(query, k, kwargs), scores=scores)

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> Scored:
        scores = kwargs.pop("scores", False)
        return self._relevant(await self._search_async(query, k, kwargs), scores=scores)

    # What they share

    def _open(self) -> None:
        if self._described is None:
            self._described = open_collection(self._clients.sync, self._name, self._settings)

    async def _open_async(self) -> None:
        if self._described is None:
            self._described = await open_collection_async(self._clients.running, self._name, self._settings)

    def _requests(
        self, documents: Iterable[Document], ids: Sequence[str | None] | None
    ) -> tuple[list[str], list[DocumentRequest]]:
        named = with_ids(documents, ids)
        return [id for id, _ in named], [to_tercet(id, one, self._title_key) for id, one in named]

    def _search(self, query: Any, k: int, options: Mapping[str, Any]) -> SearchResponse:
        self._open()
        return self._clients.sync.search(self._name, query, top_k=k, **_translated(options))

    async def _search_async(self, query: Any, k: int, options: Mapping[str, Any]) -> SearchResponse:
        await self._open_async()
        return await self._clients.running.search(self._name, query, top_k=k, **_translated(options))

    def _found(
        self, answer: SearchResponse, *, scores: bool, chosen: Sequence[int] | None = None
    ) -> list[Document]:
        hits = answer["hits"] if chosen is None else [answer["hits"][place] for place in chosen]
        return [from_tercet(hit, self._title_key, scores=scores) for hit in hits]

    def _scored(self, answer: SearchResponse, *, scores: bool) -> Scored:
        found = self._found(answer, scores=scores)
        return [(document, hit["score"]) for document, hit in zip(found, answer["hits"], strict=True)]

    def _relevant(self, answer: SearchResponse, *, scores: bool) -> Scored:
        weights = answer["weights"]
        return [
            (document, relevance_of_sum(score, weights))
            for document, score in self._scored(answer, scores=scores)
        ]

    def _passages(self, answer: SearchResponse) -> list[str]:
        return [passage(hit) for hit in answer["hits"]]


def _diverse(query: list[float], vectors: list[list[float]], k: int, lambda_mult: float) -> list[int]:
    if not vectors:
        return []
    return maximal_marginal_relevance(np.asarray(query, np.float32), vectors, lambda_mult, k)


def _dense_alone(
    vector: list[float], k: int, options: Mapping[str, Any]
) -> tuple[Any, int, Mapping[str, Any]]:
    alone = {"weights": {"dense": 1, "sparse": 0, "colbert": 0}, "candidates": {"sparse": 0}}
    return {"dense": list(vector)}, k, {**options, **alone}


def _translated(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "filter": filter_tree(options.get("filter"))}


def _filter_of_deletion(ids: list[str] | None, options: Mapping[str, Any]) -> Filter | None:
    """Raises ValueError for an empty filter, which is more likely a mistake than a wish to delete all."""
    if "filter" not in options:
        return None
    filter = filter_tree(options["filter"])
    if filter is None or ids is not None:
        raise ValueError("give ids, or a filter with a condition, or neither to delete all documents")
    return filter


def _documents(texts: Iterable[str], metadatas: list[dict[str, Any]] | None) -> list[Document]:
    listed = list(texts)
    if metadatas is not None and len(metadatas) != len(listed):
        raise ValueError(f"there are {len(listed)} texts and {len(metadatas)} metadatas; give one for each")
    return [
        Document(page_content=text, metadata=metadata)
        for text, metadata in zip(listed, metadatas or [{} for _ in listed], strict=True)
    ]


def _warn_of(embedding: Embeddings | None) -> None:
    if embedding is not None and not isinstance(embedding, TercetEmbeddings):
        warnings.warn(
            f"the Tercet server encodes texts itself; {type(embedding).__name__} is not used: "
            "leave `embedding` out",
            stacklevel=3,
        )
