"""What a collection of documents in windows stores, counts and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError, InvalidDocumentError, SearchIndexError
from tercet.index.inspection import inspect_collection
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows, largest_weights
from tercet.models.representations import Int64, SparseRows
from tests.index.windows.conftest import Windowed


def test_collections_without_windows_keep_their_files(build: Any, three: Any, make_settings: Any) -> None:
    collection = build(three)
    (file,) = collection.layout.segments.glob("*/*")
    assert not any(name.startswith("window") for name in load_file(file))
    assert "window" not in json.loads(collection.layout.settings.read_bytes())
    record = json.loads(collection.layout.manifest("000001").read_bytes())
    assert "windows" not in record["segments"][0]


def test_settings_and_counts_come_back(build_windowed: Any, two: Windowed, root: Path) -> None:
    collection = build_windowed(two)
    assert json.loads(collection.layout.settings.read_bytes())["window"] == {"tokens": 16, "overlap": 4}
    assert Collection.open(root, "demo").settings.window == WindowSettings(16, 4)
    found = inspect_collection(root, "demo")
    assert (found.documents, found.windows, found.segments[0].windows) == (2, 4, 4)
    assert "windows" in found.part_bytes
    collection.layout.settings.write_text(
        collection.layout.settings.read_text().replace('"overlap": 4', '"overlap": 13')
    )
    with pytest.raises(DamagedIndexError, match=r"window.overlap is 13; use an integer from 0 to 12"):
        Collection.open(root, "demo")


@pytest.mark.parametrize(
    ("tokens", "overlap"), [(7, 0), (0, 0), (True, 0), (256.0, 0), (256, -1), (256, 193)]
)
def test_windows_out_of_range_are_refused(tokens: Any, overlap: Any) -> None:
    with pytest.raises(ValueError, match=r"window\.(tokens|overlap) is"):
        WindowSettings(tokens, overlap)


def test_windows_must_fit_their_documents(
    build_windowed: Any, two: Windowed, root: Path, make_settings: Any
) -> None:
    documents, encoded, windows = two
    collection = build_windowed(two)

    def refused(match: str, **changes: Int64) -> None:
        values = {"offsets": windows.offsets, "spans": windows.spans, **changes}
        with collection.writer() as writer, pytest.raises(InvalidDocumentError, match=match):
            writer.add(documents, encoded, DocumentWindows(**values))

    refused("'note': it has no window", offsets=np.array([0, 4, 4]))
    refused("window offsets must ascend from 0 to 4", offsets=np.array([0, 2, 3]))
    refused("'note': a window lies outside", spans=windows.spans + np.array([[0, 0], [0, 0], [0, 0], [0, 1]]))
    refused("'book': a window lies outside", spans=windows.spans - np.array([[1, 0], [0, 0], [0, 0], [0, 0]]))
    with collection.writer() as writer:
        with pytest.raises(InvalidDocumentError, match="2 windows came with 4 representations"):
            writer.add(documents, encoded)
        with pytest.raises(InvalidDocumentError, match="4 windows came with 3 representations"):
            writer.add(documents, encoded.take(np.arange(3)), windows)
    plain = Collection.create(root, "plain", make_settings(encoded, "plain"))
    with plain.writer() as writer, pytest.raises(InvalidDocumentError, match="has no windows"):
        writer.add(documents, encoded, windows)


def test_where_a_document_has_several_windows_none_is_left_out(build_windowed: Any, two: Windowed) -> None:
    snapshot = build_windowed(two).snapshot()
    assert snapshot.undivided() is snapshot


def test_a_document_that_has_begun_must_be_finished(
    build_windowed: Any, windows_between: Any, two: Windowed
) -> None:
    collection = build_windowed(two)
    with collection.writer() as writer:
        writer.add(*windows_between(two, 0, 2))
        with pytest.raises(SearchIndexError, match="'book' lacks its last windows; add them"):
            writer.publish()
        with pytest.raises(InvalidDocumentError, match="'book' lacks its last windows; begin"):
            writer.add(*windows_between(two, 3, 4))
        writer.add(*windows_between(two, 2, 4))
        assert writer.documents == 2
        writer.publish()
    assert collection.snapshot().documents == 2


def test_a_document_stays_in_one_segment(build_windowed: Any, windowed_corpus: Any) -> None:
    """Segments roll by windows, after the document that reaches the limit."""
    corpus = windowed_corpus(30, 8)
    collection = build_windowed(corpus, batch=2, segment=9)
    segments = Manifest.read(collection.layout.manifest("000001")).segments
    assert all(9 <= (segment.windows or 0) < 9 + 6 for segment in segments[:-1])


def test_the_largest_weight_of_each_term_is_kept() -> None:
    rows = SparseRows(
        np.array([0, 2, 4, 4, 5]),
        np.array([3, 7, 3, 9, 7], np.int32),
        np.array([0.5, 2.0, 0.75, 1.0, 0.25], np.float32),
    )
    largest = largest_weights(rows, np.array([0, 3, 4]))
    assert largest.indptr.tolist() == [0, 3, 4]
    assert largest.token_ids.tolist() == [3, 7, 9, 7]
    assert largest.weights.tolist() == [0.75, 2.0, 1.0, 0.25]
    assert len(largest_weights(rows.take(np.array([2])), np.array([0, 1])).token_ids) == 0
