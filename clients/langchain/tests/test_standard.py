"""LangChain's own suites."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tercet import TercetEmbeddings, TercetRetriever, TercetVectorStore
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from tercet_client import Client


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, url: str, key: str | None, collection: str) -> VectorStore:
        return TercetVectorStore(url=url, collection=collection, key=key)


class TestEmbeddings(EmbeddingsIntegrationTests):
    @pytest.fixture(autouse=True)
    def server(self, url: str, key: str | None) -> None:
        self.params = {"url": url, "key": key}

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return TercetEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return self.params


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def documents(self, url: str, key: str | None, client: Client, collection: str) -> None:
        client.create_collection(collection)
        client.put_documents(collection, [{"id": f"d{n}", "text": f"Tea number {n}."} for n in range(5)])
        self.params = {"url": url, "key": key, "collection": collection}

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return TercetRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.params

    @property
    def retriever_query_example(self) -> str:
        return "tea"
