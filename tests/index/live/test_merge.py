"""Merges: which segments are joined, and that nothing changes by it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog import remains as remains_module
from tercet.index.catalog.manifest import DeletesEntry, SegmentEntry
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.merge import MergeStoppedError, Pace, to_merge
from tercet.index.segments.writer import FilledSegment
from tercet.index.verify import verify


def entry(documents: int, deleted: int = 0) -> SegmentEntry:
    marks = DeletesEntry("a.npy", deleted, 0, "0" * 64) if deleted else None
    return SegmentEntry(f"s{documents}", documents, 0, "flat", {}, None, marks)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([1] * 7, []),
        ([1] * 9, list(range(8))),
        ([1, 7, 1, 7, 1, 7, 1, 7], list(range(8))),  # of one tier, up to eight times as large
        ([8, 1, 9, 1, 63, 1, 8, 1, 8, 1, 8, 1, 8, 1, 8], [0, 2, 4, 6, 8, 10, 12, 14]),
        ([64] * 8 + [1] * 8, list(range(8, 16))),  # the smallest first
        ([100_000] * 20, []),  # larger than a joined one may be
    ],
)
def test_segments_of_a_size_are_joined(sizes: list[int], expected: list[int]) -> None:
    assert to_merge([entry(size) for size in sizes], 8) == expected


def test_a_segment_that_is_mostly_deleted_is_written_anew() -> None:
    assert to_merge([entry(10), entry(10, 5)], 8) == []
    assert to_merge([entry(10), entry(10, 6)], 8) == [1]


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    settings = make_settings(random_texts(1, 0), "demo", lexical="idf", bm25=True)
    return Collection.create(root, "demo", settings)


def put(live: LiveCollection, texts: Any, ids: list[str], seed: int) -> None:
    live.put([Document(id, f"text {seed}") for id in ids], texts(len(ids), seed))


def hits(snapshot: Any, texts: Any) -> list[Any]:
    found = []
    for row in range(4):
        result = snapshot.search(texts(4, 99).take(np.array([row])))
        found.append([(hit.document, hit.score) for hit in result.hits])
    return found


def test_deletes_that_arrive_during_a_merge_are_in_its_result(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Publication.publish
    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}", f"b{number}", f"c{number}"], number)
            live.flush()
        live.delete(["a0", "b1"])
        live.flush()
        live.delete(["c2"])  # not yet in a manifest
        elsewhere = hits(collection.snapshot(), random_texts)

        def write_meanwhile(self: Publication) -> None:
            live.delete(["a3"])
            put(live, random_texts, ["a4", "new"], 50)
            real(self)

        monkeypatch.setattr(Publication, "publish", write_meanwhile)
        assert live.merge() == 1
        monkeypatch.setattr(Publication, "publish", real)
        manifest = collection.manifest()
        assert manifest is not None
        assert [segment.documents for segment in manifest.segments] == [22]  # 24 without a0 and b1
        assert hits(collection.snapshot(), random_texts) == elsewhere
        found = live.snapshot()
        assert found.documents == 24 - 4 + 1
        assert [found.get(id) for id in ("a0", "b1", "c2", "a3")] == [None] * 4
        assert found.get("a4") == Document("a4", "text 50")
        after = hits(found, random_texts)
    with LiveCollection(collection) as again:
        assert hits(again.snapshot(), random_texts) == after
    assert len(list(collection.layout.segments.iterdir())) == 1
    assert verify(root, "demo") == []


def test_flushes_publish_during_a_merge(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FilledSegment.finish
    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}", f"b{number}"], number)
            live.flush()
        live.delete(["a0"])

        def flush_meanwhile(self: FilledSegment, kind: Any, *_: Any) -> Any:
            monkeypatch.setattr(FilledSegment, "finish", real)
            live.delete(["a1", "a2", "b2"])  # of the segment of a2 nothing is left
            put(live, random_texts, ["b3", "new"], 50)
            live.flush()
            live.delete(["b4"])
            return real(self, kind)

        monkeypatch.setattr(FilledSegment, "finish", flush_meanwhile)
        assert live.merge() == 1
        manifest = collection.manifest()
        assert manifest is not None
        assert [segment.documents_kept for segment in manifest.segments] == [2, 16 - 5]
        assert [segment.documents for segment in manifest.segments] == [2, 16]
        found = live.snapshot()
        assert found.documents == 12
        assert [found.get(id) for id in ("a0", "a1", "a2", "b2", "b4")] == [None] * 5
        after = hits(found, random_texts)
        assert verify(root, "demo") == []
    with LiveCollection(collection) as again:
        assert hits(again.snapshot(), random_texts) == after
        again.flush()
        assert hits(collection.snapshot(), random_texts) == after
    assert verify(root, "demo") == []


def test_a_merge_holds_up_no_flush_while_it_rests(collection: Collection, random_texts: Any) -> None:
    class Noting(Pace):
        rests = 0

        def rest(self) -> None:
            live.flush()  # which would wait for ever, were a lock held
            self.rests += 1

    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}"], number)
            live.flush()
        put(live, random_texts, ["new"], 50)
        pace = Noting()
        assert live._running().merge.run(pace)
        assert pace.rests
        assert live.snapshot().documents == 9


def test_a_merge_whose_documents_are_all_deleted_meanwhile(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ids = FilledSegment.finish, [f"a{number}" for number in range(8)]
    with LiveCollection(collection) as live:
        for number, id in enumerate(ids):
            put(live, random_texts, [id], number)
            live.flush()

        def delete_meanwhile(self: FilledSegment, kind: Any, *_: Any) -> Any:
            monkeypatch.setattr(FilledSegment, "finish", real)
            live.delete(ids)
            live.flush()
            return real(self, kind)

        monkeypatch.setattr(FilledSegment, "finish", delete_meanwhile)
        assert live.merge() >= 1
        assert live.snapshot().documents == collection.snapshot().documents == 0
        put(live, random_texts, ["new"], 3)
        live.flush()
        assert [live.snapshot().documents, collection.snapshot().documents] == [1, 1]
    assert verify(root, "demo") == []


def test_a_merge_that_fails_leaves_all_as_it_was(
    collection: Collection, root: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Publication) -> None:
        raise OSError(28, "No space left on device")

    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}"], number)
            live.flush()
        before = hits(live.snapshot(), random_texts)
        with monkeypatch.context() as patched:
            patched.setattr(Publication, "publish", full)
            with pytest.raises(OSError, match="No space left"):
                live.merge()
        assert hits(live.snapshot(), random_texts) == before
        assert live.merge() == 1
        assert hits(live.snapshot(), random_texts) == before == hits(collection.snapshot(), random_texts)
    assert verify(root, "demo") == []


class Stopped(Pace):
    """Goes on until something is to be published."""

    def require_going(self) -> None:
        raise MergeStoppedError("the collection is about to be closed")


def test_a_merge_that_is_stopped_at_the_end_publishes_nothing(
    collection: Collection, root: Path, random_texts: Any
) -> None:
    """One who closed the collection waits for no merge that has not begun to publish what it wrote."""
    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}"], number)
            live.flush()
        before, current = hits(live.snapshot(), random_texts), collection.current()
        with pytest.raises(MergeStoppedError):
            live._running().merge.run(Stopped())
        assert collection.current() == current
        assert hits(live.snapshot(), random_texts) == hits(collection.snapshot(), random_texts) == before
        assert live.merge() == 1
        assert hits(live.snapshot(), random_texts) == before
    assert verify(root, "demo") == []


def test_a_merge_that_is_stopped_with_nothing_to_write_publishes_nothing(
    collection: Collection, root: Path, random_texts: Any
) -> None:
    class Deleting(Pace):
        deleted = False

        def rest(self) -> None:
            if not self.deleted:
                self.deleted = True
                live.delete([f"a{number}" for number in range(8)])
                live.flush()

    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}"], number)
            live.flush()
        merge = live._running().merge
        assert merge.run(Deleting())  # leaves a segment of whose documents none is kept
        current = collection.current()
        with pytest.raises(MergeStoppedError):
            merge.run(Stopped())
        assert collection.current() == current
        assert merge.run()
        manifest = collection.manifest()
        assert manifest is not None
        assert manifest.segments == ()
    assert verify(root, "demo") == []


def test_readers_keep_what_they_opened(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        for number in range(8):
            put(live, random_texts, [f"a{number}"], number)
            live.flush()
        elsewhere, here = collection.snapshot(), live.snapshot()
        before = hits(here, random_texts)
        live.merge()
        assert hits(elsewhere, random_texts) == hits(here, random_texts) == before


def test_a_segment_that_is_begun_while_others_are_removed_stays(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveCollection(collection) as live, ExitStack() as held:
        put(live, random_texts, ["a"], 1)
        publisher = live._running().merge._publisher
        begun: list[Path] = []
        real = remains_module.remove_files

        def begin_meanwhile(paths: Any) -> None:
            monkeypatch.setattr(remains_module, "remove_files", real)
            (id,) = held.enter_context(publisher.naming(1))  # as another thread, without the lock
            begun.append(collection.layout.segment(f"{id}.partial"))
            begun[0].mkdir()
            real(paths)

        monkeypatch.setattr(remains_module, "remove_files", begin_meanwhile)
        live.flush()
        assert begun[0].is_dir()
        held.close()
        put(live, random_texts, ["b"], 2)
        live.flush()
        assert not begun[0].exists()
