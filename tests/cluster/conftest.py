"""What tests of collections in shards share: sources, and shards as collections of this machine."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.objects.opening import open_store
from cluster.shards.map import newest_map
from cluster.snapshots.pulling import pull
from index.collection import Collection
from index.snapshot import Snapshot
from index.verify import verify

WORDS = ("tea", "water", "train", "steam", "leaf", "green", "black", "station", "hot", "brew")
FIRST = np.array([0])


@pytest.fixture
def write_source(tmp_path: Path) -> Callable[..., Path]:
    """Writes documents of varied length, each with its number in its text; the ids begin with a letter."""

    def write(count: int, name: str = "x.jsonl", start: int = 0) -> Path:
        lines = [
            {"id": f"d{i:04d}", "text": " ".join(WORDS[(i * k) % 10] for k in range(1, 2 + i % 9)) + f" {i}"}
            | ({"title": f"tea {i % 5}"} if i % 3 else {})
            | {"year": 1900 + i % 50}
            for i in range(start, start + count)
        ]
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def pull_shards(tmp_path: Path) -> Iterator[Callable[[str], list[Snapshot]]]:
    """Pulls every shard that the newest map of a URL names, verifies it, and opens its snapshot."""
    opened: list[Snapshot] = []

    def pull_all(url: str) -> list[Snapshot]:
        store = open_store(url)
        shards = newest_map(store)
        assert shards is not None
        found = []
        for number, shard in enumerate(shards.shards):
            root = tmp_path / "pulled" / f"{shards.version}-{len(opened)}-{number}" / "collections"
            root.mkdir(parents=True)
            pull(root, shards.collection, store.below(shard.snapshots), root.parent / "stages")
            assert verify(root, shards.collection) == []
            found.append(Collection.open(root, shards.collection).snapshot())
        opened.extend(found)
        return found

    yield pull_all
    for snapshot in opened:
        snapshot.close()


@pytest.fixture(scope="session")
def stored() -> Callable[[Snapshot], dict[str, Any]]:
    """All that a snapshot stores of each document, by id, as bytes."""

    def of(snapshot: Snapshot) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for rows in snapshot.rows(1, 1):
            tokens = rows.tokens
            offsets = (0, 0) if tokens is None else (tokens.offsets[0], tokens.offsets[-1])
            (id,) = rows.ids.take(FIRST)
            assert id.decode() not in found
            found[id.decode()] = (
                bytes(rows.contents.take(FIRST)[0]),
                rows.dense.tobytes(),
                rows.sparse.token_ids.tobytes(),
                rows.sparse.weights.tobytes(),
                None if tokens is None else tokens.codes[offsets[0] : offsets[1]].tobytes(),
                None if rows.windows is None else rows.windows.spans.tobytes(),
            )
        return found

    return of
