"""Embedders and ranker."""

from __future__ import annotations

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from tercet_client import Client
from tercet_haystack import TercetDocumentEmbedder, TercetRanker, TercetTextEmbedder

DOCUMENTS = [
    Document(id="tea", content="Green tea is brewed with hot water."),
    Document(id="rail", content="A steam train crosses the bridge.", meta={"title": "Railways"}),
]


async def test_embedders_serve_other_stores(url: str, key: str | None, client: Client) -> None:
    embedder = TercetDocumentEmbedder(url, key=key, meta_fields_to_embed=["title"], batch_size=1)
    embedded = embedder.run(DOCUMENTS)["documents"]
    assert (await embedder.run_async(DOCUMENTS))["documents"] == embedded
    assert DOCUMENTS[0].embedding is None
    dense = client.embed("Railways\nA steam train crosses the bridge.", outputs=["dense"]).dense
    assert dense is not None
    assert embedded[1].embedding == pytest.approx(dense[0].tolist(), abs=1e-5)
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(embedded)
    pipeline = Pipeline()
    pipeline.add_component("embedder", TercetTextEmbedder(url, key=key))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    [found] = pipeline.run({"text": "locomotives"})["retriever"]["documents"]
    assert found.id == "rail"
    text = TercetTextEmbedder(url, key=key)
    assert await text.run_async("tea") == text.run("tea")
    assert embedder.run([]) == {"documents": []}
    with pytest.raises(TypeError, match="list of Documents"):
        embedder.run("tea")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="documents go to TercetDocumentEmbedder"):
        text.run(DOCUMENTS)  # type: ignore[arg-type]


async def test_the_ranker_orders_documents_from_anywhere(url: str, key: str | None) -> None:
    ranker = TercetRanker(url, key=key)
    ranked = ranker.run("which train crosses a bridge?", DOCUMENTS)["documents"]
    assert [one.id for one in ranked] == ["rail", "tea"]
    assert ranked[0].score == pytest.approx(sum(ranked[0].meta["tercet"]["scores"].values()), abs=1e-5)
    assert DOCUMENTS[1].meta == {"title": "Railways"}
    assert (await ranker.run_async("which train crosses a bridge?", DOCUMENTS))["documents"] == ranked
    assert [one.id for one in ranker.run("tea", DOCUMENTS, top_k=1)["documents"]] == ["tea"]
    assert ranker.run("tea", []) == {"documents": []}
    plain = TercetRanker(url, key=key, title_key=None, scores=False).run("Railways", DOCUMENTS)["documents"]
    titled = ranker.run("Railways", DOCUMENTS)["documents"]
    assert plain[0].meta in ({}, {"title": "Railways"})
    assert next(one.score for one in titled if one.id == "rail") > next(
        one.score for one in plain if one.id == "rail"
    )


def test_components_are_saved() -> None:
    for component in (TercetTextEmbedder(), TercetDocumentEmbedder(batch_size=7), TercetRanker(top_k=3)):
        saved = component.to_dict()
        assert type(component).from_dict(saved).to_dict() == saved
        assert saved["init_parameters"]["key"]["env_vars"] == ["TERCET_CLIENT_KEY"]
