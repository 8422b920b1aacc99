"""Delete marks on disk: they come back, and anything else is damage."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError
from tercet.index.segments.deletes import read_deletes, write_deletes
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify


@pytest.fixture
def marked(build: Any, random_corpus: Any) -> Any:
    """A collection of 30 documents in two segments, three of the first one deleted by another manifest."""

    def mark(rows: list[int]) -> Collection:
        collection: Collection = build(random_corpus(30, 1), segment=20, lexical="idf", bm25=True)
        manifest = collection.manifest()
        assert manifest is not None
        first = manifest.segments[0]
        deletes = write_deletes(collection.layout, first.id, "000002", np.array(rows))
        segments = (dataclasses.replace(first, deletes=deletes), *manifest.segments[1:])
        later = dataclasses.replace(manifest, name="000002", segments=segments)
        later.write(collection.layout.manifest("000002"))
        collection.layout.current.write_text("000002\n")
        return collection

    return mark


def test_marked_rows_are_gone(marked: Any, root: Any) -> None:
    collection = marked([0, 7, 19])
    manifest, snapshot = collection.manifest(), collection.snapshot()
    assert manifest is not None
    assert read_deletes(collection.layout, manifest.segments[0]).tolist() == [0, 7, 19]
    assert (snapshot.documents, manifest.documents) == (27, 27)
    whole = Snapshot.open(collection.layout, collection.settings, "000001")
    kept = {id for row, id in enumerate(ids_of(whole)) if row not in (0, 7, 19)}
    assert set(ids_of(snapshot)) == kept
    assert snapshot.get(ids_of(whole)[7]) is None
    assert verify(root, "demo") == []


def ids_of(snapshot: Snapshot) -> list[str]:
    """All ids, segment by segment."""
    segments = snapshot._opened()
    return [id for segment in segments for id in segment.documents.ids_of(segment.rows_kept())]


def test_altered_marks_are_damage(marked: Any, root: Any) -> None:
    collection = marked([0, 7, 19])
    (path,) = collection.layout.deletes.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"\x01")
    with pytest.raises(DamagedIndexError, match=f"{path.name} was altered"):
        collection.snapshot()
    assert path.name in verify(root, "demo")[0]
    path.unlink()
    with pytest.raises(DamagedIndexError, match=f"{path.name} is missing"):
        collection.snapshot()


@pytest.mark.parametrize("rows", [[3, 3], [4, 2], [-1], [20]])
def test_rows_that_no_writer_gives_are_damage(marked: Any, rows: list[int]) -> None:
    collection = marked(rows)
    with pytest.raises(DamagedIndexError, match="does not name distinct rows"):
        collection.snapshot()
