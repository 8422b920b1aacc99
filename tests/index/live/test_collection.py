"""Live collections: what was acknowledged is there, for the next search and for the next process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.documents.filters import Range
from tercet.index.errors import (
    CollectionBusyError,
    DocumentChangedError,
    DocumentNotFoundError,
    DuplicateDocumentError,
    IdempotencyMismatchError,
    InvalidDocumentError,
    InvalidQueryError,
    SearchIndexError,
    StorageFullError,
)
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import WriteKey, Written


@pytest.fixture
def collection(root: Path, three: Any, make_settings: Any) -> Collection:
    """An empty collection for documents like `three`."""
    settings = make_settings(three[1], "demo", fields={"year": "integer"}, lexical="idf", bm25=True)
    return Collection.create(root, "demo", settings)


def hits(live: LiveCollection, query: Any) -> list[tuple[str, float]]:
    return [(hit.document.id, hit.score) for hit in live.snapshot().search(query).hits]


def test_writes_are_seen_and_outlive_a_process(collection: Collection, three: Any, three_query: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        assert live.put(documents, encoded).position == 1
        before = hits(live, three_query)
        assert [id for id, _ in before] == ["c", "a", "b"]
        written = live.delete(["b", "missing"])
        assert (written.position, written.documents) == (2, 1)
        assert (live.delete(["missing"]).position, live.delete(["missing"]).documents) == (2, 0)
        live.put([Document("d", "boat")], encoded.take(np.array([1])))
        after = hits(live, three_query)
        assert [id for id, _ in after] == ["c", "a", "d"]
    with LiveCollection(Collection.open(collection.layout.folder.parent, "demo")) as again:
        assert again.position == 3
        assert hits(again, three_query) == after
        assert again.snapshot().get("b") is None


def test_a_version_names_its_manifest_and_the_writes_behind_that(
    collection: Collection, three: Any, three_query: Any
) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        versions = [live.snapshot().version]
        for write in (
            lambda: live.put(documents, encoded),
            live.flush,
            lambda: live.delete(["b"]),
            lambda: live.delete(["b"]),
            live.flush,
        ):
            write()
            versions.append(live.snapshot().search(three_query).snapshot)
    assert versions == ["000000", "000000.1", "000001", "000001.2", "000001.2", "000002"]
    with LiveCollection(collection) as live:
        assert live.snapshot().version == "000002" == collection.snapshot().version


def test_published_documents_are_replaced_and_deleted(
    build: Any, three: Any, three_query: Any, root: Path
) -> None:
    _, encoded = three
    collection = build(three, lexical="idf")
    with LiveCollection(collection) as live:
        live.put([Document("a", "another apple")], encoded.take(np.array([2])))
        live.delete(["c"])
        found = live.snapshot()
        assert [found.documents, found.get("c")] == [2, None]
        assert found.get("a") == Document("a", "another apple")
        changed = hits(live, three_query)
    assert collection.snapshot().documents == 3  # readers elsewhere see the published ones
    with LiveCollection(collection) as again:
        assert hits(again, three_query) == changed


def test_metadata_is_replaced_without_encoding(collection: Collection, three: Any, three_query: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        live.put(documents, encoded)
        before = hits(live, three_query)
        assert live.patch("a", {"year": 1999, "new": [1]}).position == 2
        assert hits(live, three_query) == before
        found = live.snapshot().get("a")
        assert found == Document("a", "apple", "Fruit", {"year": 1999, "new": [1]})
        with pytest.raises(DocumentNotFoundError, match="'z' is not in collection 'demo'"):
            live.patch("z", {})
        with pytest.raises(InvalidDocumentError, match="field 'year' is declared as integer"):
            live.patch("a", {"year": "soon"})
        assert live.position == 2


def test_a_write_may_depend_on_a_position(collection: Collection, three: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        live.put(documents, encoded)
        live.patch("b", {})
        with pytest.raises(DocumentChangedError, match="'b' was written at position 2, after if_position 1"):
            live.put(documents, encoded, if_position=1)
        with pytest.raises(DocumentChangedError):
            live.patch("b", {"year": 1}, if_position=1)
        assert live.put(documents[:1], encoded.take(np.array([0])), if_position=1).position == 3
        assert live.patch("b", {"year": 1}, if_position=2).position == 4


def test_bad_writes_change_nothing(collection: Collection, three: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        with pytest.raises(DuplicateDocumentError, match="'a' occurs twice"):
            live.put([documents[0], documents[0]], encoded.take(np.array([0, 1])))
        with pytest.raises(InvalidDocumentError, match="no documents"):
            live.put([], encoded.take(np.empty(0, np.int64)))
        with pytest.raises(InvalidDocumentError):
            live.put([Document("", "no id")], encoded.take(np.array([0])))
        assert (live.position, live.snapshot().documents) == (0, 0)


def test_one_process_writes(collection: Collection, three: Any) -> None:
    with LiveCollection(collection) as live:
        with pytest.raises(CollectionBusyError), LiveCollection(collection):
            pass
        live.put(*three)
    with pytest.raises(SearchIndexError, match="closed for writing"):
        live.put(*three)


def test_what_the_disk_refuses_is_not_there(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        live.put(documents[:1], encoded.take(np.array([0])))

        def full(*_: Any, **__: Any) -> int:
            raise StorageFullError("no space left")

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "append", full)
            with pytest.raises(StorageFullError):
                live.put(documents[1:], encoded.take(np.array([1, 2])))
        assert (live.position, live.snapshot().documents) == (1, 1)
        assert live.put(documents[1:], encoded.take(np.array([1, 2]))).position == 2


def test_nothing_is_seen_before_it_is_on_the_disk(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, forced, reached = Ledger.append, threading.Event(), threading.Event()

    def slow(self: Ledger, *arguments: Any, **options: Any) -> int:
        reached.set()
        assert forced.wait(30)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "append", slow)
    with LiveCollection(collection) as live, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(live.put, *three)
        assert reached.wait(30)
        assert live.snapshot().documents == 0
        assert not writing.done()
        forced.set()
        assert writing.result().position == 1
        assert live.snapshot().documents == 3


def test_waiting_writes_share_one_force(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, encoded = three
    sizes, go = [], threading.Event()
    real = Ledger.append

    def counting(self: Ledger, entries: Any, **options: Any) -> int:
        sizes.append(len(entries))
        assert go.wait(30)
        return real(self, entries, **options)

    monkeypatch.setattr(Ledger, "append", counting)
    with LiveCollection(collection) as live, ThreadPoolExecutor(9) as pool:
        first = pool.submit(live.put, documents[:1], encoded.take(np.array([0])))
        others = [
            pool.submit(live.put, [Document(f"n{number}", "x")], encoded.take(np.array([1])))
            for number in range(8)
        ]
        while not sizes or sizes[0] + len(live._running().committer._waiting) < 9:  # behind the first force
            time.sleep(0.001)
        go.set()
        positions = sorted(each.result().position for each in [first, *others])
    assert positions == list(range(1, 10))
    assert sum(sizes) == 9
    assert len(sizes) <= 2
    with LiveCollection(collection) as again:
        assert again.snapshot().documents == 9


def key(name: str, request: str = "a") -> WriteKey:
    return WriteKey(name, request * 64)


def test_a_repeat_under_a_key_changes_nothing(collection: Collection, three: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        first = live.put(documents, encoded, key=key("k"), tokens=7)
        live.delete(["a"])
        assert live.put(documents, encoded, key=key("k"), tokens=7) == first == Written(1, 3, 7)
        assert [live.position, live.snapshot().get("a")] == [2, None]
        assert live.written_under(key("k")) == first
        assert live.written_under(key("other")) is None
        with pytest.raises(IdempotencyMismatchError, match="'k' was used for another write, at position 1"):
            live.delete(["b"], key=key("k", "b"))
        # What changed nothing is remembered, too: the repeat must not delete what came between.
        assert live.delete(["a"], key=key("nothing")) == Written(3, 0)
        live.put(documents[:1], encoded.take(np.array([0])))
        assert live.delete(["a"], key=key("nothing")) == Written(3, 0)
    with LiveCollection(Collection.open(collection.layout.folder.parent, "demo")) as again:
        assert again.position == 4
        assert again.snapshot().documents == 3
        assert again.put(documents, encoded, key=key("k")) == first


@pytest.mark.slow
def test_writes_under_one_key_at_the_same_time_are_one(collection: Collection, three: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live, ThreadPoolExecutor(16) as pool:
        for number in range(20):
            one = key(f"k{number}")
            written = [pool.submit(live.put, documents, encoded, key=one) for _ in range(16)]
            assert {future.result() for future in written} == {Written(number + 1, 3)}


def test_documents_that_a_filter_allows_are_deleted(collection: Collection, three: Any) -> None:
    documents, encoded = three
    years = {"a": 1999, "b": 2000, "c": 2001}
    with LiveCollection(collection) as live:
        for place, document in enumerate(documents):  # two segments in memory, one of them published
            dated = Document(document.id, document.text, None, {"year": years[document.id]})
            live.put([dated], encoded.take(np.array([place])))
            if place == 1:
                live.flush()
        assert live.delete_matching(Range("year", "gte", 2000)) == Written(4, 2)
        assert live.delete_matching(Range("year", "gte", 2000)) == Written(4, 0)
        assert [document.id for document in live.snapshot().page(None, 10)] == ["a"]
        with pytest.raises(InvalidQueryError, match="'colour' is not declared"):
            live.delete_matching(Range("colour", "gte", 1))


def test_pages_go_through_all_documents_in_order_of_id(collection: Collection, three: Any) -> None:
    ids = [f"{number:03d}" for number in range(0, 300, 2)] + ["é", "z/ ?", "\0"]
    with LiveCollection(collection) as live:
        for start in range(0, len(ids), 40):
            some = ids[start : start + 40]
            documents = [Document(id, id, None, {"year": len(id)}) for id in some]
            live.put(documents, three[1].take(np.zeros(len(some), np.int64)))
            if start == 40:
                live.flush()
        live.delete(["000", "100", "298"])
        left = sorted(set(ids) - {"000", "100", "298"}, key=str.encode)
        found: list[str] = []
        while page := live.snapshot().page(found[-1] if found else None, 7):
            found += [document.id for document in page]
        assert found == left
        three_long = live.snapshot().page("101", 500, Range("year", "gte", 3))
        assert [document.id for document in three_long] == [id for id in left if id > "101" and len(id) > 2]
        assert live.snapshot().page("é", 5) == []
        with pytest.raises(InvalidDocumentError, match="0 bytes"):
            live.snapshot().page("", 5)


def test_what_is_stored_of_a_document_can_be_read(collection: Collection, three: Any) -> None:
    documents, encoded = three
    with LiveCollection(collection) as live:
        live.put(documents, encoded)
        before = live.snapshot().stored("b")[1]
        live.flush()
        stored = live.snapshot().stored("b")[1]
        assert stored is not None
        assert before is not None
        assert stored.colbert is not None
        assert stored.position == before.position == 1
        np.testing.assert_allclose(stored.dense, encoded.dense[1:2], atol=1e-3)
        assert stored.sparse.token_ids.tolist() == encoded.sparse.take(np.array([1])).token_ids.tolist()
        expected = encoded.colbert.take(np.array([1]))
        np.testing.assert_allclose(stored.colbert.vectors, expected.vectors, atol=1e-2)
        np.testing.assert_array_equal(stored.colbert.vectors, before.colbert.vectors)
        assert live.snapshot().stored("missing") is None
