"""What Haystack's suites do not ask: what is kept, other writers, filters by halves, saved pipelines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils import Secret
from tercet_client import ApiError, Client, ConflictError
from tercet_haystack import TercetDocumentStore, TercetRetriever

TRUSTED = ["tercet_haystack.*"]
FIELDS = {"fields": {"year": "integer", "tags": "keyword"}}
MakeStore = Callable[..., TercetDocumentStore]


@pytest.fixture
def make_store(url: str, key: str | None, collection: str) -> MakeStore:
    def make(**options: Any) -> TercetDocumentStore:
        return TercetDocumentStore(url, collection=collection, key=key, **options)

    return make


def equal(field: str, value: Any, operator: str = "==") -> dict[str, Any]:
    return {"field": f"meta.{field}", "operator": operator, "value": value}


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


def test_everything_of_a_document_comes_back(make_store: MakeStore, client: Client) -> None:
    store = make_store()
    documents = [
        Document(
            id="all",
            content="Green tea.",
            meta={"title": "Tea", "nested": {"a": [1, None, "x"]}, "number": 1.0},
            blob=ByteStream(b"\x00\xff", {"from": "x"}, "image/png"),
            score=0.1,
            embedding=[0.1, 1e-300],
            sparse_embedding=SparseEmbedding([1, 5], [0.25, 0.5]),
        ),
        Document(id="blob", blob=ByteStream(b"bytes")),
        Document(id="empty", content=""),
    ]
    store.write_documents(documents)
    assert store.filter_documents() == documents
    stored = client.document(store.collection, "all")
    assert (stored["title"], stored["text"]) == ("Tea", "Green tea.")
    assert set(stored["metadata"]) == {"title", "nested", "number", "_haystack"}
    [found] = store.search("tea", top_k=1)
    assert (found.id, found.embedding, found.blob) == ("all", [0.1, 1e-300], documents[0].blob)
    with pytest.raises(ValueError, match="'_haystack', which is reserved"):
        store.write_documents([Document(content="x", meta={"_haystack": 1})])


def test_documents_are_listed_as_they_were_written(make_store: MakeStore, client: Client) -> None:
    store = make_store()
    store.write_documents([Document(id=id, content="x") for id in "cab"])
    store.write_documents([Document(id="0", content="x")])
    client.put_documents(store.collection, [{"id": "z", "text": "x"}, {"id": "y", "text": "x"}])
    assert ids(store.filter_documents()) == ["y", "z", "c", "a", "b", "0"]
    assert ids(asyncio.run(store.filter_documents_async())) == ["y", "z", "c", "a", "b", "0"]
    store.write_documents([Document(id="c", content="x")], DuplicatePolicy.OVERWRITE)
    store.update_by_filter({"field": "id", "operator": "==", "value": "a"}, {"year": 1})
    assert ids(store.filter_documents()) == ["y", "z", "a", "b", "0", "c"]


def test_declared_and_other_fields_filter_together(make_store: MakeStore) -> None:
    store = make_store(settings=FIELDS)
    store.write_documents(
        [
            Document(id=f"{year}{town}", content="x", meta={"year": year, "town": town, "tags": ["a", town]})
            for year in (1, 2)
            for town in ("p", "q")
        ]
    )
    both = {"operator": "AND", "conditions": [equal("year", 1, ">"), equal("town", "q")]}
    assert ids(store.filter_documents(both)) == ["2q"]
    assert ids(store.filter_documents({**both, "operator": "OR"})) == ["1q", "2p", "2q"]
    assert ids(store.filter_documents({**both, "operator": "NOT"})) == ["1p", "1q", "2p"]
    assert ids(store.filter_documents(equal("tags", "q"))) == ["1q", "2q"]
    assert ids(store.filter_documents(equal("year", [1, None], "in"))) == ["1p", "1q"]
    assert ids(store.filter_documents({"field": "id", "operator": "==", "value": "1p"})) == ["1p"]
    assert set(ids(store.search("x", filters=equal("year", 2, ">=")))) == {"2p", "2q"}
    for filters in (equal("town", "q"), both, {"field": "content", "operator": "==", "value": "x"}):
        with pytest.raises(FilterError, match="declared fields of the collection: tags, year"):
            store.search("x", filters=filters)
    with pytest.raises(FilterError, match="field 'year' is integer, but the filter compares it with 'x'"):
        store.search("x", filters=equal("year", "x"))
    with pytest.raises(FilterError, match="field 'year' is integer"):
        store.delete_by_filter(equal("year", "x"))
    for filters in (
        {"operator": "XOR", "conditions": []},
        {"operator": "AND", "conditions": []},
        equal("year", 1, "~"),
    ):
        with pytest.raises(FilterError):
            store.search("x", filters=filters)
    assert store.delete_by_filter(both) == 1
    assert store.delete_by_filter(equal("tags", "q")) == 1
    assert store.update_by_filter(equal("year", 1), {"year": 3}) == 1
    assert ids(store.search("x", filters=equal("year", 3))) == ["1p"]
    with pytest.raises(ValueError, match="write the documents anew"):
        store.update_by_filter(equal("year", 3), {"title": "New"})


def test_fail_and_skip_replace_nothing_that_others_write_meanwhile(
    make_store: MakeStore, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer puts a document after the store has looked for it and before it writes."""
    store = make_store()
    mine = [Document(id="a", content="mine"), Document(id="b", content="mine")]
    before = client.create_collection(store.collection)
    assert before["documents"] == 0
    seen = store._present

    def interrupted(requests: Any) -> set[str]:
        present = seen(requests)
        monkeypatch.setattr(store, "_present", seen)
        client.put_documents(store.collection, [{"id": "b", "text": "theirs"}])
        return present

    monkeypatch.setattr(store, "_present", interrupted)
    with pytest.raises(DuplicateDocumentError, match="'b'"):
        store.write_documents(mine, DuplicatePolicy.FAIL)
    assert ids(store.filter_documents()) == ["b"]
    client.delete_documents(store.collection, ids=["b"])
    monkeypatch.setattr(store, "_present", interrupted)
    assert store.write_documents(mine, DuplicatePolicy.SKIP) == 1
    assert [(one.id, one.content) for one in store.filter_documents()] == [("b", "theirs"), ("a", "mine")]


def test_many_writers_of_the_same_ids_write_each_once(make_store: MakeStore) -> None:
    written: list[int] = []

    def write(writer: int) -> None:
        documents = [Document(id=f"{n:03d}", content=f"writer {writer}") for n in range(150)]
        written.append(make_store().write_documents(documents, DuplicatePolicy.SKIP))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(written) == 150
    assert make_store().count_documents() == 150


def test_an_update_does_not_undo_what_others_write_meanwhile(
    make_store: MakeStore, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(settings=FIELDS)
    store.write_documents([Document(id=name, content="x", meta={"year": 1}) for name in "abc"])
    matching = store._matching

    def interrupted(filters: Any) -> Any:
        found = list(matching(filters))
        monkeypatch.setattr(store, "_matching", matching)
        client.patch_document(store.collection, "b", {"year": 1, "theirs": True})
        client.delete_documents(store.collection, ids=["c"])
        return iter(found)

    monkeypatch.setattr(store, "_matching", interrupted)
    assert store.update_by_filter(equal("year", 1), {"mine": True}) == 2
    metas = {document.id: document.meta for document in store.filter_documents()}
    assert metas == {"a": {"year": 1, "mine": True}, "b": {"year": 1, "theirs": True, "mine": True}}


def test_ids_that_occur_twice(make_store: MakeStore) -> None:
    store, twice = make_store(), [Document(id="a", content="one"), Document(id="a", content="two")]
    with pytest.raises(DuplicateDocumentError, match="occurs twice"):
        store.write_documents(twice)
    assert store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert store.filter_documents()[0].content == "one"
    assert store.write_documents(twice, DuplicatePolicy.OVERWRITE) == 2
    assert store.filter_documents()[0].content == "two"


def test_a_collection_with_a_codebook_is_emptied_and_not_made_anew(
    make_store: MakeStore, client: Client, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(settings={"token_codec": "sign", "token_pooling": 2})
    store.write_documents([Document(content="tea")])
    described = store._opened()
    monkeypatch.setattr(store, "_opened", lambda **_: {**described, "token_codec": "residual1"})
    monkeypatch.setattr(store.clients.sync, "delete_collection", None)
    store.delete_all_documents(recreate_collection=True)
    assert store.count_documents() == 0
    monkeypatch.undo()
    store.delete_all_documents(recreate_collection=True)
    made = client.collection(collection).description
    assert (made["token_codec"], made["token_pooling"]) == ("sign", 2)


def test_recreated_collections_keep_their_settings(make_store: MakeStore, client: Client) -> None:
    store = make_store(settings={**FIELDS, "bm25": True, "bm25_language": "german"})
    store.write_documents([Document(content="x")])
    before = client.collection(store.collection).description
    store.delete_all_documents(recreate_collection=True)
    assert client.collection(store.collection).description == {**before, "documents": 0, "snapshot": None}
    asyncio.run(store.delete_all_documents_async(recreate_collection=True))
    assert store.count_documents() == 0


def test_pipelines_are_saved_without_their_key(
    make_store: MakeStore, url: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", key or "none")
    store = make_store(settings=FIELDS)
    store.key = Secret.from_env_var("SOME_KEY")
    store.write_documents([Document(id="a", content="Green tea."), Document(id="b", content="A train.")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", TercetRetriever(store, top_k=1, explain=True))
    saved = pipeline.dumps()
    assert "SOME_KEY" in saved
    assert key is None or key not in saved
    [found] = Pipeline.loads(saved, allowed_modules=TRUSTED).run({"query": "tea"})["retriever"]["documents"]
    assert found.id == "a"
    assert "explanation" in found.meta["tercet"]
    if key is not None:
        with pytest.raises(ValueError, match=r"[Tt]oken"):
            make_store().to_dict()


async def test_the_retriever_asks_as_it_is_told(make_store: MakeStore) -> None:
    store = make_store(settings=FIELDS)
    store.write_documents(
        [
            Document(id="tea", content="Green tea is brewed.", meta={"year": 1}),
            Document(id="rail", content="A steam train.", meta={"year": 2}),
        ]
    )
    retriever = TercetRetriever(store, filters=equal("year", 2), scores=False)
    [found] = retriever.run("tea")["documents"]
    assert (found.id, found.meta) == ("rail", {"year": 2})
    assert (await retriever.run_async("tea"))["documents"] == [found]
    [other] = retriever.run("tea", filters=equal("year", 1), weights={"dense": 0, "sparse": 1, "colbert": 0})[
        "documents"
    ]
    assert other.id == "tea"
    with pytest.raises(ValueError, match="give a TercetDocumentStore"):
        TercetRetriever("store")  # type: ignore[arg-type]
    with pytest.raises(ApiError, match="top_k"):
        retriever.run("tea", top_k=0)


def test_other_settings_are_refused(make_store: MakeStore) -> None:
    make_store(settings=FIELDS).count_documents()
    with pytest.raises(ConflictError, match="settings are fixed at creation"):
        make_store(settings={"fields": {"year": "keyword"}}).count_documents()
    assert make_store().count_documents() == 0
