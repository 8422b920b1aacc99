"""Dense vectors of a Tercet server, for document stores of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret
from tercet_client import ClientPair, dense_vectors, dense_vectors_async
from tercet_client.connection import DEFAULT_URL

from tercet_haystack.keys import as_secret, default_key, value_of


@component
class TercetTextEmbedder:
    """The dense vector of a query."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: Secret | str | None = default_key(),  # noqa: B008 - a secret names a variable, and is not changed
        adapter: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        """adapter: of the encoder; timeout: seconds of one attempt."""
        self.url, self.key, self.adapter, self.timeout = url, as_secret(key), adapter, timeout
        self._pair: ClientPair | None = None

    def to_dict(self) -> dict[str, Any]:
        """For a saved pipeline."""
        return default_to_dict(self, url=self.url, key=self.key, adapter=self.adapter, timeout=self.timeout)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TercetTextEmbedder:
        """From a saved pipeline."""
        return default_from_dict(cls, data)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """The vector. Raises TypeError for what is no text."""
        _check_text(text)
        found = dense_vectors(self._clients.sync, [text], input_type="query", adapter=self.adapter)
        return {"embedding": found[0].tolist()}

    @component.output_types(embedding=list[float])
    async def run_async(self, text: str) -> dict[str, list[float]]:
        """The same for an event loop."""
        _check_text(text)
        client = self._clients.running
        found = await dense_vectors_async(client, [text], input_type="query", adapter=self.adapter)
        return {"embedding": found[0].tolist()}

    @property
    def _clients(self) -> ClientPair:
        if self._pair is None:
            self._pair = ClientPair(self.url, key=value_of(self.key), timeout=self.timeout)
        return self._pair


@component
class TercetDocumentEmbedder:
    """Documents with their dense vectors. A TercetDocumentStore needs none: its server encodes texts."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: Secret | str | None = default_key(),  # noqa: B008 - a secret names a variable, and is not changed
        adapter: str | None = None,
        meta_fields_to_embed: list[str] | None = None,
        embedding_separator: str = "\n",
        batch_size: int = 100,
        timeout: float = 60.0,
    ) -> None:
        """meta_fields_to_embed: of the meta, encoded before the content; batch_size: texts of a request."""
        self.url, self.key, self.adapter, self.timeout = url, as_secret(key), adapter, timeout
        self.meta_fields_to_embed, self.embedding_separator = meta_fields_to_embed, embedding_separator
        self.batch_size = batch_size
        self._pair: ClientPair | None = None

    def to_dict(self) -> dict[str, Any]:
        """For a saved pipeline."""
        return default_to_dict(
            self,
            url=self.url,
            key=self.key,
            adapter=self.adapter,
            meta_fields_to_embed=self.meta_fields_to_embed,
            embedding_separator=self.embedding_separator,
            batch_size=self.batch_size,
            timeout=self.timeout,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TercetDocumentEmbedder:
        """From a saved pipeline."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Copies of the documents with embeddings. Raises TypeError for what is no list of documents."""
        texts = self._texts(documents)
        found = dense_vectors(self._clients.sync, texts, adapter=self.adapter, batch=self.batch_size)
        return {"documents": _embedded(documents, found.tolist())}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """The same for an event loop."""
        texts, client = self._texts(documents), self._clients.running
        found = await dense_vectors_async(client, texts, adapter=self.adapter, batch=self.batch_size)
        return {"documents": _embedded(documents, found.tolist())}

    def _texts(self, documents: list[Document]) -> list[str]:
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise TypeError(f"TercetDocumentEmbedder takes a list of Documents, not {documents!r:.200}")
        return [self.embedding_separator.join([*self._meta(one), one.content or ""]) for one in documents]

    def _meta(self, document: Document) -> list[str]:
        names = self.meta_fields_to_embed or []
        return [str(document.meta[name]) for name in names if document.meta.get(name) is not None]

    @property
    def _clients(self) -> ClientPair:
        if self._pair is None:
            self._pair = ClientPair(self.url, key=value_of(self.key), timeout=self.timeout)
        return self._pair


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(
            f"TercetTextEmbedder takes a text, not {text!r:.200}; documents go to TercetDocumentEmbedder"
        )


def _embedded(documents: list[Document], vectors: list[list[float]]) -> list[Document]:
    return [replace(one, embedding=vector) for one, vector in zip(documents, vectors, strict=True)]
