"""Collections to export, and what printed scripts print."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Hit
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.encoder import encode
from tercet.models.representations import Representations
from tercet.transfer.queries import CollectionQuery

WORDS = ["tea", "water", "hot", "brew", "train", "rail", "station", "green", "leaf", "black", "steam", "the"]
ALL = CandidateLimits(10_000, 10_000)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"fields": {"year": "integer", "kind": "keyword"}, "window": False},
    "idf": {"lexical": "idf", "bm25": True, "window": False},
    "float16": {"token_codec": "float16", "lexical": "idf", "window": False},
    "none": {"token_codec": "none", "window": False},
    "windows": {"window": WindowSettings(12, 4), "lexical": "idf"},
    "pooled": {"token_codec": "int8", "token_pooling": 2, "window": False},
}

Make = Callable[[str], Collection]
Ask = Callable[[Snapshot, str], CollectionQuery]


@pytest.fixture
def make(tmp_path: Path, tiny: Any) -> Make:
    """Builds a collection of a kind: 57 documents, some of them deleted since, in two segments."""

    def made(kind: str) -> Collection:
        random, source = np.random.default_rng(7), tmp_path / f"{kind}.jsonl"
        with source.open("w", encoding="utf-8") as file:
            for number in range(60):
                words = " ".join(random.choice(WORDS, random.integers(2, 26)))
                title = f"{words.split()[0]} {number}" if number % 3 else None
                metadata = {
                    "year": 2000 + number,
                    "kind": ["a", "b"] if number % 2 else "c",
                    "n": {"x": [1, None]},
                }
                record = {"id": f"d/{number} é", "title": title, "text": words, "metadata": metadata}
                file.write(json.dumps(record) + "\n")
        root, encoder = tmp_path / "collections", LocalDocuments(tiny)
        build_collection(encoder, root, kind, source, **KINDS[kind])
        collection = Collection.open(root, kind)
        lines = source.read_text(encoding="utf-8").splitlines()[:5]
        source.write_text("\n".join(lines).replace("d/0", "new/0"), encoding="utf-8")
        build_collection(encoder, root, kind, source, mode="upsert")
        with LiveCollection(collection) as live:
            live.delete(["d/7 é", "d/8 é", "d/9 é", "d/10 é"])
            live.flush()
        return collection

    return made


@pytest.fixture
def queries(tiny: Any) -> list[str]:
    """Twenty texts."""
    random = np.random.default_rng(3)
    return [" ".join(random.choice(WORDS, random.integers(1, 6))) for _ in range(20)]


@pytest.fixture
def ask(tiny: Any) -> Ask:
    """The query of a text in a snapshot's terms, with weights of its own."""
    from tercet.index.candidates import Weights

    def asked(snapshot: Snapshot, text: str) -> CollectionQuery:
        return CollectionQuery.of(snapshot, text, encode(tiny, [text], "query"), Weights(1.0, 0.5, 2.0))

    return asked


@pytest.fixture
def hits(tiny: Any) -> Callable[[Snapshot, str], list[Hit]]:
    """Our own answer, of all documents."""
    from tercet.index.candidates import Weights

    def found(snapshot: Snapshot, text: str) -> list[Hit]:
        query: Representations = encode(tiny, [text], "query")
        return snapshot.search(query, candidates=ALL, weights=Weights(1.0, 0.5, 2.0)).hits

    return found


def printed(script: str) -> list[tuple[float, str]]:
    """Scores and the ids' first words that a Python script prints when it is run."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(script, "query.py", "exec"), {})  # noqa: S102
    lines = [line.split(" ") for line in out.getvalue().splitlines()]
    return [(float(words[0]), " ".join(words[1:3])) for words in lines]


@pytest.fixture(scope="session")
def run_script() -> Callable[[str], list[tuple[float, str]]]:
    """`printed`."""
    return printed


def same_order(found: Sequence[tuple[float, str]], expected: Sequence[Hit]) -> None:
    """The same documents with the same scores; those whose scores are as good as equal may change places."""
    assert [score for score, _ in found] == pytest.approx([hit.score for hit in expected], abs=3e-6)
    places = {hit.document.id: hit.score for hit in expected}
    for score, identifier in found:
        assert score == pytest.approx(places.get(identifier, expected[-1].score), abs=3e-6)


@pytest.fixture(scope="session")
def require_same_order() -> Callable[[Sequence[tuple[float, str]], Sequence[Hit]], None]:
    """`same_order`."""
    return same_order
