"""Documents with several numbers in a field: found alike while live, flushed, merged and patched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify

METADATA: dict[str, dict[str, Any]] = {
    "a": {"year": [2001, 1999], "at": ["2024-05-17 09:30:00", "2020-01-01"]},
    "b": {"year": 2001},
    "c": {"year": []},
    "d": {"year": [1830, 1999, 2020], "at": "2024-05-17T18:30:00+09:00"},
}
FOUND = {
    '{"eq": {"year": 1999}}': ["a", "d"],
    '{"and": [{"eq": {"year": 1999}}, {"gt": {"year": 2010}}]}': ["d"],
    '{"lt": {"at": "2021-01-01"}}': ["a"],
    '{"eq": {"at": "2024-05-17T09:30:00Z"}}': ["a", "d"],
    '{"not": {"exists": "year"}}': ["c"],
}


def found(live: LiveCollection) -> dict[str, list[str]]:
    snapshot = live.snapshot()
    return {
        text: [document.id for document in snapshot.page(None, 10, parse_filter(json.loads(text)))]
        for text in FOUND
    }


@pytest.mark.slow
def test_live_flushed_merged_and_patched(root: Path, random_texts: Any, make_settings: Any) -> None:
    fields = {"year": "integer", "at": "datetime"}
    collection = Collection.create(root, "demo", make_settings(random_texts(1, 0), "demo", fields=fields))
    with LiveCollection(collection) as live:
        for seed, (id, metadata) in enumerate(METADATA.items()):
            live.put([Document(id, f"text {id}", None, metadata)], random_texts(1, seed))
        assert found(live) == FOUND
        for seed in range(8):  # as many segments as are joined
            live.put([Document(f"x{seed}", "none")], random_texts(1, 9 + seed))
            live.flush()
        live.delete([f"x{seed}" for seed in range(8)])
        assert found(live) == FOUND
        assert live.merge() > 0
        assert found(live) == FOUND
        live.update(["b"], {"year": [5, 1999]})
        assert found(live)['{"eq": {"year": 1999}}'] == ["a", "b", "d"]
        live.flush()
        assert found(live)['{"eq": {"year": 1999}}'] == ["a", "b", "d"]
    with LiveCollection(collection) as live:
        assert found(live)['{"eq": {"year": 1999}}'] == ["a", "b", "d"]
    assert verify(root, "demo") == []
