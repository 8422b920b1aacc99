"""One server writes a collection in an engine at a time, and another takes over."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tercet.cluster.backends.catalog import EngineCatalog, WriteState
from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import Engine
from tercet.cluster.backends.turns import Turn
from tercet.cluster.backends.written import WrittenCollection
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import WriterReplacedError
from tercet.service.exceptions import BackendError
from tests.cluster.backends.test_written import TEXTS, FaultyEngine, check_counts, put


@pytest.mark.slow
def test_one_server_writes_at_a_time(
    engine: Engine, settings: CollectionSettings, tiny: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.turns.TURN_SECONDS", -1.0)
    waits: list[float] = []
    monkeypatch.setattr("tercet.cluster.backends.turns.time.sleep", waits.append)
    monkeypatch.setattr(engine, "close", lambda: None)
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)
    with second.writing("notes") as notes:
        for refused in (
            lambda: put(second, tiny, TEXTS),
            lambda: notes.declare({"a": "keyword"}),
            notes.remove,
        ):
            with pytest.raises(
                WriterReplacedError, match=r"is written by another server .*nothing was written"
            ):
                refused()
    with monkeypatch.context() as quiet:
        quiet.setattr("tercet.cluster.backends.turns.QUIET_SECONDS", -1.0)
        assert put(second, tiny, {"e": "hot tea"}).position == 2
    with pytest.raises(WriterReplacedError, match="another server"):
        put(first, tiny, TEXTS)
    assert put(second, tiny, {"e": "tea"}).position == 3
    second.close()
    assert put(first, tiny, {"f": "hot"}).position == 4
    assert waits.count(2.0) == 2
    with first.writing("notes") as notes:
        check_counts(notes)


@pytest.mark.slow
def test_a_server_whose_place_is_taken_in_the_middle_of_a_write_says_so(
    engine: Engine, settings: CollectionSettings, tiny: Any, any_may_write: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.written.CHANGES_AT_ONCE", 2)
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, {"d": "tea"})
    note, written = EngineCatalog.note, list[Any]()

    def note_and_lose(catalog: EngineCatalog, name: str, state: WriteState) -> None:
        note(catalog, name, state)
        if not written:
            written.append(None)
            written.append(put(second, tiny, {"e": "hot tea"}))

    monkeypatch.setattr(EngineCatalog, "note", note_and_lose)
    with pytest.raises(
        BackendError, match="another server from now on; the write may be carried out in part"
    ):
        put(first, tiny, TEXTS)
    assert (written[1].position, put(first, tiny, TEXTS).position) == (3, 4)
    with first.writing("notes") as notes:
        check_counts(notes)


@pytest.mark.slow
def test_a_server_that_goes_on_while_another_waits_keeps_its_place(
    engine: Engine, settings: CollectionSettings, tiny: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.turns.TURN_SECONDS", 60.0)
    monkeypatch.setattr("tercet.cluster.backends.turns.QUIET_SECONDS", -1.0)
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)

    def wait(_seconds: float) -> None:
        put(first, tiny, {"e": "hot tea"})

    monkeypatch.setattr("tercet.cluster.backends.turns.time.sleep", wait)
    with pytest.raises(WriterReplacedError, match="another server"):
        put(second, tiny, TEXTS)
    monkeypatch.setattr("tercet.cluster.backends.turns.TURN_SECONDS", -1.0)
    assert put(first, tiny, {"e": "tea"}).position == 3


def test_another_server_waits_for_two_requests(engine: Any, monkeypatch: Any) -> None:
    turn = Turn(engine, EngineCatalog(engine, str), "notes")
    assert turn.quiet_seconds == 60
    monkeypatch.setattr(engine, "timeout_seconds", 45)
    assert turn.quiet_seconds == 90


@pytest.mark.slow
def test_a_claim_is_restored_only_while_this_servers_name_is_there(
    engine: Engine, settings: CollectionSettings, tiny: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.turns.QUIET_SECONDS", -1.0)
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)

    def wait(_seconds: float) -> None:
        put(first, tiny, {"e": "hot tea"})
        EngineCatalog(engine, str).claim("notes", "third")

    monkeypatch.setattr("tercet.cluster.backends.turns.time.sleep", wait)
    with pytest.raises(WriterReplacedError, match=r"another server \(third\)"):
        put(second, tiny, TEXTS)
    assert engine.records("writers")["notes"] == {"server": "third"}


@pytest.mark.slow
def test_who_takes_over_from_a_write_that_was_cut_off_counts_anew(
    engine: Engine, settings: CollectionSettings, tiny: Any, any_may_write: None, monkeypatch: Any
) -> None:
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)
    note = EngineCatalog.note

    def note_and_look(catalog: EngineCatalog, name: str, state: WriteState) -> None:
        note(catalog, name, state)
        second.snapshot("notes")  # before the documents are there

    with monkeypatch.context() as cut:
        cut.setattr(EngineCatalog, "note", note_and_look)
        cut.setattr(EngineCatalog, "finish", lambda *_: FaultyEngine.fail())
        with pytest.raises(BackendError, match="killed"):
            put(first, tiny, {"e": "hot hot tea"})
    assert put(second, tiny, {"f": "steam"}).position == 3
    with second.writing("notes") as notes:
        check_counts(notes)


@pytest.mark.slow
def test_a_server_that_closes_lets_go_whatever_fails_but_takes_no_running_write_its_turn(
    engine: Engine, settings: CollectionSettings, tiny: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.turns.TURN_SECONDS", -1.0)
    monkeypatch.setattr(engine, "close", lambda: None)
    first = EngineCollections(engine, lambda: "first")
    first.create("notes", settings)
    note = EngineCatalog.note

    def note_and_close(catalog: EngineCatalog, name: str, state: WriteState) -> None:
        note(catalog, name, state)
        closing = threading.Thread(target=first.close)
        closing.start()
        closing.join()

    with monkeypatch.context() as closed:
        closed.setattr(EngineCatalog, "note", note_and_close)
        assert put(first, tiny, TEXTS).position == 1
    assert engine.records("writers")["notes"] == {"server": "first"}
    monkeypatch.setattr(WrittenCollection, "keep_statistics", lambda *_, **__: FaultyEngine.fail())
    first.close()
    assert engine.records("writers")["notes"] == {"server": ""}
