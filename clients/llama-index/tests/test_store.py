"""The vector store: as LlamaIndex's indexes use it, and every method by itself."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.tercet import TercetVectorStore
from tercet_client import ApiError, Client, ConflictError, ConnectionFailedError

SETTINGS = {"fields": {"year": "integer", "tags": "keyword", "lang": "keyword"}}
NODES = [
    TextNode(
        id_="tea",
        text="Green tea is brewed with hot water.",
        metadata={"year": 2001, "lang": "en", "tags": ["drink", "hot"]},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="kitchen")},
    ),
    TextNode(
        id_="black",
        text="Black tea is brewed with boiling water.",
        metadata={"year": 2002, "lang": "en", "tags": ["drink"]},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="kitchen")},
    ),
    TextNode(
        id_="rail",
        text="A steam train crosses the bridge.",
        metadata={"year": 1830, "lang": "de"},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="railway")},
        excluded_embed_metadata_keys=["year", "lang"],
    ),
]


@pytest.fixture
def store(url: str, key: str | None, collection: str) -> TercetVectorStore:
    store = TercetVectorStore(url, collection=collection, key=key, settings=SETTINGS, scores=False)
    assert store.add(NODES) == ["tea", "black", "rail"]
    return store


def ask(store: TercetVectorStore, text: str | None = "tea", **options: Any) -> list[str]:
    options.setdefault("similarity_top_k", 5)
    query = VectorStoreQuery(query_str=text, **options)
    found = store.query(query)
    assert asyncio.run(store.aquery(query)) == found
    return found.ids or []


def where(*filters: MetadataFilter | MetadataFilters, condition: str = "and") -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=FilterCondition(condition))


def field(name: str, value: Any, operator: str = "==") -> MetadataFilter:
    return MetadataFilter(key=name, value=value, operator=FilterOperator(operator))


def test_it_is_a_vector_store(store: TercetVectorStore, key: str | None) -> None:
    assert isinstance(store, BasePydanticVectorStore)
    assert store.stores_text
    assert not store.is_embedding_query
    assert key is None or key not in store.to_json()
    assert TercetVectorStore.class_name() == "TercetVectorStore"


def test_nodes_come_back_whole(store: TercetVectorStore, client: Client) -> None:
    found = {node.node_id: node for node in store.get_nodes()}
    assert found == {node.node_id: node for node in NODES}
    assert store.get_nodes(["rail", "none", "tea"]) == [NODES[2], NODES[0]]
    result = store.query(VectorStoreQuery(query_str="steam train", similarity_top_k=1))
    assert isinstance(result, VectorStoreQueryResult)
    assert list(result.nodes or []) == [NODES[2]]
    assert client.document(store.collection, "rail")["title"] is None
    assert client.document(store.collection, "tea")["title"] == NODES[0].get_metadata_str(MetadataMode.EMBED)
    others = [
        IndexNode(id_="index", text="x", index_id="i"),
        ImageNode(id_="image", text="x", image_url="http://example.org/x.png"),
    ]
    store.add(others)
    assert store.get_nodes(["index", "image"]) == others


def test_scores_are_in_the_metadata_and_not_in_prompts(
    store: TercetVectorStore, url: str, key: str | None
) -> None:
    told = TercetVectorStore(url, collection=store.collection, key=key)
    query = VectorStoreQuery(query_str="tea", similarity_top_k=1)
    result = told.query(query, explain=True)
    [node] = result.nodes or []
    scores = node.metadata["tercet"]
    assert (result.similarities or [])[0] == pytest.approx(sum(scores["scores"].values()), abs=1e-6)
    assert "explanation" in scores
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "tercet" not in node.get_content(mode)
    lexical = told.query(query, weights={"dense": 0, "sparse": 1, "colbert": 0})
    [node] = lexical.nodes or []
    assert lexical.similarities == [pytest.approx(node.metadata["tercet"]["scores"]["sparse"], abs=1e-6)]


def test_filters(store: TercetVectorStore) -> None:
    for filters, expected in (
        (where(field("lang", "en")), {"tea", "black"}),
        (where(field("lang", "en", "!=")), {"rail"}),
        (where(field("year", 2001, ">"), field("lang", "en")), {"black"}),
        (where(field("year", 2001, ">=")), {"tea", "black"}),
        (where(field("year", 2001, "<")), {"rail"}),
        (where(field("year", 2001, "<=")), {"tea", "rail"}),
        (where(field("year", [1830, 2001], "in")), {"rail", "tea"}),
        (where(field("year", [1830, 2001], "nin")), {"black"}),
        (where(field("tags", ["hot", "cold"], "any")), {"tea"}),
        (where(field("tags", ["hot", "drink"], "all")), {"tea"}),
        (where(field("tags", "drink", "contains")), {"tea", "black"}),
        (where(field("tags", None, "is_empty")), {"rail"}),
        (where(field("tags", None, "!=")), {"tea", "black"}),
        (where(field("lang", "de"), field("year", 2001), condition="or"), {"rail", "tea"}),
        (where(field("lang", "de"), field("year", 2001), condition="not"), {"black"}),
        (
            where(where(field("year", 2001), field("year", 2002), condition="or"), field("tags", "hot")),
            {"tea"},
        ),
    ):
        assert set(ask(store, filters=filters)) == expected, filters
        assert {node.node_id for node in store.get_nodes(filters=filters)} == expected
    assert set(ask(store, doc_ids=["railway"])) == {"rail"}
    assert ask(store, doc_ids=["kitchen"], filters=where(field("year", 2002))) == ["black"]
    for wrong, error, message in (
        ({"filters": where(field("town", "x"))}, ApiError, "'town' is not declared"),
        ({"filters": where(field("lang", "x", "text_match"))}, ValueError, "no filter 'text_match'"),
        ({"filters": where(field("year", 1, "in"))}, ValueError, "takes a list"),
        ({"filters": where(field("lang", [], "all"))}, ValueError, "no filter 'all'"),
        ({"node_ids": ["tea"]}, ValueError, "node_ids"),
    ):
        with pytest.raises(error, match=message):
            store.query(VectorStoreQuery(query_str="tea", **wrong))  # type: ignore[arg-type]


def test_query_modes(store: TercetVectorStore, client: Client) -> None:
    mode = VectorStoreQueryMode
    assert ask(store, "train", similarity_top_k=1) == ["rail"]
    assert ask(store, "boiling", mode=mode.SPARSE, similarity_top_k=1) == ["black"]
    assert ask(store, "boiling", mode=mode.TEXT_SEARCH, sparse_top_k=1) == ["black"]
    dense = store.query(VectorStoreQuery(query_str="tea", mode=mode.HYBRID, alpha=1.0, hybrid_top_k=1))
    assert len(dense.ids or []) == 1
    told = client.search(store.collection, "tea", top_k=1, weights={"dense": 1, "sparse": 0, "colbert": 1})
    assert dense.similarities == [told["hits"][0]["score"]]
    vector = client.embed("train", input_type="query", outputs=["dense"]).dense
    assert vector is not None
    assert ask(store, None, query_embedding=vector[0].tolist(), similarity_top_k=1) == ["rail"]
    for options, message in (
        ({"mode": mode.SVM}, "no query mode 'svm'"),
        ({}, "needs query_str"),
        ({"mode": mode.SPARSE, "query_embedding": [1.0]}, "needs query_str"),
    ):
        text = "tea" if options.get("mode") == mode.SVM else None
        with pytest.raises(ValueError, match=message):
            store.query(VectorStoreQuery(query_str=text, **options))  # type: ignore[arg-type]


def test_mmr_is_diverse(store: TercetVectorStore) -> None:
    options: dict[str, Any] = {"mode": VectorStoreQueryMode.MMR, "similarity_top_k": 2}
    text = "tea is brewed with water"
    assert set(ask(store, text, similarity_top_k=2)) == {"tea", "black"}
    assert ask(store, text, mmr_threshold=0.0, **options)[1] == "rail"
    assert set(ask(store, text, mmr_threshold=1.0, **options)) == {"tea", "black"}
    query = VectorStoreQuery(query_str=text, mmr_threshold=0.0, **options)
    assert set(store.query(query, mmr_prefetch_k=2).ids or []) == {"tea", "black"}
    assert ask(store, text, filters=where(field("lang", "none")), **options) == []


def test_deletions(store: TercetVectorStore) -> None:
    store.delete("railway")
    assert {node.node_id for node in store.get_nodes()} == {"tea", "black"}
    store.delete_nodes(filters=where(field("year", 2002)))
    store.delete_nodes(["none"])
    assert [node.node_id for node in store.get_nodes()] == ["tea"]
    with pytest.raises(ValueError, match="clear deletes all nodes"):
        store.delete_nodes()
    store.clear()
    assert store.get_nodes() == []
    assert ask(store) == []


async def test_methods_for_event_loops(url: str, key: str | None, collection: str) -> None:
    store = TercetVectorStore(url, collection=collection, key=key, settings=SETTINGS)
    assert await store.async_add(NODES) == ["tea", "black", "rail"]
    assert await store.aget_nodes(["rail"]) == [NODES[2]]
    assert len(await store.aget_nodes(filters=where(field("lang", "en")))) == 2
    await store.adelete("railway")
    await store.adelete_nodes(["black"])
    assert [node.node_id for node in await store.aget_nodes()] == ["tea"]
    await store.adelete_nodes(filters=where(field("lang", "en")))
    assert await store.aget_nodes() == []
    await store.async_add(NODES)
    await store.aclear()
    assert (await store.aquery(VectorStoreQuery(query_str="tea"))).ids == []


def test_indexes_and_pipelines(url: str, key: str | None, collection: str) -> None:
    store = TercetVectorStore(url, collection=collection, key=key)
    documents = [
        Document(text="Green tea is brewed with hot water. " * 20, id_="long", metadata={"title": "Tea"}),
        Document(text="A steam train crosses the bridge.", id_="short"),
    ]
    splitter = SentenceSplitter(chunk_size=64, chunk_overlap=0)
    pipeline = IngestionPipeline(transformations=[splitter, MockEmbedding(1)], vector_store=store)
    nodes = pipeline.run(documents=documents)
    assert len(nodes) > 3
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(1))
    found = index.as_retriever(similarity_top_k=1).retrieve("locomotives")
    assert found[0].node.ref_doc_id == "short"
    assert asyncio.run(index.as_retriever(similarity_top_k=1).aretrieve("locomotives")) == found
    index.delete_ref_doc("long")
    assert [node.ref_doc_id for node in store.get_nodes()] == ["short"]
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex(NODES, storage_context=context, embed_model=MockEmbedding(1))
    assert len(store.get_nodes()) == 4


def test_collections_of_others(url: str, key: str | None, client: Client, collection: str) -> None:
    client.create_collection(collection, {"fields": {"year": "integer"}})
    client.put_documents(
        collection, [{"id": "a", "title": "Kettles", "text": "They boil.", "metadata": {"year": 1}}]
    )
    store = TercetVectorStore(url, collection=collection, key=key, scores=False)
    assert store.get_nodes() == [
        TextNode(id_="a", text="They boil.", metadata={"title": "Kettles", "year": 1})
    ]
    assert ask(store, "kettle") == ["a"]
    with pytest.raises(ApiError, match="'ref_doc_id' is not declared"):
        store.delete("x")
    with pytest.raises(ConflictError, match="settings are fixed at creation"):
        TercetVectorStore(url, collection=collection, key=key, settings=SETTINGS).get_nodes()


def test_bad_input(store: TercetVectorStore, collection: str) -> None:
    with pytest.raises(ValueError, match="metadata of document 'n' is not JSON"):
        store.add([TextNode(id_="n", text="x", metadata={"name": "\ud800"})])
    store.add([TextNode(id_="when", text="x", metadata={"when": datetime.date(2001, 1, 1)})])
    assert store.get_nodes(["when"])[0].metadata == {"when": "2001-01-01"}
    with pytest.raises(ValueError, match="one of them"):
        store.get_nodes(["n"], where(field("lang", "en")))
    store.add([TextNode(id_="n", text="one"), TextNode(id_="n", text="two")])
    assert store.get_nodes(["n"])[0].get_content() == "two"
    nowhere = TercetVectorStore("http://127.0.0.1:9", collection=collection)
    nowhere.client.sync._retries = 0
    with pytest.raises(ConnectionFailedError, match="does not answer"):
        nowhere.get_nodes()
