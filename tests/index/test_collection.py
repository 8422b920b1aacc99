"""Collections: created, opened, listed and deleted by name; damage is named, publications do no harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection, delete_collection, list_collections
from tercet.index.errors import (
    CollectionBusyError,
    CollectionExistsError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidNameError,
)
from tercet.index.files.lock import ExclusiveLock


def test_a_collection_is_created_once_and_opened(root: Path, three: Any, make_settings: Any) -> None:
    settings = make_settings(three[1], "demo", fields={"year": "integer"})
    created = Collection.create(root, "demo", settings)
    assert created.current() is None
    assert Collection.open(root, "demo") == created
    with pytest.raises(CollectionExistsError, match="'demo' exists already"):
        Collection.create(root, "demo", settings)
    with pytest.raises(InvalidNameError, match="name the collection 'demo', not 'other'"):
        Collection.create(root, "other", settings)


def test_a_collection_that_is_being_written_exists(root: Path, three: Any, make_settings: Any) -> None:
    settings = make_settings(three[1], "demo")
    created = Collection.create(root, "demo", settings)
    lock = ExclusiveLock(created.layout.lock, "collection 'demo'")
    lock.acquire()  # as whoever writes it does, in this process or another
    try:
        with pytest.raises(CollectionExistsError, match="'demo' exists already"):
            Collection.create(root, "demo", settings)
    finally:
        lock.release()


def test_a_creation_that_was_killed_can_be_repeated(root: Path, three: Any, make_settings: Any) -> None:
    (root / "demo").mkdir(parents=True)
    (root / "demo" / ".collection.json.0a.new").write_bytes(b"{")
    with pytest.raises(CollectionNotFoundError):
        Collection.open(root, "demo")
    Collection.create(root, "demo", make_settings(three[1], "demo"))
    assert list_collections(root) == ["demo"]


@pytest.mark.parametrize(
    "name", ["", "..", "../demo", "demo/../demo", "/etc", "a/b", "Demo", "demo\x00", "."]
)
def test_path_like_names_are_refused_everywhere(
    root: Path, build: Any, three: Any, make_settings: Any, name: str
) -> None:
    build(three)
    settings = make_settings(three[1], "demo")
    for action in (
        lambda: Collection.create(root, name, settings),
        lambda: Collection.open(root, name),
        lambda: delete_collection(root, name),
    ):
        with pytest.raises(InvalidNameError, match="does not match"):
            action()
    assert list_collections(root) == ["demo"]


def test_missing_collections_are_named(root: Path, tmp_path: Path) -> None:
    for action in (lambda: Collection.open(root, "none"), lambda: delete_collection(root, "none")):
        with pytest.raises(CollectionNotFoundError, match="'none' does not exist"):
            action()
    assert list_collections(root) == []
    root.mkdir()
    (root / "none").write_bytes(b"a file")
    with pytest.raises(CollectionNotFoundError):
        Collection.open(root, "none")


def test_listing_shows_collections_only(root: Path, build: Any, three: Any) -> None:
    build(three, name="b")
    build(three, name="a")
    (root / "empty").mkdir()
    (root / ".deleted-c-00").mkdir()
    (root / ".deleted-c-00" / "collection.json").write_bytes(b"{}")
    assert list_collections(root) == ["a", "b"]


def test_deletion_removes_everything_and_open_snapshots_go_on(
    root: Path, build: Any, three: Any, three_query: Any
) -> None:
    collection = build(three)
    snapshot = collection.snapshot()
    (root / ".deleted-old-00").mkdir()  # of a deletion that was killed
    delete_collection(root, "demo")
    assert {path.name for path in root.iterdir()} == {"aliases.lock", "deleted.json"}
    assert len(snapshot.search(three_query).hits) == 3
    with pytest.raises(CollectionNotFoundError, match="was deleted"):
        collection.current()
    with pytest.raises(CollectionNotFoundError), collection.writer():
        pass
    build(three)
    assert collection.current() == "000001"


def test_a_collection_created_anew_is_not_read_with_former_settings(
    root: Path, build: Any, three: Any
) -> None:
    former = build(three, fields={"year": "integer"})
    delete_collection(root, "demo")
    build(three, fields={"price": "number"})
    with pytest.raises(DamagedIndexError, match=r"collection\.json is not the one"):
        former.snapshot()


def test_a_snapshot_that_lost_its_settings_is_not_adopted(
    root: Path, build: Any, three: Any, make_settings: Any
) -> None:
    build(three).layout.settings.unlink()
    with pytest.raises(DamagedIndexError, match=r"collection\.json is missing, but .*CURRENT"):
        Collection.create(root, "demo", make_settings(three[1], "demo"))


def test_a_collection_is_not_deleted_under_its_writer(root: Path, build: Any, three: Any) -> None:
    collection = build(three)
    with collection.writer() as writer:
        with pytest.raises(CollectionBusyError, match="'demo' is being written"):
            delete_collection(root, "demo")
        writer.add(three[0], three[1])
        writer.publish()
    assert collection.current() == "000002"


def test_opening_tries_again_when_a_publication_removes_its_files(
    build: Any, three: Any, publish_at_next_reading: Any
) -> None:
    collection = build(three)
    publish_at_next_reading(three)
    assert collection.snapshot().name == "000002"


@pytest.mark.parametrize("content", [b"", b"7", b"../../etc/passwd", b"000001x", b"000001 \n", b"\xff\xfe"])
def test_an_altered_current_file_is_damage(build: Any, three: Any, content: bytes) -> None:
    collection = build(three)
    collection.layout.current.write_bytes(content)
    with pytest.raises(DamagedIndexError, match="CURRENT"):
        collection.snapshot()
    build(three)  # a rebuild repairs it
    assert collection.snapshot().documents == 3


def test_settings_of_another_collection_are_damage(root: Path, build: Any, three: Any) -> None:
    build(three)
    (root / "demo").rename(root / "other")
    with pytest.raises(DamagedIndexError, match="belongs to collection 'demo', not 'other'"):
        Collection.open(root, "other")


def test_every_truncated_or_missing_file_is_named_when_opening(
    build: Any, random_corpus: Any, root: Path
) -> None:
    fields = {"year": "integer", "tags": "keyword"}
    collection = build(random_corpus(1200, 1), dense_kind="hnsw", fields=fields)
    manifest = Manifest.read(collection.layout.manifest("000001"))
    folder = collection.layout.segments / manifest.segments[0].id
    assert {path.name for path in folder.iterdir()} == manifest.segments[0].files.keys()
    for name in manifest.segments[0].files:
        path = folder / name
        content = path.read_bytes()
        for size in (0, len(content) // 2, len(content) - 1):
            os.truncate(path, size)
            with pytest.raises(DamagedIndexError, match=name):
                collection.snapshot()
            path.write_bytes(content)
        path.unlink()
        with pytest.raises(DamagedIndexError, match=f"{name} is missing"):
            collection.snapshot()
        path.write_bytes(content)
    assert collection.snapshot().documents == 1200


def test_an_altered_graph_is_refused_before_faiss_reads_it(build: Any, random_corpus: Any) -> None:
    collection = build(random_corpus(1200, 1), dense_kind="hnsw")
    path = next(collection.layout.segments.glob("*/dense.faiss"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(DamagedIndexError, match=r"dense\.faiss does not have the checksum"):
        collection.snapshot()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "ivfrabitq"])
def test_all_dense_kinds_build_and_search(build: Any, random_corpus: Any, kind: str) -> None:
    documents, encoded = random_corpus(1500, 11)
    snapshot = build((documents, encoded), dense_kind=kind).snapshot()
    found = sum(
        snapshot.search(encoded.take(np.array([row])), top_k=1).hits[0].document == documents[row]
        for row in range(0, 1500, 100)
    )
    assert found >= 14
