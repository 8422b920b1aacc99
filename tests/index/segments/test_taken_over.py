"""Segments that a new snapshot takes over from the one before: nothing is opened again but delete marks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Weights
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.files import array_folder, content, mapping, packed_arrays
from tercet.index.segments import files as segment_files
from tercet.index.segments.deletes import write_deletes
from tercet.index.snapshot import Snapshot


@pytest.fixture
def collection(build: Any, random_corpus: Any) -> Any:
    """Two segments of 1,000 and 100 documents, the first with a graph."""
    return build(random_corpus(1100, 3), segment=1000, dense_kind="hnsw", lexical="idf", bm25=True)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are mapped or hashed."""
    paths: list[Path] = []

    def noted(function: Any) -> Any:
        def call(path: Path) -> Any:
            paths.append(path)
            return function(path)

        return call

    for module in (array_folder, packed_arrays):
        monkeypatch.setattr(module, "map_file", noted(mapping.map_file))
    monkeypatch.setattr(segment_files, "sha256_of", noted(content.sha256_of))
    return paths


def publish(collection: Collection, change: Any) -> None:
    """Publishes the current segments, the first of which is changed."""
    manifest = collection.manifest()
    assert manifest is not None
    first, *others = manifest.segments
    name = f"{int(manifest.name) + 1:06d}"
    entries = (change(first, name), *others)
    Publication(collection.layout, "demo", Manifest(name, collection.settings.sha256, entries, 0)).publish()


def delete(collection: Collection, *rows: int) -> None:
    """Publishes the first segment with exactly these rows deleted."""

    def marked(entry: SegmentEntry, name: str) -> SegmentEntry:
        deletes = write_deletes(collection.layout, entry.id, name, np.array(rows)) if rows else None
        return replace(entry, deletes=deletes)

    publish(collection, marked)


def hits(snapshot: Snapshot, queries: Any) -> list[Any]:
    found = []
    for row in range(len(queries)):
        query = queries.take(np.array([row]))
        result = snapshot.search(query, text="text 7 12", weights=Weights(1, 1, 1, 1))
        found.append([(hit.document, hit.score, hit.scores) for hit in result.hits])
    return found


def test_only_new_delete_marks_are_read(
    collection: Collection, random_texts: Any, opened: list[Path]
) -> None:
    former, queries = collection.snapshot(), random_texts(4, 6)
    parts = [segment.inverted for segment in former._opened()]
    assert {path.name for path in opened} == {"arrays.safetensors", "dense.faiss"}
    for rows in ((), (4, 9), (4, 9), (4, 9, 500)):
        delete(collection, *rows)
        opened.clear()
        snapshot = collection.snapshot(former=former.published_segments())
        assert {path.parent for path in opened} == ({collection.layout.deletes} if rows else set())
        assert [segment.inverted for segment in snapshot._opened()] == parts
        assert snapshot.documents == 1100 - len(rows)
        assert hits(snapshot, queries) == hits(collection.snapshot(), queries)
        former = snapshot


def test_a_segment_without_change_stays_the_same_object(collection: Collection) -> None:
    delete(collection, 7)
    former = collection.snapshot()
    publish(collection, lambda entry, _: entry)
    again = collection.snapshot(former=former.published_segments())
    assert again.name == "000003"
    assert all(now is then for now, then in zip(again._opened(), former._opened(), strict=True))


def test_rows_that_come_back_need_another_segment(collection: Collection, random_texts: Any) -> None:
    delete(collection, 4, 9)
    former, queries = collection.snapshot(), random_texts(4, 6)
    delete(collection, 9)
    snapshot = collection.snapshot(former=former.published_segments())
    assert snapshot.documents == 1099
    assert hits(snapshot, queries) == hits(collection.snapshot(), queries)


def test_a_segment_of_the_same_name_and_other_files_is_opened(collection: Collection) -> None:
    former = collection.snapshot().published_segments()
    first = next(iter(former.values()))
    assert first.entry is not None
    other = {**first.entry.files}
    name = next(iter(other))
    other[name] = replace(other[name], sha256="0" * 64)
    changed = {first.entry.id: replace(first, entry=replace(first.entry, files=other))}
    found, _ = collection.snapshot(former=changed)._opened()
    assert found.inverted is not first.inverted
    kept, _ = collection.snapshot(former={first.entry.id: first})._opened()
    assert kept is first


def test_what_the_new_snapshot_lacks_is_let_go_of_first(
    collection: Collection, three: Any, build: Any
) -> None:
    former = collection.snapshot().published_segments()
    assert len(former) == 2
    publish(collection, lambda entry, _: entry)
    collection.snapshot(former=former)
    assert len(former) == 2
    with collection.writer() as writer:
        writer.publish()
    assert collection.snapshot(former=former).documents == 0
    assert former == {}


def test_segments_in_memory_and_of_closed_snapshots_are_not_given(collection: Collection) -> None:
    snapshot = collection.snapshot()
    first, second = snapshot._opened()
    in_memory = type(first).in_memory([second.take(np.arange(5))], collection.settings)
    assert len(Snapshot("000001", collection.settings, [in_memory, second]).published_segments()) == 1
    snapshot.close()
    assert snapshot.published_segments() == {}
