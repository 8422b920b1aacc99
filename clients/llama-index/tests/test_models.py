"""Embedding and reranker."""

from __future__ import annotations

import numpy as np
import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.tercet import TercetEmbedding
from llama_index.postprocessor.tercet import TercetRerank
from tercet_client import ApiError, Client

TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."]


async def test_embeddings_serve_other_stores(url: str, key: str | None, client: Client) -> None:
    embedding = TercetEmbedding(url, key=key)
    dense = client.embed(TEXTS, outputs=["dense"]).dense
    assert dense is not None
    assert np.allclose(embedding.get_text_embedding_batch(TEXTS), dense, atol=1e-5)
    assert np.allclose(await embedding.aget_text_embedding_batch(TEXTS), dense, atol=1e-5)
    assert np.allclose(await embedding.aget_text_embedding(TEXTS[0]), embedding.get_text_embedding(TEXTS[0]))
    assert np.allclose(await embedding.aget_query_embedding("tea"), embedding.get_query_embedding("tea"))
    index = VectorStoreIndex.from_documents([Document(text=text) for text in TEXTS], embed_model=embedding)
    assert index.as_retriever(similarity_top_k=1).retrieve("locomotives")[0].text == TEXTS[1]
    assert key is None or key not in embedding.to_json()


async def test_nodes_are_ranked(url: str, key: str | None) -> None:
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in TEXTS]
    rerank = TercetRerank(url, key=key)
    ranked = rerank.postprocess_nodes(nodes, query_str="which train crosses a bridge?")
    assert [node.text for node in ranked] == TEXTS[::-1]
    assert (ranked[0].score or 0) > (ranked[1].score or 0)
    assert [node.score for node in nodes] == [0.5, 0.5]
    assert await rerank.apostprocess_nodes(nodes, query_str="which train crosses a bridge?") == ranked
    [best] = TercetRerank(url, key=key, top_n=1).postprocess_nodes(nodes, query_str="tea")
    assert best.text == TEXTS[0]
    assert rerank.postprocess_nodes([], query_str="tea") == []
    with pytest.raises(ValueError, match="needs the query"):
        rerank.postprocess_nodes(nodes)
    with pytest.raises(ApiError, match="no-such"):
        TercetRerank(url, key=key, collection="no-such").postprocess_nodes(nodes, query_str="tea")
