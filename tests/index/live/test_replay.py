"""Entries carried out at once leave what they left one by one, when they were written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.documents.metadata import MetadataChange
from tercet.index.errors import DamagedIndexError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.records import NOTHING, LedgerEntry
from tercet.index.live import replay as replaying
from tercet.index.live.operations import Delete, Put, Update
from tercet.index.live.replay import replay
from tercet.index.live.state import LiveState
from tests.index.live.test_entries import KINDS

IDS = [f"d{number:02}" for number in range(30)]
ENTRIES = 60


def drawn(settings: Any, make_rows: Any, seed: int) -> tuple[LiveState, list[tuple[int, LedgerEntry]]]:
    """A state after random operations on few ids, and their entries."""
    random, entries = np.random.default_rng(seed), []
    state = LiveState(settings, "000000", ())
    for position in range(1, ENTRIES + 1):
        ids = random.choice(IDS, random.integers(1, 6), replace=False).tolist()
        packed = PackedBytes.of([id.encode() for id in ids])
        match random.integers(4):
            case 0 | 1:
                operation: Any = Put.of(make_rows(settings, ids, position))
            case 2:
                operation = Update(packed, MetadataChange({"year": 1900 + position}, merge=True))
            case _:
                operation = Delete(packed)
        applied = operation.apply(state, position)
        state = applied.state
        entries.append((position, applied.entry or LedgerEntry(NOTHING, b"")))
    entries.append((ENTRIES + 1, LedgerEntry(NOTHING, b"")))
    return state, entries


def held(state: LiveState) -> dict[bytes, tuple[Any, ...]]:
    """All that is stored of each document, by id."""
    found = {}
    for segment in state.segments:
        for row in segment.rows_kept().tolist():
            rows = segment.take(np.array([row]))
            terms = None
            if rows.words is not None:
                names = rows.words.terms.take(rows.words.rows.token_ids)
                terms = sorted(zip(names, rows.words.rows.weights.tolist(), strict=True))
            found[rows.ids[0]] = (
                rows.contents[0],
                int(rows.positions[0]),
                rows.columns["year"].take(np.array([0])).values.tolist(),
                rows.dense.tobytes(),
                *(rows.sparse.token_ids.tolist(), rows.sparse.weights.tolist()),
                None if rows.tokens is None else rows.tokens.codes.tobytes(),
                None if rows.tokens is None or rows.tokens.scales is None else rows.tokens.scales.tobytes(),
                terms,
                None if rows.windows is None else rows.windows.spans.tolist(),
            )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [None, 1, 5000])
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_many_entries_leave_what_each_by_itself_left(
    monkeypatch: Any, live_settings: Any, make_rows: Any, changes: dict[str, Any], at_once: int | None
) -> None:
    if at_once is not None:
        monkeypatch.setattr(replaying, "JOINED_BYTES", at_once)
    settings = live_settings(**changes)
    state, entries = drawn(settings, make_rows, 3)
    again = replay(LiveState(settings, "000000", ()), entries)
    assert len(held(again)) > 10
    assert held(again) == held(state)
    assert (again.position, again.written) == (ENTRIES + 1, state.written)


def test_a_delete_reaches_what_was_published(live_settings: Any, make_rows: Any) -> None:
    settings = live_settings()
    state, entries = drawn(settings, make_rows, 4)
    for start in (0, 20, len(entries)):  # as where a flush published the first ones
        begun = replay(LiveState(settings, "000000", ()), entries[:start])
        assert held(replay(begun, entries[start:])) == held(state)


def test_many_small_entries_make_one_segment(live_settings: Any, make_rows: Any) -> None:
    _, entries = drawn(live_settings(), make_rows, 5)
    assert len(replay(LiveState(live_settings(), "000000", ()), entries).memory) == 1


def test_a_document_of_another_type_may_be_replaced_by_a_later_entry(
    monkeypatch: Any, live_settings: Any, make_rows: Any
) -> None:
    """Both were written while the field was declared, which looks at what each document became."""
    monkeypatch.setattr(replaying, "JOINED_BYTES", 1)  # as where so much was written between
    former = live_settings()
    settings = former.with_fields({"size": "integer"})
    written = make_rows(former, ["a"], 1)

    def put(size: str, position: int) -> tuple[int, LedgerEntry]:
        content = b'{"text":"x","title":null,"metadata":{"size":%s}}' % size.encode()
        rows = replace(written, contents=PackedBytes.of([content]))
        return position, Put.of(rows).apply(LiveState(former, "000000", ()), position).entry

    begun = LiveState(settings, "000000", ())
    state = replay(begun, [put('"large"', 1), put("3", 2)])
    assert [segment.take(np.array([0])).columns["size"].values.tolist() for segment in state.memory] == [[3]]
    with pytest.raises(DamagedIndexError, match="size"):
        replay(begun, [put("3", 1), put('"large"', 2)])
