"""Builds beside writes: what was written or deleted since a build began stays so."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.errors import (
    CollectionBusyError,
    DamagedIndexError,
    DocumentChangedError,
    FingerprintMismatchError,
)
from tercet.index.live import adoption as adoption_module
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits, WriteKey, Written
from tercet.index.live.statistics import published_statistics
from tercet.index.verify import verify
from tercet.index.writer import SegmentLimits

Model = dict[str, tuple[str, Any]]
NAMES = [f"d{number:02d}" for number in range(30)]


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    settings = make_settings(random_texts(1, 0), "demo", fields={"year": "integer"}, lexical="idf", bm25=True)
    return Collection.create(root, "demo", settings)


@pytest.fixture
def texts(random_texts: Any) -> Callable[[list[str], int], Model]:
    """Contents of documents, which other seeds make differently."""

    def make(ids: list[str], seed: int) -> Model:
        encoded = random_texts(len(ids), seed)
        return {id: (f"text {seed}", encoded.take(np.array([row]))) for row, id in enumerate(ids)}

    return make


def put(live: LiveCollection, model: Model) -> Model:
    for id, (text, encoded) in model.items():
        live.put([Document(id, text, None, {"year": len(text)})], encoded)
    return model


def built(folder: Path, collection: Collection, model: Model, per_segment: int = 7) -> CollectionLayout:
    """A folder with a build of these documents."""
    layout = CollectionLayout(folder)
    folder.mkdir(parents=True)
    collection.settings.write(layout.settings)
    limits = SegmentLimits(documents=per_segment)
    with Collection(layout, collection.settings).writer(limits) as writer:
        for id, (text, encoded) in model.items():
            writer.add([Document(id, text, None, {"year": len(text)})], encoded)
        writer.publish()
    return layout


def answers(snapshot: Any, queries: Any) -> list[Any]:
    found = []
    for row in range(len(queries)):
        result = snapshot.search(queries.take(np.array([row])), text="text 3", top_k=40)
        found.append([(hit.document, hit.score) for hit in result.hits])
    return found


def require_equal(collection: Collection, live: LiveCollection, model: Model, queries: Any) -> None:
    """The live collection, and after a flush the published one, answers as a build of the model."""
    place = Path(tempfile.mkdtemp(dir=collection.layout.folder.parent.parent)) / "expected"
    expected = Collection(built(place, collection, model), collection.settings).snapshot()
    assert live.snapshot().documents == len(model)
    assert answers(live.snapshot(), queries) == answers(expected, queries)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["replace", "upsert"])
@pytest.mark.parametrize("seed", range(2))
def test_writes_beside_a_build_survive_it(
    collection: Collection, root: Path, tmp_path: Path, texts: Any, random_texts: Any, mode: Any, seed: int
) -> None:
    random, queries = np.random.default_rng(seed), random_texts(4, 99)
    limits = LiveLimits(flush_seconds=3600, merge_width=2)  # nothing is published but by what follows
    with LiveCollection(collection, limits) as live:
        model = put(live, texts(NAMES[:20], 1))
        live.delete(NAMES[:3])
        model = {id: kept for id, kept in model.items() if id not in NAMES[:3]}
        for round in range(3):
            build = live.begin_build()
            ids = random.choice(NAMES, 12, replace=False).tolist()
            new = texts(ids, 100 + round)
            source = built(tmp_path / f"build-{round}", collection, new, 5)
            written, deleted = {}, set()
            for step in range(12):
                choice, some = random.random(), random.choice(NAMES, 2, replace=False).tolist()
                if choice < 0.4:
                    written |= put(live, texts(some, 1000 * round + step))
                    deleted -= set(some)
                elif choice < 0.7:
                    live.delete(some)
                    written = {id: kept for id, kept in written.items() if id not in some}
                    deleted |= set(some)
                elif choice < 0.85:
                    live.flush()
                else:
                    live.merge()
            left = {} if mode == "replace" else {k: v for k, v in model.items() if k not in deleted}
            model = left | {k: v for k, v in new.items() if k not in deleted} | written
            name = live.adopt(build, source, mode)
            build.close()
            assert collection.current() == name
            require_equal(collection, live, model, queries)
            assert verify(root, "demo") == []
    with LiveCollection(Collection.open(root, "demo"), limits) as again:
        require_equal(collection, again, model, queries)
        again.flush()
        again.merge()
        require_equal(collection, again, model, queries)
        assert answers(collection.snapshot(), queries) == answers(again.snapshot(), queries)
    assert verify(root, "demo") == []


def test_readers_elsewhere_see_one_moment(
    collection: Collection, tmp_path: Path, texts: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, real = random_texts(4, 99), Publication.publish
    with LiveCollection(collection) as live:
        put(live, texts(NAMES[:5], 1))
        build = live.begin_build()
        new = texts(NAMES[:10], 2)
        source = built(tmp_path / "build", collection, new)
        moment = put(live, texts(NAMES[3:6], 3))

        def write_meanwhile(self: Publication) -> None:
            monkeypatch.setattr(Publication, "publish", real)  # of the flush
            monkeypatch.setattr(Publication, "publish", write_and_publish)
            real(self)

        def write_and_publish(self: Publication) -> None:
            put(live, texts([NAMES[0], "new"], 4))
            live.delete([NAMES[1], NAMES[3]])
            real(self)

        monkeypatch.setattr(Publication, "publish", write_meanwhile)
        live.adopt(build, source)
        monkeypatch.setattr(Publication, "publish", real)
        seen = built(tmp_path / "seen", collection, new | moment)
        expected = Collection(seen, collection.settings).snapshot()
        assert answers(collection.snapshot(), queries) == answers(expected, queries)
        model = new | moment | texts([NAMES[0], "new"], 4)
        model = {id: kept for id, kept in model.items() if id not in (NAMES[1], NAMES[3])}
        require_equal(collection, live, model, queries)
    with LiveCollection(collection) as again:
        require_equal(collection, again, model, queries)


def test_what_was_adopted_counts_as_written_then(collection: Collection, tmp_path: Path, texts: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, texts(["a"], 1))
        build = live.begin_build()
        live.adopt(build, built(tmp_path / "build", collection, texts(["a", "b"], 2)))
        assert live.position == 2
        stored = live.snapshot().stored("b")[1]
        assert stored is not None
        assert stored.position == 2
    with LiveCollection(collection) as again:
        with pytest.raises(DocumentChangedError, match="position 2, after if_position 1"):
            again.patch("b", {}, if_position=1)
        assert again.patch("b", {}, if_position=2).position == 3


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_answers_are_kept_as_long_as_what_they_acknowledge(
    collection: Collection, tmp_path: Path, texts: Any, mode: Any
) -> None:
    before, meanwhile = WriteKey("before", "0" * 64), WriteKey("meanwhile", "1" * 64)
    with LiveCollection(collection) as live:
        for key in (before, meanwhile):
            (id, (text, encoded)) = next(iter(texts([key.key], 1).items()))
            live.put([Document(id, text, None, {"year": 1})], encoded, key=key)
            if key is before:
                build = live.begin_build()
        live.adopt(build, built(tmp_path / "build", collection, texts(["b"], 2)), mode)
        assert live.written_under(before) == (None if mode == "replace" else Written(1, 1))
        assert live.written_under(meanwhile) == Written(2, 1)


def test_a_build_that_replaces_all_forgets_answers(collection: Collection, texts: Any) -> None:
    key, (_, encoded) = WriteKey("before", "0" * 64), texts(["b"], 2)["b"]
    with LiveCollection(collection) as live:
        live.put([Document("a", "a", None, {})], encoded, key=key)
    with collection.writer() as writer:
        writer.add([Document("b", "b", None, {})], encoded)
        writer.publish()
    with LiveCollection(collection) as live:
        assert live.written_under(key) is None


def test_one_build_at_a_time(collection: Collection, tmp_path: Path, texts: Any) -> None:
    with LiveCollection(collection) as live:
        with live.begin_build(), pytest.raises(CollectionBusyError, match="build or restore of collection"):
            live.begin_build()
        with live.begin_build() as build:
            assert live.delete(["a", "a"]) == Written(1, 0)  # it is not there, but the build may bring it
            live.adopt(build, built(tmp_path / "build", collection, texts(["a", "b"], 2)))
        assert live.snapshot().get("a") is None
        assert live._running().committer.state.deleted is None


def test_a_build_with_other_settings_is_refused(
    collection: Collection, tmp_path: Path, texts: Any, random_texts: Any
) -> None:
    layout = built(tmp_path / "build", collection, texts(["a"], 2))
    replace(collection.settings, token_codec="float16").write(layout.settings)
    (tmp_path / "empty").mkdir()
    empty = CollectionLayout(tmp_path / "empty")
    collection.settings.write(empty.settings)
    with LiveCollection(collection) as live, live.begin_build() as build:
        with pytest.raises(FingerprintMismatchError, match="other settings than collection 'demo'"):
            live.adopt(build, layout)
        with pytest.raises(DamagedIndexError, match="no published snapshot"):
            live.adopt(build, empty)
        with pytest.raises(DamagedIndexError, match=r"collection\.json is missing"):
            live.adopt(build, CollectionLayout(tmp_path / "nowhere"))


def test_an_adoption_that_fails_leaves_all_as_it_was(
    collection: Collection,
    root: Path,
    tmp_path: Path,
    texts: Any,
    random_texts: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = random_texts(4, 99)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with LiveCollection(collection) as live:
        model = put(live, texts(NAMES[:5], 1))
        build = live.begin_build()
        new = texts(NAMES[3:9], 2)
        source = built(tmp_path / "build", collection, new)
        for place, name in ((Publication, "publish"), (adoption_module, "link_folder")):
            with monkeypatch.context() as patched:
                patched.setattr(place, name, full)
                with pytest.raises(OSError, match="No space left"):
                    live.adopt(build, source)
            require_equal(collection, live, model, queries)
            assert verify(root, "demo") == []
        live.adopt(build, source)
        require_equal(collection, live, new, queries)
    assert len(list(collection.layout.segments.iterdir())) == 1  # nothing of the failures is left
    assert verify(root, "demo") == []


def test_files_are_linked_or_copied(
    collection: Collection, tmp_path: Path, texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = built(tmp_path / "build", collection, texts(NAMES[:5], 1))
    before = {path.name: path.stat().st_ino for path in source.segments.glob("*/*")}

    def inodes() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in collection.layout.segments.glob("*/*")}

    def no_links(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    with LiveCollection(collection) as live:
        with live.begin_build() as build:
            live.adopt(build, source)
        assert inodes() == before
        monkeypatch.setattr(os, "link", no_links)
        with live.begin_build() as build:
            live.adopt(build, source)
        assert inodes().keys() == before.keys()
        assert set(inodes().values()).isdisjoint(before.values())


def test_merges_and_writers_keep_what_is_being_adopted(
    collection: Collection, root: Path, tmp_path: Path, texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = built(tmp_path / "build", collection, texts(NAMES[:5], 1))
    real = adoption_module._opened
    with LiveCollection(collection, LiveLimits(merge_width=2)) as live:
        for id in ("x", "y"):
            put(live, texts([id], 5))
            live.flush()

        def merge_meanwhile(*arguments: Any) -> Any:
            assert live.merge() == 1
            put(live, texts(["z"], 6))
            live.flush()
            return real(*arguments)

        monkeypatch.setattr(adoption_module, "_opened", merge_meanwhile)
        with live.begin_build() as build:
            live.adopt(build, source)
        assert [document.id for document in live.snapshot().page(None, 10)] == [*NAMES[:5], "z"]
    assert verify(root, "demo") == []


def test_a_build_that_is_closed_waits_for_its_adoption(
    collection: Collection, tmp_path: Path, texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a server ends while one of its threads adopts: deletes must not be forgotten in the middle."""
    source = built(tmp_path / "build", collection, texts(["a", "b"], 1))
    linked = adoption_module.Adoption._linked

    def closed_in_the_middle(self: Any, *args: Any) -> Any:
        entry = linked(self, *args)
        closing.start()
        closing.join(0.2)
        return entry

    monkeypatch.setattr(adoption_module.Adoption, "_linked", closed_in_the_middle)
    with LiveCollection(collection) as live:
        build = live.begin_build()
        live.delete(["a"])
        closing = threading.Thread(target=build.close)
        live.adopt(build, source)
        closing.join()
        assert [each.id for each in live.snapshot().page(None, 9)] == ["b"]
        with pytest.raises(CollectionBusyError, match="was closed"):
            live.adopt(build, source)
        assert [each.id for each in live.snapshot().page(None, 9)] == ["b"]


def rebuilt(collection: Collection, model: Model) -> None:
    """A build of these documents while nobody writes the collection."""
    with collection.writer() as writer:
        for id, (text, encoded) in model.items():
            writer.add([Document(id, text, None, {"year": len(text)})], encoded)
        writer.publish()


@pytest.mark.parametrize("first", ["written", "built"])
def test_a_build_without_a_writer_counts_as_a_write_of_all_its_documents(
    collection: Collection, texts: Any, first: str
) -> None:
    if first == "built":
        rebuilt(collection, texts(["a"], 1))
        assert not collection.layout.ledger.exists()
    else:
        with LiveCollection(collection) as live:
            put(live, texts(["a"], 1))
    with LiveCollection(collection) as live:
        read = live.position
    rebuilt(collection, texts(["a"], 2))
    with LiveCollection(collection) as live:
        assert live.position == read + 1
        stored = live.snapshot().stored("a")[1]
        assert stored is not None
        assert stored.position == read + 1
        with pytest.raises(DocumentChangedError, match=f"position {read + 1}, after if_position {read}"):
            live.patch("a", {"year": 1}, if_position=read)
        assert live.patch("a", {"year": 1}, if_position=read + 1).position == read + 2
    assert verify(collection.layout.folder.parent, "demo") == []
    assert published_statistics(collection).ledger_entries == 1


def test_a_build_over_a_lost_ledger_gives_no_position_again(collection: Collection, texts: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, texts(["a", "b", "c"], 1))
        live.flush()
    collection.layout.ledger.unlink()
    rebuilt(collection, texts(["a"], 2))
    with LiveCollection(collection) as live:
        assert live.position == 4
