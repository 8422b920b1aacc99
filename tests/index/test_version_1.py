"""A collection that a release of format version 1 wrote opens as it is, and becomes version 2 when written.

`data/version-1.tar.gz` holds the three documents of the fixture `three`, but for their texts, in two segments
with idf and BM25.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Weights
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.verify import verify
from tercet.models.representations import Representations

ARCHIVE = Path(__file__).parent / "data" / "version-1.tar.gz"


@pytest.fixture
def old(root: Path) -> Collection:
    root.mkdir()
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    return Collection.open(root, "version-1")


def test_it_opens_and_answers(old: Collection, root: Path, three_query: Representations) -> None:
    assert verify(root, "version-1") == []
    snapshot = old.snapshot()
    hits = snapshot.search(three_query, text="apples", weights=Weights(1, 1, 1, 1)).hits
    assert [hit.document.id for hit in hits] == ["c", "a", "b"]
    assert [hit.scores.dense for hit in hits] == [0.5, 1.0, 0.0]
    assert [hit.scores.bm25 > 0 for hit in hits if hit.scores.bm25 is not None] == [True, True, False]
    red = snapshot.search(three_query, filter=parse_filter({"eq": {"tags": "red"}})).hits
    assert [hit.document.title for hit in red] == ["Fruit"]
    assert all((segment.positions == 0).all() for segment in snapshot._opened())


def test_a_build_makes_it_version_2(
    old: Collection, root: Path, three: Any, three_query: Representations
) -> None:
    before = old.snapshot().search(three_query, weights=Weights(1, 1, 1, 1), text="apples")
    documents, encoded = three
    same = [old.snapshot().get(document.id) for document in documents]
    with old.writer() as writer:
        writer.add(same, encoded.take(np.arange(3)))
        writer.publish()
    assert json.loads(old.layout.manifest("000002").read_text())["format_version"] == 2
    assert verify(root, "version-1") == []
    after = old.snapshot().search(three_query, weights=Weights(1, 1, 1, 1), text="apples")
    assert after.hits == before.hits
