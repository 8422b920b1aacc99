"""Documents re-ranked by their three-way score with the query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, SecretStr
from tercet_client import ClientPair
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import RerankResponse

from langchain_tercet.documents import SCORES, title_of
from langchain_tercet.embeddings import secret
from langchain_tercet.relevance import relevance_of_scores


class TercetRerank(BaseDocumentCompressor):
    """The top_n best of some documents, from wherever they come, all of them where top_n is None.

    Their metadata gets `relevance_score`, from 0 to 1, and the scores themselves below `tercet`.
    collection: score them as documents of this collection, with its idf and default weights.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, ignored_types=(cached_property,))

    url: str = DEFAULT_URL
    key: SecretStr | None = None
    top_n: int | None = 3
    collection: str | None = None
    weights: dict[str, float] | str | None = None
    adapter: str | None = None
    title_key: str | None = "title"
    timeout: float = 60.0

    @cached_property
    def _clients(self) -> ClientPair:
        return ClientPair(self.url, key=secret(self.key), timeout=self.timeout)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The best documents first."""
        if not documents:
            return []
        answer = self._clients.sync.rerank(query, self._texts(documents), **self._options())
        return _ranked(documents, answer)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The same for an event loop."""
        if not documents:
            return []
        answer = await self._clients.running.rerank(query, self._texts(documents), **self._options())
        return _ranked(documents, answer)

    def _texts(self, documents: Sequence[Document]) -> list[str]:
        titled = ((title_of(one.metadata, self.title_key), one.page_content) for one in documents)
        return [text if title is None else f"{title}\n{text}" for title, text in titled]

    def _options(self) -> dict[str, Any]:
        return {
            "top_k": self.top_n,
            "collection": self.collection,
            "weights": self.weights,
            "adapter": self.adapter,
        }


def _ranked(documents: Sequence[Document], answer: RerankResponse) -> list[Document]:
    ranked = []
    for result in answer["results"]:
        document = documents[result["index"]]
        scores = {"score": result["score"], "scores": result["scores"]}
        more = {"relevance_score": relevance_of_scores(result["scores"]), SCORES: scores}
        ranked.append(document.model_copy(update={"metadata": {**document.metadata, **more}}))
    return ranked
