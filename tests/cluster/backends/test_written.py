"""Collections that are written through an engine: failures in the middle, restarts, other servers, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.cluster.backends.catalog import EngineCatalog, WriteState
from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import RECORDS, Engine, Records
from tercet.cluster.backends.milvus.engine import MilvusEngine
from tercet.cluster.backends.qdrant.engine import QdrantEngine
from tercet.cluster.backends.terms import counted
from tercet.cluster.backends.written import WrittenCollection
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import (
    CollectionExistsError,
    DocumentChangedError,
    IdempotencyMismatchError,
    InvalidDocumentError,
    InvalidNameError,
)
from tercet.index.live.records import WriteKey
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows
from tercet.models.encoder import encode
from tercet.service.exceptions import BackendError, NotInBackendError
from tercet.transfer.milvus.connection import MilvusPlace

TEXTS = {"a": "hot tea", "b": "green tea leaf", "c": "steam train", "d": "the black water"}


class FaultyEngine:
    """An engine of which the call of a number fails: before it is carried out, or after."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.fails_in: int | None = None
        self.after = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def put_records(self, records: dict[str, Records]) -> None:
        self.call(lambda: self._engine.put_records(records))

    def written(self, settings: CollectionSettings) -> Any:
        return FaultyCollection(self._engine.written(settings), self)

    def call(self, work: Callable[[], None]) -> None:
        fails = self.fails_in == 0
        if self.fails_in is not None:
            self.fails_in -= 1
        if not fails or self.after:
            work()
        if fails:
            self.fail()

    @staticmethod
    def fail() -> None:
        raise BackendError("the engine was killed")


class FaultyCollection:
    """Each document of a put is a call, as an engine may take some of them alone."""

    def __init__(self, collection: Any, engine: FaultyEngine) -> None:
        self._collection = collection
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)

    def put(self, prepared: list[Any]) -> None:
        for document in prepared:
            self._engine.call(lambda one=document: self._collection.put([one]))

    def remove(self, ids: list[str]) -> None:
        for id in ids:
            self._engine.call(lambda one=id: self._collection.remove([one]))


def put(collections: EngineCollections, tiny: Any, texts: dict[str, str], **options: Any) -> Any:
    documents = [Document(id, text, metadata={"year": 2000}) for id, text in texts.items()]
    with collections.writing("notes") as notes:
        return notes.put(documents, encode(tiny, list(texts.values()), "document"), **options)


def check_counts(notes: WrittenCollection) -> None:
    """What is known of terms is what is counted of all documents now."""
    state = notes._state()
    again, known = counted(state.collection), state.statistics
    assert known.documents == again.documents == state.collection.count(None)
    assert known.terms is not None
    assert again.terms is not None
    assert [each.tolist() for each in known.terms.counts()] == [
        each.tolist() for each in again.terms.counts()
    ]
    assert known.terms.sums == again.terms.sums
    words = ["tea", "steam", "hot", "none"]
    assert known.known(words).frequencies.tolist() == again.known(words).frequencies.tolist()
    assert known.known(words).total_length == again.known(words).total_length


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_an_engine_that_fails_in_a_write_gives_an_error_and_then_the_right_answers(
    engine: Engine, settings: CollectionSettings, tiny: Any, after: bool
) -> None:
    faulty = FaultyEngine(engine)
    collections = EngineCollections(faulty)  # type: ignore[arg-type]
    collections.create("notes", settings)
    put(collections, tiny, TEXTS)
    faulty.after = after
    query = SnapshotQuery(encode(tiny, ["hot tea"], "query"), text="hot tea")
    positions, writes, failures = [1], 0, set[str]()
    steps: list[Callable[[WrittenCollection], Any]] = [
        lambda notes: put(collections, tiny, {"a": "train rail", "e": "hot hot tea"}),
        lambda notes: notes.update(["a", "b", "c"], {"year": 2001}),
        lambda notes: notes.delete(["b", "e"]),
        lambda notes: notes.delete_matching(parse_filter({"gte": {"year": 2000}})),
    ]
    for step in steps:
        for call in range(6):
            faulty.fails_in = call
            with collections.writing("notes") as notes:
                try:
                    positions.append(step(notes).position)
                    writes += 1
                except BackendError as error:
                    failures.add(str(error))
                faulty.fails_in = None
                check_counts(notes)
                hits = {hit.document.id for hit in notes.snapshot().answer(query).hits}
                assert hits == {each.id for each in notes.snapshot().page(None, 10)}
                collection = notes._state().collection
                there = [part.positions.max() for part in collection.rows(collection.keys_of([*TEXTS, "e"]))]
                positions.append(put(collections, tiny, {"d": "the black water"}).position)
                assert positions[-1] > max(
                    there, default=0
                )  # also than that of a write that was not acknowledged
    assert writes >= len(steps)
    (failure,) = failures
    assert failure.startswith("the engine was killed; the write may be carried out in part: repeat it")
    assert np.diff(sorted({*positions})).min() > 0
    assert positions == sorted(positions)
    with collections.writing("notes") as notes:
        assert [each.id for each in notes.snapshot().page(None, 10)] == ["d"]
        assert EngineCollections(engine).snapshot("notes").version == str(notes.position)


def test_what_is_noted_is_read_with_the_strongest_consistency(engine: Any, monkeypatch: Any) -> None:
    engine.put_records({"states": {"notes": {"position": 1}}})
    asked = list[Any]()
    for name in ("retrieve", "scroll", "get", "query"):
        read = getattr(engine._client, name, None)

        def noted(collection: str, *given: Any, read: Any = read, **options: Any) -> Any:
            assert collection == RECORDS
            asked.append(options.get("consistency") or options.get("consistency_level"))
            return read(collection, *given, **options)

        monkeypatch.setattr(engine._client, name, noted, raising=False)
    assert engine.records("states") == engine.records("states", "notes")
    assert asked == [{"qdrant": "majority", "milvus": "Strong"}[engine.name[:6].lower()]] * 2


@pytest.mark.slow
def test_a_note_that_arrives_late_sets_no_position_back(
    engine: Engine, settings: CollectionSettings, tiny: Any, any_may_write: None
) -> None:
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    for _ in range(2):
        put(first, tiny, TEXTS)
    late = WriteState(1, pending=True, beat=1)
    second._catalog.note("notes", late)
    if isinstance(engine, QdrantEngine):  # which compares
        assert second._catalog.state("notes").position == 2
    assert put(first, tiny, {"e": "tea"}).position == 3
    second.snapshot("notes")
    second._catalog.note("notes", late)
    assert put(second, tiny, {"e": "hot tea"}).position == 4
    second.delete("notes")
    second._catalog.note("notes", WriteState(9, pending=True))
    first.create("notes", settings)
    assert put(first, tiny, TEXTS).position == 1


@pytest.mark.slow
def test_another_server_sees_what_was_written_and_goes_on(
    engine: Engine, settings: CollectionSettings, tiny: Any, any_may_write: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.aliases.KEPT_SECONDS", -1.0)
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    key = WriteKey("once", "0" * 64)
    written = put(first, tiny, TEXTS, key=key)
    assert second.snapshot("notes").documents == len(TEXTS)
    assert put(second, tiny, TEXTS, key=key) == written
    with pytest.raises(IdempotencyMismatchError, match="'once' was used for another write"):
        put(second, tiny, TEXTS, key=WriteKey("once", "1" * 64))
    with first.writing("notes") as notes:
        assert notes.delete(["a", "none"]).documents == 1
        notes.declare({"kind": "keyword"})
    assert second.snapshot("notes").documents == len(TEXTS)  # as of its last look
    second.release_superseded()
    assert second.snapshot("notes").documents == len(TEXTS) - 1
    assert second.snapshot("notes").settings.fields == {"year": "integer", "kind": "keyword"}
    with pytest.raises(DocumentChangedError, match="after if_position 0"):
        put(second, tiny, {"b": "tea"}, if_position=0)
    assert put(second, tiny, {"b": "tea"}, if_position=1).position == 3
    with first.writing("notes") as notes:
        assert notes.reaches(3)
        assert not notes.reaches(4)
        assert notes.patch("b", {"kind": "x"}, merge=True).position == 4
        check_counts(notes)
        with pytest.raises(InvalidDocumentError, match="declared as keyword"):
            notes.patch("b", {"kind": 3})
    first.aliases.put("current", "notes")
    assert second.snapshot("current").settings.name == "notes"
    assert second.statistics("current").position == second.statistics("notes").position > 0
    with pytest.raises(CollectionExistsError, match="is an alias of collection 'notes'"):
        second.create("current", settings)
    second.aliases.remove("current")
    second.delete("notes")
    assert (second.names(), engine.exists("notes")) == ([], False)


@pytest.mark.slow
def test_another_server_that_looks_in_the_middle_of_a_write_counts_again_after_it(
    engine: Engine, settings: CollectionSettings, tiny: Any, monkeypatch: Any
) -> None:
    first, second = EngineCollections(engine), EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)
    assert second.snapshot("notes").documents == len(TEXTS)
    note = EngineCatalog.note

    def note_and_look(catalog: EngineCatalog, name: str, state: WriteState) -> None:
        note(catalog, name, state)
        second.release_superseded()

    monkeypatch.setattr(EngineCatalog, "note", note_and_look)
    put(first, tiny, {"e": "hot hot tea"})
    second.release_superseded()
    assert second.snapshot("notes").documents == len(TEXTS) + 1
    with second.writing("notes") as notes:
        check_counts(notes)


@pytest.mark.slow
def test_what_an_interrupted_creation_left_is_made_anew_and_others_are_left_alone(
    engine: Engine, settings: CollectionSettings, tiny: Any
) -> None:
    faulty = FaultyEngine(engine)
    collections = EngineCollections(faulty)  # type: ignore[arg-type]
    faulty.fails_in = 1
    with pytest.raises(BackendError, match="killed"):
        collections.create("notes", settings)
    assert collections.names() == []
    assert engine.exists("notes")
    collections.create("notes", settings)
    assert collections.names() == ["notes"]
    with pytest.raises(CollectionExistsError, match="'notes' exists"):
        collections.create("notes", settings)
    engine.remove_records("collections", ["notes"])
    with pytest.raises(CollectionExistsError, match="a collection 'notes' that Tercet does not write"):
        collections.create("notes", settings)
    assert engine.exists("notes")


def test_what_an_engine_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path, settings: CollectionSettings, tiny: Any
) -> None:
    engine = MilvusEngine(MilvusPlace(str(tmp_path / "rows.db")))
    collections = EngineCollections(engine)
    with pytest.raises(InvalidNameError, match="letters, digits and underscores"):
        collections.create("my-notes", replace(settings, name="my-notes"))
    collections.create("notes", replace(settings, window=WindowSettings(12, 4)))
    with collections.writing("notes") as notes:
        for text, windows, fault in (
            ("tea " * 20_000, None, "bytes of text; Milvus takes 65535"),
            ("hot tea", DocumentWindows(np.array([0, 2]), np.array([[0, 3], [4, 7]])), "has 2 windows"),
        ):
            texts = [text] if windows is None else ["hot", "tea"]
            with pytest.raises(InvalidDocumentError, match=fault):
                notes.put([Document("a", text)], encode(tiny, texts, "document"), windows)
        assert engine.records("states")["notes"] == {"position": 0, "pending": False}
        assert notes.snapshot().count() == 0
        with pytest.raises(NotInBackendError, match="merging is not offered"):
            notes.begin_merge()
    collections.close()


@pytest.mark.slow
def test_what_is_counted_is_kept_for_the_next_server(
    engine: Engine, settings: CollectionSettings, tiny: Any, any_may_write: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.kept_statistics.PART_BYTES", 100)
    first = EngineCollections(engine)
    first.create("notes", settings)
    put(first, tiny, TEXTS)
    with first.writing("notes") as notes:
        notes.keep_statistics()
    group = "statistics notes"
    assert len(engine.records(group)) > 2

    def count_nothing(collection: Any) -> Any:
        raise AssertionError("its documents are read")

    with monkeypatch.context() as patched:
        patched.setattr("tercet.cluster.backends.written.counted", count_nothing)
        with EngineCollections(engine).writing("notes") as notes:
            assert notes.position == 1
    with EngineCollections(engine).writing("notes") as notes:
        check_counts(notes)
        notes.put([Document("e", "hot hot tea")], encode(tiny, ["hot hot tea"], "document"))
        check_counts(notes)
    with EngineCollections(engine).writing("notes") as notes:
        check_counts(notes)  # they were kept before the last write
        notes.keep_statistics()
    parts = [key for key in engine.records(group) if key != "newest"]
    assert all(key.startswith("2.") for key in parts)
    engine.put_records({group: {parts[0]: engine.records(group)[parts[1]]}})
    with EngineCollections(engine).writing("notes") as notes:
        check_counts(notes)  # a part is another's
        notes.remove()
    assert engine.records(group) == {}
