"""A retriever over a collection, with the scores of every hit."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, SecretStr
from tercet_client.connection import DEFAULT_URL

from langchain_tercet.vectorstore import TercetVectorStore


class TercetRetriever(BaseRetriever):
    """The k best documents of a collection. Their metadata has their scores, below `tercet`.

    `invoke` takes the same options as TercetVectorStore.similarity_search, for one search.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, ignored_types=(cached_property,))

    url: str = DEFAULT_URL
    collection: str
    key: SecretStr | None = None
    k: int = 4
    filter: dict[str, Any] | None = None
    weights: dict[str, float] | str | None = None
    explain: bool = False
    scores: bool = True
    title_key: str | None = "title"
    timeout: float = Field(60.0, description="Seconds of one attempt.")

    @cached_property
    def _store(self) -> TercetVectorStore:
        return TercetVectorStore(
            self.url,
            collection=self.collection,
            key=self.key,
            title_key=self.title_key,
            timeout=self.timeout,
        )

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        names = ("k", "filter", "weights", "explain", "scores")
        return {**{name: getattr(self, name) for name in names}, **given}

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return self._store.similarity_search(query, **self._options(kwargs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await self._store.asimilarity_search(query, **self._options(kwargs))
