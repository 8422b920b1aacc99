"""Documents by their three-way score with a query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret
from tercet_client import ClientPair
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import RerankResponse

from tercet_haystack.documents import SCORES
from tercet_haystack.keys import as_secret, default_key, value_of


@component
class TercetRanker:
    """The best of some documents first, from whatever retriever, each with its score."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: Secret | str | None = default_key(),  # noqa: B008 - a secret names a variable, and is not changed
        top_k: int = 10,
        collection: str | None = None,
        weights: dict[str, float] | str | None = None,
        adapter: str | None = None,
        title_key: str | None = "title",
        scores: bool = True,
        timeout: float = 60.0,
    ) -> None:
        """collection: score them as documents of this collection, with its idf and default weights.
        scores: put the three scores into `meta["tercet"]`.
        """
        self.url, self.key, self.top_k, self.collection = url, as_secret(key), top_k, collection
        self.weights, self.adapter, self.title_key = weights, adapter, title_key
        self.scores, self.timeout = scores, timeout
        self._pair: ClientPair | None = None

    def to_dict(self) -> dict[str, Any]:
        """For a saved pipeline."""
        names = ("url", "key", "top_k", "collection", "weights", "adapter", "title_key", "scores", "timeout")
        return default_to_dict(self, **{name: getattr(self, name) for name in names})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TercetRanker:
        """From a saved pipeline."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Copies of the top_k best documents, the best first."""
        if not documents:
            return {"documents": []}
        answer = self._clients.sync.rerank(query, self._texts(documents), **self._options(top_k))
        return {"documents": self._ranked(documents, answer)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The same for an event loop."""
        if not documents:
            return {"documents": []}
        answer = await self._clients.running.rerank(query, self._texts(documents), **self._options(top_k))
        return {"documents": self._ranked(documents, answer)}

    def _texts(self, documents: list[Document]) -> list[str]:
        titled = ((one.meta.get(self.title_key or ""), one.content or "") for one in documents)
        return [f"{title}\n{text}" if isinstance(title, str) else text for title, text in titled]

    def _options(self, top_k: int | None) -> dict[str, Any]:
        return {
            "top_k": self.top_k if top_k is None else top_k,
            "collection": self.collection,
            "weights": self.weights,
            "adapter": self.adapter,
        }

    def _ranked(self, documents: list[Document], answer: RerankResponse) -> list[Document]:
        ranked = []
        for result in answer["results"]:
            document = documents[result["index"]]
            more = {SCORES: {"scores": result["scores"]}} if self.scores else {}
            ranked.append(replace(document, score=result["score"], meta={**document.meta, **more}))
        return ranked

    @property
    def _clients(self) -> ClientPair:
        if self._pair is None:
            self._pair = ClientPair(self.url, key=value_of(self.key), timeout=self.timeout)
        return self._pair
