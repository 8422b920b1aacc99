"""The dense vectors of a Tercet server as LlamaIndex's embedding."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from tercet_client import ClientPair, dense_vectors, dense_vectors_async
from tercet_client.connection import DEFAULT_URL

__all__ = ["TercetEmbedding"]


class TercetEmbedding(BaseEmbedding):
    """Dense vectors of unit length, for vector stores of others; TercetVectorStore needs none."""

    url: str = DEFAULT_URL
    adapter: str | None = Field(None, description="Of the encoder.")
    timeout: float = Field(60.0, description="Seconds of one attempt.")
    _clients: ClientPair = PrivateAttr()

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        adapter: str | None = None,
        timeout: float = 60.0,
        model_name: str = "tercet",
        embed_batch_size: int = 100,
        **kwargs: Any,
    ) -> None:
        """key: where the server needs one; it is saved nowhere."""
        super().__init__(
            url=url,
            adapter=adapter,
            timeout=timeout,
            model_name=model_name,
            embed_batch_size=embed_batch_size,
            **kwargs,
        )
        self._clients = ClientPair(url, key=key, timeout=timeout)

    @classmethod
    def class_name(cls) -> str:
        """Of a saved embedding."""
        return "TercetEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        found = dense_vectors(self._clients.sync, [query], input_type="query", adapter=self.adapter)
        vector: list[float] = found[0].tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        client = self._clients.running
        found = await dense_vectors_async(client, [query], input_type="query", adapter=self.adapter)
        vector: list[float] = found[0].tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = dense_vectors(self._clients.sync, texts, adapter=self.adapter).tolist()
        return vectors

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        found = await dense_vectors_async(self._clients.running, texts, adapter=self.adapter)
        vectors: list[list[float]] = found.tolist()
        return vectors
