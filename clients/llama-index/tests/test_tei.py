"""LlamaIndex's own clients of Text Embeddings Inference, unchanged, against /tei."""

from __future__ import annotations

import numpy as np
import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference as Rerank
from tercet_client import Client

TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."]


@pytest.fixture
def embedding(url: str, key: str | None) -> TextEmbeddingsInference:
    return TextEmbeddingsInference(
        model_name="tercet", base_url=f"{url}/tei", auth_token=key, query_instruction="", text_instruction=""
    )


async def test_embeddings_are_those_of_embed(embedding: TextEmbeddingsInference, client: Client) -> None:
    dense = client.embed(TEXTS, outputs=["dense"]).dense
    assert dense is not None
    assert np.allclose(embedding.get_text_embedding_batch(TEXTS), dense, atol=1e-5)
    assert np.allclose(await embedding.aget_text_embedding_batch(TEXTS), dense, atol=1e-5)
    assert np.allclose(embedding.get_text_embedding(TEXTS[1]), dense[1], atol=1e-3)
    query = embedding.get_query_embedding("tea")
    assert np.allclose(query, await embedding.aget_query_embedding("tea"), atol=1e-5)
    assert np.argmax(dense @ query) == 0


def test_nodes_are_ranked(url: str, key: str | None) -> None:
    token = None if key is None else f"Bearer {key}"  # this client sends it as it is
    rerank = Rerank(top_n=1, base_url=f"{url}/tei", auth_token=token)
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.0) for text in TEXTS]
    [best] = rerank.postprocess_nodes(nodes, query_str="which train crosses a bridge?")
    assert best.text == TEXTS[1]
    assert 0 < (best.score or 0) < 1
