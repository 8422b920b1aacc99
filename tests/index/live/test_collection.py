"""Live collections: what was acknowledged is there, for the next search and for the next process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.candidates import Document
from index.collection import Collection
from index.errors import (
    CollectionBusyError,
    DocumentChangedError,
    DocumentNotFoundError,
    DuplicateDocumentError,
    InvalidDocumentError,
    SearchIndexError,
    StorageFullError,
)
from index.ledger.ledger import Ledger
from index.live.collection import LiveCollection


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
        while (
            not sizes or sizes[0] + live._running().committer._queue.qsize() < 9
        ):  # what waits behind the first force
            time.sleep(0.001)
        go.set()
        positions = sorted(each.result().position for each in [first, *others])
    assert positions == list(range(1, 10))
    assert sum(sizes) == 9
    assert len(sizes) <= 2
    with LiveCollection(collection) as again:
        assert again.snapshot().documents == 9
