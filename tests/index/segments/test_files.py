"""Small segments are one file, large ones a file for each array; both open and answer alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.catalog.manifest import Manifest
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.segments import files
from tercet.index.segments.files import PACKED_FILE
from tercet.index.verify import verify


def test_the_limit_is_what_the_values_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = ArrayFolder(tmp_path)
    arrays.write("a", np.arange(4))
    arrays.write("b", np.zeros((2, 4), np.float32))
    monkeypatch.setattr(files, "PACKED_BYTES", 63)
    files.pack_small(arrays)
    assert arrays.names() == ["a", "b"]
    monkeypatch.setattr(files, "PACKED_BYTES", 64)
    files.pack_small(arrays)
    assert [path.name for path in tmp_path.iterdir()] == [PACKED_FILE]


def test_both_layouts_answer_alike(
    build: Any, random_corpus: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    corpus = random_corpus(1100, 5)
    fixed = {"fields": {"year": "integer", "tags": "keyword"}, "bm25": True, "lexical": "idf"}
    packed = build(corpus, name="packed", dense_kind="hnsw", **fixed)
    monkeypatch.setattr(files, "PACKED_BYTES", -1)
    apart = build(corpus, name="apart", dense_kind="hnsw", **fixed)
    entries = [Manifest.read(each.layout.manifest("000001")).segments[0] for each in (packed, apart)]
    assert entries[0].files.keys() == {PACKED_FILE, "dense.faiss"}
    assert PACKED_FILE not in entries[1].files
    queries = random_texts(8, 6)
    for row in range(8):
        query = queries.take(np.array([row]))
        one, other = (each.snapshot().search(query, text="text 7 12").hits for each in (packed, apart))
        assert [(hit.document, hit.score) for hit in one] == [(hit.document, hit.score) for hit in other]
    assert verify(root, "packed") == verify(root, "apart") == []


@pytest.mark.parametrize("size", [0, 1000])
def test_a_truncated_file_is_named(build: Any, three: Any, root: Path, size: int) -> None:
    collection = build(three)
    (file,) = collection.layout.segments.glob("*/*")
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DamagedIndexError, match=rf"{PACKED_FILE} has {size} bytes, but was published with"):
        collection.snapshot()
    assert PACKED_FILE in verify(root, "demo")[0]
    file.unlink()
    with pytest.raises(DamagedIndexError, match=f"{PACKED_FILE} is missing"):
        collection.snapshot()
