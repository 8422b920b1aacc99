"""Nodes by their three-way score with the query."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from tercet_client import ClientPair
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import RerankResponse

__all__ = ["TercetRerank"]

dispatcher = get_dispatcher(__name__)


class TercetRerank(BaseNodePostprocessor):
    """The top_n best of some nodes, from whatever retriever, each with its score: more is better."""

    url: str = DEFAULT_URL
    top_n: int = Field(5, description="Nodes that are kept.")
    collection: str | None = Field(
        None, description="Score them as documents of this collection, with its idf and default weights."
    )
    weights: dict[str, float] | str | None = Field(None, description="Of the scores in the sum.")
    adapter: str | None = Field(None, description="Of the encoder.")
    timeout: float = Field(60.0, description="Seconds of one attempt.")
    _clients: ClientPair = PrivateAttr()

    def __init__(self, url: str = DEFAULT_URL, *, key: str | None = None, **kwargs: Any) -> None:
        """key: where the server needs one; it is saved nowhere."""
        super().__init__(url=url, **kwargs)
        self._clients = ClientPair(url, key=key, timeout=self.timeout)

    @classmethod
    def class_name(cls) -> str:
        """Of a saved reranker."""
        return "TercetRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._begun(nodes, query_bundle)
        if not nodes:
            return []
        return self._ranked(nodes, self._clients.sync.rerank(query, _texts(nodes), **self._options()))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._begun(nodes, query_bundle)
        if not nodes:
            return []
        answer = await self._clients.running.rerank(query, _texts(nodes), **self._options())
        return self._ranked(nodes, answer)

    def _begun(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> str:
        if query_bundle is None:
            raise ValueError("a reranker needs the query: give query_bundle or query_str")
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=self.top_n, model_name="tercet")
        )
        return query_bundle.query_str

    def _options(self) -> dict[str, Any]:
        return {
            "top_k": self.top_n,
            "collection": self.collection,
            "weights": self.weights,
            "adapter": self.adapter,
        }

    def _ranked(self, nodes: list[NodeWithScore], answer: RerankResponse) -> list[NodeWithScore]:
        ranked = [
            NodeWithScore(node=nodes[result["index"]].node, score=result["score"])
            for result in answer["results"]
        ]
        dispatcher.event(ReRankEndEvent(nodes=ranked))
        return ranked


def _texts(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.get_content(MetadataMode.EMBED) for node in nodes]
