"""Documents for a query, by all three scores."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack.document_stores.types.filter_policy import apply_filter_policy

from tercet_haystack.document_store import TercetDocumentStore


@component
class TercetRetriever:
    """The best documents of a TercetDocumentStore. The query is text: no embedder goes before it."""

    def __init__(
        self,
        document_store: TercetDocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        weights: dict[str, float] | str | None = None,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
        scores: bool = True,
        explain: bool = False,
    ) -> None:
        """weights: of the scores in the sum, by default the collection's; scores: put them into
        `meta["tercet"]`; explain: with the terms and tokens that they come from.
        """
        if not isinstance(document_store, TercetDocumentStore):
            raise ValueError(f"document_store is {type(document_store).__name__}; give a TercetDocumentStore")
        self.document_store, self.filters, self.top_k = document_store, filters, top_k
        self.weights, self.filter_policy = weights, filter_policy
        self.scores, self.explain = scores, explain

    def to_dict(self) -> dict[str, Any]:
        """For a saved pipeline."""
        return default_to_dict(
            self,
            document_store=self.document_store,
            filters=self.filters,
            top_k=self.top_k,
            weights=self.weights,
            filter_policy=self.filter_policy.value,
            scores=self.scores,
            explain=self.explain,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TercetRetriever:
        """From a saved pipeline."""
        parameters = data.get("init_parameters", {})
        if "filter_policy" in parameters:
            parameters["filter_policy"] = FilterPolicy.from_str(parameters["filter_policy"])
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        weights: dict[str, float] | str | None = None,
    ) -> dict[str, list[Document]]:
        """The best documents first."""
        options = self._options(filters, top_k, weights)
        return {"documents": self.document_store.search(query, **options)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        weights: dict[str, float] | str | None = None,
    ) -> dict[str, list[Document]]:
        """The same for an event loop."""
        options = self._options(filters, top_k, weights)
        return {"documents": await self.document_store.search_async(query, **options)}

    def _options(
        self, filters: dict[str, Any] | None, top_k: int | None, weights: dict[str, float] | str | None
    ) -> dict[str, Any]:
        return {
            "filters": apply_filter_policy(self.filter_policy, self.filters, filters),
            "top_k": self.top_k if top_k is None else top_k,
            "weights": self.weights if weights is None else weights,
            "scores": self.scores,
            "explain": self.explain,
        }
