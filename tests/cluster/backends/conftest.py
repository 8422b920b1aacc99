"""Collections of a tiny encoder, and the same ones as engines hold them after an export."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.transfer.push import export

pytest.importorskip("qdrant_client", reason="install tercet[qdrant]")
pytest.importorskip("milvus_lite", reason="install tercet[milvus]")


import pytest

from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import Engine, Replication
from tercet.cluster.backends.milvus.engine import MilvusEngine
from tercet.cluster.backends.qdrant.engine import QdrantEngine
from tercet.cluster.backends.snapshot import EngineSnapshot
from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.milvus.target import MilvusTarget
from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.qdrant.target import QdrantTarget

WORDS = ["tea", "water", "hot", "brew", "train", "rail", "station", "green", "leaf", "black", "steam", "the"]
FIELDS = {
    "year": "integer",
    "kind": "keyword",
    "price": "number",
    "sold": "boolean",
    "made": "datetime",
    "big": "integer",
    "a.b [0]": "keyword",
    'a "quoted" one': "keyword",
}
STRINGS = ["a", "b", "c", 'say "hot"\\\n', "café\t", ""]
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"fields": FIELDS, "window": False},
    "idf": {"fields": FIELDS, "lexical": "idf", "bm25": True, "window": False},
    "float16": {"fields": FIELDS, "token_codec": "float16", "window": False},
    "pooled": {"fields": FIELDS, "token_pooling": 2, "window": False},
    "none": {"fields": FIELDS, "token_codec": "none", "window": False},
    "whole": {"fields": FIELDS, "window": WindowSettings(32, 4), "lexical": "idf"},
    "windows": {"fields": FIELDS, "window": WindowSettings(12, 4), "lexical": "idf"},
}
MOMENTS = [
    "2024-05-17T09:30:00Z",
    "2024-05-17 18:30:00.25+09:00",
    "2024-05-17",
    "2023-01-01T00:00:00.1234567",
    "2024-05-17 07:30:00-02",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """One collection twice."""

    own: Snapshot
    there: EngineSnapshot


Push = Callable[[str, Snapshot], Engine]


def documents() -> list[dict[str, Any]]:
    """Sixty, of few words, so that some are equal and many scores are."""
    random = np.random.default_rng(7)
    found = []
    for number in range(60):
        words = " ".join(random.choice(WORDS, random.integers(2, 26)))
        metadata: dict[str, Any] = {"n": {"x": [1, None]}}
        if number % 5:
            metadata["year"] = [2000 + number, 1990] if number % 11 == 0 else 2000 + number
        if number % 7:
            metadata["kind"] = ["a", "b"] if number % 2 else "c"
        if number % 3:
            metadata["price"] = number / 4 if number % 4 else number
            metadata["sold"] = number % 2 == 0
            metadata["made"] = MOMENTS[number % 5]
            metadata["big"] = 2**53 + number - 30
            metadata["a.b [0]"] = STRINGS[number % 6]
            metadata['a "quoted" one'] = [STRINGS[number % 6], STRINGS[number % 5]]
        if number % 13 == 0:
            metadata |= {"kind": None, "year": [], "price": None}
        if number % 17 == 0:
            metadata |= {"year": 2000.0 + number, "made": [MOMENTS[0], "2020-01-01"], "kind": []}
        title = f"{words.split()[0]} {number}" if number % 3 else None
        found.append({"id": f"d/{number} é", "title": title, "text": words, "metadata": metadata})
    found.append({**found[3], "id": "d/copy"})
    return found


@pytest.fixture
def make(tmp_path: Path, tiny: Any) -> Callable[[str], Snapshot]:
    """Builds a collection of a kind."""

    def made(kind: str) -> Snapshot:
        source = tmp_path / f"{kind}.jsonl"
        source.write_text("\n".join(map(json.dumps, documents())), encoding="utf-8")
        build_collection(LocalDocuments(tiny), tmp_path / "collections", kind, source, **KINDS[kind])
        return Collection.open(tmp_path / "collections", kind).snapshot()

    return made


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Push]:
    """Exports a snapshot to an engine, by the engine's name, and opens that.

    `qdrant-late` is Qdrant that computes late interaction, as servers do.
    """
    opened: list[Engine] = []

    def pushed(engine: str, snapshot: Snapshot) -> Engine:
        settings = snapshot.undivided().settings
        name = settings.name
        if engine in ("qdrant", "qdrant-late"):
            place = QdrantPlace(path=str(tmp_path / "qdrant"))
            export(snapshot, QdrantTarget(place, name, settings, 16))
            opened.append(QdrantEngine(place, late=engine == "qdrant-late"))
        else:
            where = MilvusPlace(str(tmp_path / "milvus.db"))
            export(snapshot, MilvusTarget(where, name, settings, 16))
            opened.append(MilvusEngine(where))
        return opened[-1]

    yield pushed
    for each in opened:
        each.close()


@pytest.fixture
def pair(make: Callable[[str], Snapshot], engines: Push) -> Callable[[str, str], Pair]:
    """A collection of a kind, here and in an engine."""

    def paired(engine: str, kind: str) -> Pair:
        own = make(kind)
        return Pair(own, EngineCollections(engines(engine, own)).snapshot(kind))

    return paired


@pytest.fixture
def queries() -> list[str]:
    """Ten texts."""
    random = np.random.default_rng(3)
    return [" ".join(random.choice(WORDS, random.integers(1, 6))) for _ in range(10)]


@pytest.fixture(params=["qdrant", "milvus"])
def engine(request: Any, tmp_path: Path) -> Iterator[Engine]:
    """One whose collections are to be read with the weakest consistency."""
    opened: Engine
    if request.param == "qdrant":
        opened = QdrantEngine(QdrantPlace(path=str(tmp_path / "points")), Replication(consistency="1"))
    else:
        opened = MilvusEngine(MilvusPlace(str(tmp_path / "rows.db")), Replication(consistency="Eventually"))
    yield opened
    opened.close()


@pytest.fixture
def settings(tiny: Any) -> CollectionSettings:
    info = tiny.info
    return CollectionSettings(
        "notes",
        info.name,
        info.fingerprint,
        info.dense_dimension,
        info.colbert_dimension,
        info.vocabulary_size,
        lexical="idf",
        bm25=True,
        fields={"year": "integer"},
    )


@pytest.fixture
def any_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that wrote just now is quiet for long."""
    for name, seconds in (("QUIET", -1.0), ("TURN", -1.0), ("SETTLE", 0.0)):
        monkeypatch.setattr(f"tercet.cluster.backends.turns.{name}_SECONDS", seconds)
