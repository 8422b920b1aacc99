"""What LangChain's suites do not ask: filters, scores, titles, vectors, diversity, refusals."""

from __future__ import annotations

import asyncio
import datetime

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tercet import TercetEmbeddings, TercetVectorStore
from tercet_client import ApiError, Client, ConflictError, ConnectionFailedError, NotFoundError

FIELDS = {"lang": "keyword", "year": "integer"}
DOCUMENTS = [
    Document("Green tea is brewed with hot water.", metadata={"lang": "en", "year": 2001}, id="tea"),
    Document("Black tea is brewed with boiling water.", metadata={"lang": "en", "year": 2002}, id="black"),
    Document("A steam train crosses the bridge.", metadata={"lang": "de", "year": 1830}, id="train"),
]


@pytest.fixture
def store(url: str, key: str | None, collection: str) -> TercetVectorStore:
    store = TercetVectorStore(url, collection=collection, key=key, settings={"fields": FIELDS})
    store.add_documents(DOCUMENTS)
    return store


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_filters(store: TercetVectorStore) -> None:
    assert ids(store.similarity_search("tea", filter={"lang": "de"})) == ["train"]
    assert ids(store.similarity_search("train", filter={"lang": ["en", "fr"], "year": 2002})) == ["black"]
    assert ids(store.similarity_search("tea", filter={"not": {"gte": {"year": 1900}}})) == ["train"]
    assert set(ids(store.similarity_search("tea", filter={"in": {"year": [2001, 1830]}}))) == {"tea", "train"}
    with pytest.raises(
        ApiError, match="'town' is not declared in this collection; declared fields: lang, year"
    ):
        store.similarity_search("tea", filter={"town": "Seoul"})


def test_scores_add_up_and_follow_the_weights(store: TercetVectorStore) -> None:
    [document] = store.similarity_search("tea", k=1, scores=True, explain=True)
    told = document.metadata["tercet"]
    assert told["score"] == pytest.approx(sum(told["scores"].values()), abs=1e-6)
    assert told["explanation"]["terms"]
    [(_, score)] = store.similarity_search_with_score(
        "tea", k=1, weights={"dense": 0, "sparse": 2, "colbert": 0}
    )
    assert score == pytest.approx(2 * told["scores"]["sparse"], abs=1e-5)
    assert "tercet" not in store.similarity_search("tea", k=1)[0].metadata


def test_relevance_keeps_the_order_from_0_to_1(store: TercetVectorStore) -> None:
    for options in ({}, {"weights": {"dense": 1, "sparse": 0, "colbert": 0}}, {"weights": "mldr"}):
        scored = store.similarity_search_with_score("how is tea brewed?", **options)
        relevant = store.similarity_search_with_relevance_scores("how is tea brewed?", **options)
        assert ids([one for one, _ in relevant]) == ids([one for one, _ in scored])
        values = [value for _, value in relevant]
        assert values == sorted(values, reverse=True)
        assert 0 < values[-1] < values[0] < 1
    found = store.similarity_search_with_score("tea", k=1)[0][1]
    relevant = store.similarity_search_with_relevance_scores("tea", k=1)[0][1]
    assert relevant == pytest.approx(1 / (1 + np.exp(-4 * (found - 1))))
    threshold = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": relevant - 1e-6}
    )
    assert len(threshold.invoke("tea")) == 1


def test_vectors_of_the_server_search_the_dense_side(store: TercetVectorStore) -> None:
    vector = store.embeddings.embed_query("train")
    assert ids(store.similarity_search_by_vector(vector, k=1)) == ["train"]
    assert ids(asyncio.run(store.asimilarity_search_by_vector(vector, k=1))) == ["train"]
    [found] = store.similarity_search_by_vector(vector, k=1, scores=True)
    assert found.metadata["tercet"]["scores"] == {
        "dense": pytest.approx(1, abs=0.9),
        "sparse": None,
        "colbert": None,
    }
    with pytest.raises(ApiError, match="384"):
        store.similarity_search_by_vector([1.0, 0.0])


def test_marginal_relevance_is_diverse(store: TercetVectorStore) -> None:
    query = "tea is brewed with water"
    assert set(ids(store.similarity_search(query, k=2))) == {"tea", "black"}
    diverse = store.max_marginal_relevance_search(query, k=2, lambda_mult=0.0)
    assert diverse[1].id == "train"
    assert asyncio.run(store.amax_marginal_relevance_search(query, k=2, lambda_mult=0.0)) == diverse
    assert set(ids(store.max_marginal_relevance_search(query, k=2, lambda_mult=1.0))) == {"tea", "black"}
    assert store.max_marginal_relevance_search(query, filter={"lang": "none"}) == []


def test_passages_of_windows_are_what_diversity_compares(url: str, key: str | None, collection: str) -> None:
    settings = {"window": {"tokens": 32, "overlap": 0}}
    store = TercetVectorStore(url, collection=collection, key=key, settings=settings)
    store.add_texts(["Coal is mined in the hills. " * 40 + "Green tea is brewed with hot water."])
    [hit] = store.similarity_search("green tea", k=1, scores=True)
    window = hit.metadata["tercet"]["window"]
    assert "Green tea" in hit.page_content[window["start"] : window["end"]]
    assert len(store.max_marginal_relevance_search("green tea")) == 1


def test_titles_are_encoded(url: str, key: str | None, client: Client, collection: str) -> None:
    metadata = {"title": "Locomotives"}
    store = TercetVectorStore(url, collection=collection, key=key)
    store.add_texts(["They pull wagons."], [metadata], ids=["a"])
    assert client.document(collection, "a")["title"] == "Locomotives"
    assert store.get_by_ids(["a"])[0].metadata == metadata
    client.put_documents(collection, [{"id": "b", "title": "Kettles", "text": "They boil."}])
    assert store.get_by_ids(["b"])[0].metadata == {"title": "Kettles"}
    plain = TercetVectorStore(url, collection=collection, key=key, title_key=None)
    plain.add_texts(["They pull wagons."], [metadata], ids=["c"])
    assert client.document(collection, "c")["title"] is None
    assert plain.get_by_ids(["b"])[0].metadata == {}


def test_deletions(store: TercetVectorStore) -> None:
    assert store.delete(filter={"lang": "en"})
    assert ids(store.similarity_search("tea")) == ["train"]
    with pytest.raises(ValueError, match="a filter with a condition"):
        store.delete(filter={})
    with pytest.raises(ValueError, match="a filter with a condition"):
        asyncio.run(store.adelete(["train"], filter={"lang": "en"}))
    assert store.delete([])
    assert ids(store.similarity_search("tea")) == ["train"]
    assert store.delete()
    assert store.similarity_search("tea") == []
    store.add_documents(DOCUMENTS)
    assert asyncio.run(store.adelete(filter={"lang": "en"}))
    assert asyncio.run(store.adelete())
    assert store.similarity_search("tea") == []
    store.delete_collection()
    store.delete_collection()
    assert store.similarity_search("tea") == []


def test_more_documents_than_one_request_takes(url: str, key: str | None, collection: str) -> None:
    store = TercetVectorStore(url, collection=collection, key=key)
    named = store.add_texts([f"text {n}" for n in range(250)])
    assert len(set(named)) == 250
    assert [document.page_content for document in store.get_by_ids([named[200], "none", named[3]])] == [
        "text 200",
        "text 3",
    ]
    store.delete(named[1:])
    assert ids(store.similarity_search("text", k=10)) == named[:1]


def test_a_foreign_embedding_is_not_used_and_told(url: str, key: str | None, collection: str) -> None:
    place = {"url": url, "key": key, "collection": collection}
    with pytest.warns(UserWarning, match="DeterministicFakeEmbedding is not used"):
        store = TercetVectorStore.from_texts(["tea"], DeterministicFakeEmbedding(size=6), ids=["a"], **place)
    assert ids(store.similarity_search("tea")) == ["a"]
    again = TercetVectorStore.from_documents(DOCUMENTS, TercetEmbeddings(url, key=key), **place)
    assert set(ids(again.similarity_search("tea"))) == {"a", "tea", "black", "train"}
    assert asyncio.run(TercetVectorStore.afrom_texts(["tea"], **place)).embeddings is not None


def test_bad_input_is_refused_before_anything_is_written(store: TercetVectorStore) -> None:
    for documents, given, message in (
        ([Document("x"), Document("y")], ["n", "n"], "'n' occurs twice"),
        ([Document("x")], ["n", "m"], "1 documents and 2 ids"),
        (
            [Document("x", metadata={"when": datetime.date(2001, 1, 1)})],
            ["n"],
            "metadata of document 'n' is not JSON",
        ),
        ([Document("x", metadata={"n": float("nan")})], ["n"], "metadata of document 'n' is not JSON"),
    ):
        with pytest.raises(ValueError, match=message):
            store.add_documents(documents, ids=given)
    with pytest.raises(ValueError, match="1 texts and 2 metadatas"):
        store.add_texts(["x"], [{}, {}])
    with pytest.raises(ApiError, match="field 'year' is declared as integer"):
        store.add_texts(["x"], [{"year": "2001"}])
    with pytest.raises(ApiError, match="top_k"):
        store.similarity_search("tea", k=100_000)
    with pytest.raises(ApiError, match="colour"):
        store.similarity_search("tea", colour="green")
    assert len(store.similarity_search("x", k=10)) == 3


def test_a_collection_of_other_settings_is_refused(
    store: TercetVectorStore, url: str, key: str | None
) -> None:
    name = store._name
    other = TercetVectorStore(url, collection=name, key=key, settings={"fields": {"year": "number"}})
    with pytest.raises(ConflictError, match="settings are fixed at creation"):
        other.similarity_search("tea")
    same = TercetVectorStore(url, collection=name, key=key)
    assert len(same.similarity_search("tea")) == 3


def test_servers_that_are_not_there_or_refuse(collection: str, url: str, key: str | None) -> None:
    nowhere = TercetVectorStore("http://127.0.0.1:9", collection=collection)
    nowhere.clients.sync._retries = 0
    with pytest.raises(ConnectionFailedError, match="does not answer"):
        nowhere.similarity_search("tea")
    if key is not None:
        with pytest.raises(ApiError, match="key"):
            TercetVectorStore(url, collection=collection, key="wrong").similarity_search("tea")
    with pytest.raises(ApiError, match="name"):
        TercetVectorStore(url, collection="No such name!", key=key).add_texts(["x"])
    store = TercetVectorStore(url, collection=collection, key=key)
    store.add_texts(["x"])
    store.clients.sync.delete_collection(collection)
    with pytest.raises(NotFoundError):
        store.get_by_ids(["x"])


def test_many_event_loops_one_after_the_other(store: TercetVectorStore) -> None:
    for _ in range(3):
        assert len(asyncio.run(store.asimilarity_search("tea"))) == 3
