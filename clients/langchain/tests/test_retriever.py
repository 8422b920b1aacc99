"""The retriever's scores, and documents re-ranked."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_tercet import TercetRerank, TercetRetriever
from tercet_client import ApiError, Client

TEXTS = {"tea": "Green tea is brewed with hot water.", "train": "A steam train crosses the bridge."}


@pytest.fixture
def filled(client: Client, collection: str) -> str:
    client.create_collection(collection, {"fields": {"year": "integer"}})
    client.put_documents(
        collection,
        [{"id": id, "text": text, "metadata": {"year": len(id)}} for id, text in TEXTS.items()],
    )
    return collection


async def test_scores_come_with_the_documents(url: str, key: str | None, filled: str) -> None:
    retriever = TercetRetriever(url=url, key=key, collection=filled, k=1, explain=True)
    [document] = retriever.invoke("tea")
    assert document.id == "tea"
    assert set(document.metadata["tercet"]["scores"]) >= {"dense", "sparse", "colbert"}
    assert "explanation" in document.metadata["tercet"]
    assert await retriever.ainvoke("tea") == [document]
    [late] = retriever.invoke("tea", filter={"gte": {"year": 5}}, scores=False)
    assert (late.id, late.metadata) == ("train", {"year": 5})
    assert key is None or key not in repr(retriever)


async def test_documents_from_anywhere_are_ranked(url: str, key: str | None) -> None:
    documents = [Document(text, metadata={"from": id}, id=id) for id, text in TEXTS.items()]
    rerank = TercetRerank(url=url, key=key, top_n=None)
    ranked = rerank.compress_documents(documents, "which train crosses a bridge?")
    assert [document.id for document in ranked] == ["train", "tea"]
    assert 0 < ranked[1].metadata["relevance_score"] < ranked[0].metadata["relevance_score"] < 1
    assert ranked[0].metadata["from"] == "train"
    assert set(ranked[0].metadata["tercet"]["scores"]) == {"dense", "sparse", "colbert"}
    assert documents[0].metadata == {"from": "tea"}
    assert await rerank.acompress_documents(documents, "which train crosses a bridge?") == ranked
    one = TercetRerank(url=url, key=key, top_n=1).compress_documents(documents, "tea")
    assert [document.id for document in one] == ["tea"]
    assert rerank.compress_documents([], "tea") == []


def test_titles_count_in_ranking(url: str, key: str | None) -> None:
    documents = [
        Document("It is done with hot water.", metadata={"title": title}, id=title)
        for title in ("Laundry", "Green tea")
    ]
    [best] = TercetRerank(url=url, key=key, top_n=1).compress_documents(documents, "green tea")
    assert best.id == "Green tea"
    blind = TercetRerank(url=url, key=key, top_n=None, title_key=None).compress_documents(
        documents, "green tea"
    )
    assert blind[0].metadata["relevance_score"] == blind[1].metadata["relevance_score"]


def test_ranked_as_documents_of_a_collection(url: str, key: str | None, filled: str) -> None:
    documents = [Document(text) for text in TEXTS.values()]
    ranked = TercetRerank(url=url, key=key, collection=filled).compress_documents(documents, "tea")
    assert ranked[0].page_content == TEXTS["tea"]
    with pytest.raises(ApiError, match="no-such"):
        TercetRerank(url=url, key=key, collection="no-such").compress_documents(documents, "tea")
