"""The state of a live collection: whatever was written, it answers as a build of what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.documents.filters import parse_filter
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live import state as state_module
from tercet.index.live.state import LiveState
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot

LIMITS = CandidateLimits(8, 8, 8)
YEAR = parse_filter({"in": {"year": [2001, 2003]}})
KINDS: list[dict[str, Any]] = [{}, {"windows": True, "lexical": "idf"}, {"bm25": True, "lexical": "idf"}]


def packed(*ids: str) -> PackedBytes:
    return PackedBytes.of([id.encode() for id in ids])


def answers(snapshot: Snapshot, queries: Any) -> list[Any]:
    weights = Weights(1, 1, 1, 1 if snapshot.settings.bm25 else 0)
    found: list[Any] = [snapshot.documents]
    for row in range(len(queries)):
        for condition in (None, YEAR):
            hits = snapshot.search(
                queries.take(np.array([row])),
                text="word 3",
                weights=weights,
                candidates=LIMITS,
                filter=condition,
            ).hits
            found.append([(hit.document, hit.score, hit.scores, hit.window) for hit in hits])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_random_writes_leave_what_a_build_has(
    live_settings: Any, make_rows: Any, random_texts: Any, changes: dict[str, Any], seed: int
) -> None:
    settings = live_settings(**changes)
    random = np.random.default_rng(seed)
    names = [f"d{number:02d}" for number in range(40)]
    base = make_rows(settings, names[:15], 100)
    state = LiveState(settings, "000001", (Segment.in_memory([base], settings),))
    # What is there, by a dictionary: of each id, the rows it came with and its place in them.
    model = {id: (base, place) for place, id in enumerate(names[:15])}
    for step in range(60):
        ids = random.choice(names, random.integers(1, 6), replace=False).tolist()
        if random.random() < 0.6:
            rows = make_rows(settings, ids, step)
            state = state.put(rows, step + 1)
            model |= {id: (rows, place) for place, id in enumerate(ids)}
        else:
            state = state.delete(packed(*ids), step + 1)
            model = {id: kept for id, kept in model.items() if id not in ids}
    assert state.documents == len(model)
    assert state.position == 60
    assert len(state.memory) <= 7  # of at most 40 documents: they double
    final = [rows.span(place, place + 1) for rows, place in model.values()]
    built = Snapshot("000001", settings, [Segment.in_memory(final, settings)])
    queries = random_texts(5, 7)
    assert answers(state.snapshot(), queries) == answers(built, queries), f"seed {seed}"


def test_a_state_does_not_change_once_it_is_made(live_settings: Any, make_rows: Any) -> None:
    settings = live_settings()
    first = LiveState(settings, "000000", ()).put(make_rows(settings, ["a", "b"], 1), 1)
    before = first.snapshot()
    second = first.put(make_rows(settings, ["b", "c"], 2), 2).delete(packed("a", "missing"), 3)
    assert (first.documents, first.position) == (2, 1)
    assert (second.documents, second.position) == (2, 3)
    assert before.get("a") is not None
    later = second.snapshot()
    assert later.get("a") is None
    assert later.get("b") != before.get("b")


def test_documents_have_the_position_that_they_were_written_at(live_settings: Any, make_rows: Any) -> None:
    settings = live_settings()
    state = LiveState(settings, "000000", ())
    for position, ids in ((4, ["a"]), (5, ["b"]), (9, ["c", "a"])):
        state = state.put(make_rows(settings, ids, position), position)
    found = {}
    for place, rows, known in state.find(packed("a", "b", "c", "d")):
        for row, number in zip(rows.tolist(), known.tolist(), strict=True):
            found["abcd"[number]] = int(state.segments[place].positions[row])
    assert found == {"a": 9, "b": 5, "c": 9}


def test_large_segments_in_memory_are_left_as_they_are(
    live_settings: Any, make_rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = live_settings()

    def sizes() -> list[int]:
        state = LiveState(settings, "000001", ())
        for number in range(4):
            state = state.put(make_rows(settings, [f"d{number}"], number), number + 1)
        return [len(segment) for segment in state.memory]

    assert sizes() == [4]
    monkeypatch.setattr(state_module, "JOINED_BYTES", 1)
    assert sizes() == [1, 1, 1, 1]
