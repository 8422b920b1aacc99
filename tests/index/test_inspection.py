"""What `tercet collection show` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.index.inspection import inspect_collection


@pytest.mark.parametrize("layout", ["files", "packed"])
def test_counts_kinds_and_sizes(
    request: pytest.FixtureRequest, build: Any, three: Any, root: Path, layout: str
) -> None:
    if layout == "files":
        request.getfixturevalue("segments_of_files")
    collection = build(three, segment=2, fields={"year": "integer"})
    found = inspect_collection(root, "demo")
    assert found.settings == collection.settings
    assert found.snapshot == "000001"
    assert [(s.documents, s.tokens, s.dense_kind) for s in found.segments] == [(2, 3, "flat"), (1, 1, "flat")]
    assert (found.documents, found.tokens) == (3, 4)
    assert set(found.part_bytes) - {"headers"} == {
        "dense",
        "sparse, forward",
        "sparse, inverted",
        "token vectors",
        "documents",
        "fields",
    }
    on_disk = sum(path.stat().st_size for path in collection.layout.segments.rglob("*.*"))
    assert found.total_bytes == on_disk
    values = 3 * 2 * 2
    assert found.part_bytes["dense"] == (2 * 128 + values if layout == "files" else values)
    assert ("headers" in found.part_bytes) == (layout == "packed")


def test_the_dense_kind_is_explained(build: Any, three: Any, root: Path) -> None:
    build(three, segment=2)
    found = inspect_collection(root, "demo")
    assert (found.dense_kind[0], dict(found.dense_vectors)) == ("flat", {"flat": 3})
    assert found.dense_kind[1].startswith("3 vectors; up to 20,000")


def test_a_publication_meanwhile_is_no_damage(
    build: Any, three: Any, root: Path, publish_at_next_reading: Any
) -> None:
    build(three)
    publish_at_next_reading(three)
    assert inspect_collection(root, "demo").snapshot == "000002"


def test_a_collection_without_a_snapshot(root: Path, three: Any, make_settings: Any) -> None:
    Collection.create(root, "demo", make_settings(three[1], "demo"))
    found = inspect_collection(root, "demo")
    assert (found.snapshot, found.documents, found.segments, found.total_bytes) == (None, 0, [], 0)
    with pytest.raises(CollectionNotFoundError):
        inspect_collection(root, "none")
