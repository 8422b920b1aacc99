"""Flushes: the same answers before, meanwhile and after, here and for readers elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Document
from tercet.index.catalog import publication as publication_module
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tercet.index.segments import parts as parts_module
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify

LIMITS = CandidateLimits(8, 8, 8)
NAMES = [f"d{number:02d}" for number in range(30)]


@pytest.fixture
def collection(root: Path, random_texts: Any, make_settings: Any) -> Collection:
    settings = make_settings(random_texts(1, 0), "demo", fields={"year": "integer"}, lexical="idf")
    return Collection.create(root, "demo", settings)


@pytest.fixture
def put(random_texts: Any) -> Callable[[LiveCollection, list[str], int], dict[str, Any]]:
    """Writes random documents; returns what a build needs to have the same."""

    def write(live: LiveCollection, ids: list[str], seed: int) -> dict[str, Any]:
        documents = [Document(id, f"text {seed}", None, {"year": 2000 + seed % 3}) for id in ids]
        encoded = random_texts(len(ids), seed)
        live.put(documents, encoded)
        return {id: (documents[place], encoded.take(np.array([place]))) for place, id in enumerate(ids)}

    return write


def answers(snapshot: Snapshot, queries: Any) -> list[Any]:
    found: list[Any] = [snapshot.documents]
    for row in range(len(queries)):
        hits = snapshot.search(queries.take(np.array([row])), candidates=LIMITS).hits
        found.append([(hit.document, hit.score, hit.scores) for hit in hits])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_writes_flushes_and_restarts_leave_what_a_build_has(
    collection: Collection,
    root: Path,
    put: Any,
    random_texts: Any,
    seed: int,
) -> None:
    limits = LiveLimits(merge_width=2)
    random, queries = np.random.default_rng(seed), random_texts(4, 99)
    model: dict[str, Any] = {}
    live = LiveCollection(collection, limits).__enter__()
    for step in range(50):
        ids = random.choice(NAMES, random.integers(1, 5), replace=False).tolist()
        choice = random.random()
        if choice < 0.5:
            model |= put(live, ids, step)
        elif choice < 0.7:
            live.delete(ids)
            model = {id: kept for id, kept in model.items() if id not in ids}
        elif choice < 0.9:
            live.flush()
            if choice < 0.8:
                before = answers(live.snapshot(), queries)
                live.merge()
                assert answers(live.snapshot(), queries) == before
            assert answers(collection.snapshot(), queries) == answers(live.snapshot(), queries)
        else:
            before = answers(live.snapshot(), queries)
            live.__exit__(None, None, None)
            live = LiveCollection(Collection.open(root, "demo"), limits).__enter__()
            assert answers(live.snapshot(), queries) == before
    built = Collection.create(root, "built", replace(collection.settings, name="built"))
    with built.writer() as writer:
        for document, encoded in model.values():
            writer.add([document], encoded)
        writer.publish()
    assert answers(live.snapshot(), queries) == answers(built.snapshot(), queries), f"seed {seed}"
    live.flush()
    live.__exit__(None, None, None)
    assert answers(collection.snapshot(), queries) == answers(built.snapshot(), queries)
    assert verify(root, "demo") == []


def test_writes_during_a_flush_are_neither_lost_nor_published_by_half(
    collection: Collection, root: Path, put: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, real = random_texts(4, 99), Publication.publish
    with LiveCollection(collection) as live:
        put(live, NAMES[:10], 1)
        live.flush()
        put(live, NAMES[10:20], 2)
        before = answers(live.snapshot(), queries)

        def write_meanwhile(self: Publication) -> None:
            put(live, ["d03", "d12", "d25"], 3)  # published, set aside, new
            live.delete(["d04", "d13"])
            real(self)

        monkeypatch.setattr(Publication, "publish", write_meanwhile)
        live.flush()
        monkeypatch.setattr(Publication, "publish", real)
        # Readers elsewhere see the moment at which the flush began, and nothing of what came after.
        assert answers(collection.snapshot(), queries) == before
        found = live.snapshot()
        assert (found.documents, found.get("d04"), found.get("d13")) == (19, None, None)
        assert all(found.get(id) == Document(id, "text 3", None, {"year": 2000}) for id in ("d03", "d12"))
        after = answers(found, queries)
    with LiveCollection(collection) as again:
        assert answers(again.snapshot(), queries) == after
        again.flush()
    assert answers(collection.snapshot(), queries) == after
    assert verify(root, "demo") == []


def test_a_flush_that_fails_is_tried_again(
    collection: Collection, put: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = random_texts(4, 99)

    def full(self: Publication) -> None:
        raise OSError(28, "No space left on device")

    with LiveCollection(collection) as live:
        put(live, NAMES[:5], 1)
        with monkeypatch.context() as patched:
            patched.setattr(Publication, "publish", full)
            with pytest.raises(OSError, match="No space left"):
                live.flush()
        put(live, NAMES[3:8], 2)
        before = answers(live.snapshot(), queries)
        live.flush()
        assert answers(collection.snapshot(), queries) == before == answers(live.snapshot(), queries)


def test_a_flush_takes_bounded_parts(
    collection: Collection, put: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "TOKENS_AT_ONCE", 20)
    with LiveCollection(collection) as live:
        put(live, NAMES, 1)
        (segment,) = live._running().committer.state.memory
        parts = list(parts_module.rows_in_parts(segment, segment.rows_kept()))
        assert len(parts) > 5
        assert all(part.tokens is not None for part in parts)
        assert all(len(part) == 1 or part.tokens.offsets[-1] <= 20 for part in parts if part.tokens)
        assert sum(len(part) for part in parts) == 30


def test_a_build_replaces_what_the_ledger_holds(
    collection: Collection, root: Path, put: Any, random_texts: Any
) -> None:
    queries = random_texts(4, 99)
    with LiveCollection(collection) as live:
        put(live, NAMES[:5], 1)
        live.flush()
        put(live, NAMES[3:8], 2)
    with collection.writer() as writer:
        writer.add([Document("z", "only", None, {})], random_texts(1, 3))
        writer.publish()
    built = answers(collection.snapshot(), queries)
    assert (collection.snapshot().documents, verify(root, "demo")) == (1, [])
    with LiveCollection(collection) as live:
        assert live.position == 3  # the build took one
        assert answers(live.snapshot(), queries) == built
        put(live, NAMES[:1], 3)
        assert live.position == 4
        live.flush()
    assert collection.snapshot().documents == 2
    assert verify(root, "demo") == []


def test_a_lost_ledger_is_told_and_positions_are_not_given_twice(
    collection: Collection, root: Path, put: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, NAMES[:5], 1)
        live.flush()
    for path in collection.layout.folder.glob("ledger.sqlite*"):
        path.unlink()
    (problem,) = verify(root, "demo")
    assert "ledger.sqlite is missing, but 1 operations were accepted" in problem
    with LiveCollection(collection) as live:
        put(live, NAMES[:5], 2)
        assert live.position == 2
    assert verify(root, "demo") == []


def test_a_segment_without_documents_goes(collection: Collection, root: Path, put: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, NAMES[:5], 1)
        live.flush()
        live.delete(NAMES[:5])
        live.flush()
        manifest = collection.manifest()
        assert manifest is not None
        assert (manifest.segments, manifest.ledger_position) == ((), 2)
        assert list(collection.layout.segments.iterdir()) == []
        live.flush()  # nothing new: nothing is published
        assert collection.manifest() == manifest
        put(live, NAMES[:2], 2)
        assert live.position == 3
    assert verify(root, "demo") == []


def test_a_first_flush_that_was_cut_short_is_no_damage_and_a_lost_current_is(
    collection: Collection, root: Path, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(*_: Any) -> None:
        raise OSError("killed before CURRENT was written")

    with LiveCollection(collection) as live:
        put(live, NAMES, 1)
        with monkeypatch.context() as patched:
            patched.setattr(publication_module, "write_atomically", cut_short)
            with pytest.raises(OSError, match="killed before CURRENT"):
                live.flush()
    assert collection.layout.manifest("000001").exists()
    assert verify(root, "demo") == []
    with LiveCollection(collection) as live:
        assert live.snapshot().documents == len(NAMES)
        live.flush()
    collection.layout.manifest(collection.layout.current.read_text().strip()).rename(
        collection.layout.manifest("000001")
    )
    collection.layout.current.unlink()
    assert "CURRENT is missing, but" in verify(root, "demo")[0]
