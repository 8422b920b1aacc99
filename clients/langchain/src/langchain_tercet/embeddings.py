"""The dense vectors of a Tercet server as LangChain's embeddings."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr
from tercet_client import ClientPair, dense_vectors, dense_vectors_async
from tercet_client.connection import DEFAULT_URL


class TercetEmbeddings(Embeddings):
    """Dense vectors of unit length, one text or many, in as many requests as the server's limits ask for."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | SecretStr | None = None,
        adapter: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        """key: where the server needs one; adapter: of the encoder; timeout: seconds of one attempt."""
        self._clients = ClientPair(url, key=secret(key), timeout=timeout)
        self._adapter = adapter

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text. Raises what `tercet_client` raises."""
        vectors: list[list[float]] = dense_vectors(self._clients.sync, texts, adapter=self._adapter).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        vectors = dense_vectors(self._clients.sync, [text], input_type="query", adapter=self._adapter)
        vector: list[float] = vectors[0].tolist()
        return vector

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        found = await dense_vectors_async(self._clients.running, texts, adapter=self._adapter)
        vectors: list[list[float]] = found.tolist()
        return vectors

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        client = self._clients.running
        vectors = await dense_vectors_async(client, [text], input_type="query", adapter=self._adapter)
        vector: list[float] = vectors[0].tolist()
        return vector


def secret(key: str | SecretStr | None) -> str | None:
    """The key itself."""
    return key.get_secret_value() if isinstance(key, SecretStr) else key
