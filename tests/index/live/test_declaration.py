"""Fields that are declared over what is stored, beside a model of plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.backups.copying import copy_collection
from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.publication import Publication
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection, staged_build
from tercet.index.documents import field_indexes
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import (
    CollectionBusyError,
    InvalidDocumentError,
    InvalidFieldError,
    InvalidNameError,
    InvalidQueryError,
)
from tercet.index.live import declaration
from tercet.index.live.collection import LiveCollection
from tercet.index.live.operations import Put
from tercet.index.live.records import LiveLimits
from tercet.index.live.state import LiveState
from tercet.index.segments import files as segment_files
from tercet.index.segments import later_columns
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify

IDS = [f"d{number:02d}" for number in range(40)]
LIMITS = LiveLimits(merge_width=2)
LATER: list[dict[str, FieldType]] = [
    {"분류": "keyword"},
    {"price (€)": "number", "a": "boolean"},
    {"seen": "datetime"},
]
KINDS = ["책", "영화", "음악"]
Model = dict[str, dict[str, Any]]


@pytest.fixture
def collection(root: Path, live_settings: Any) -> Collection:
    return Collection.create(root, "demo", live_settings(lexical="idf", bm25=True))


def metadata_of(seed: int) -> dict[str, Any]:
    """Some of the values that the fields will have."""
    all_of_them = {
        "year": 2000 + seed % 4,
        "분류": [KINDS[seed % 3], KINDS[(seed + seed // 3) % 3]],
        "price (€)": seed % 5 / 4,
        "a": seed % 2 == 0,
        "seen": f"2026-01-0{1 + seed % 7}T10:00:00Z",
    }
    return {name: value for place, (name, value) in enumerate(all_of_them.items()) if (seed >> place) % 4}


def put(live: LiveCollection, model: Model, texts: Any, seed: int = 1) -> Model:
    live.put(
        [Document(id, f"text {id}", None, metadata) for id, metadata in model.items()],
        texts(len(model), seed),
    )
    return model


def counts(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """How many documents the filters over each field allow."""
    trees: dict[str, list[Any]] = {
        "year": [{"gte": {"year": 2002}}],
        "분류": [{"eq": {"분류": kind}} for kind in KINDS],
        "price (€)": [{"lt": {"price (€)": 0.6}}, {"eq": {"price (€)": 0.25}}],
        "a": [{"eq": {"a": True}}, {"eq": {"a": False}}],
        "seen": [{"gte": {"seen": "2026-01-04T00:00:00Z"}}],
    }
    declared = {name: found for name, found in trees.items() if name in snapshot.settings.fields}
    return {
        name: {str(tree): snapshot.count(parse_filter(tree)) for tree in found}
        for name, found in declared.items()
    }


def model_counts(model: Model, fields: Mapping[str, FieldType]) -> dict[str, dict[str, int]]:
    def count(allowed: Callable[[dict[str, Any]], bool]) -> int:
        return sum(allowed(metadata) for metadata in model.values())

    every = {
        "year": {"{'gte': {'year': 2002}}": count(lambda m: m.get("year", 0) >= 2002)},
        "분류": {
            f"{{'eq': {{'분류': '{kind}'}}}}": count(lambda m, kind=kind: kind in m.get("분류", ()))  # type: ignore[misc]
            for kind in KINDS
        },
        "price (€)": {
            "{'lt': {'price (€)': 0.6}}": count(lambda m: m.get("price (€)", 1) < 0.6),
            "{'eq': {'price (€)': 0.25}}": count(lambda m: m.get("price (€)") == 0.25),
        },
        "a": {
            f"{{'eq': {{'a': {value}}}}}": count(lambda m, v=value: m.get("a") is v)
            for value in (True, False)
        },  # type: ignore[misc]
        "seen": {
            "{'gte': {'seen': '2026-01-04T00:00:00Z'}}": count(lambda m: m.get("seen", "") >= "2026-01-04")
        },
    }
    return {name: found for name, found in every.items() if name in fields}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("packed", [True, False])
def test_declarations_are_those_of_a_model(
    root: Path,
    collection: Collection,
    random_texts: Any,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    packed: bool,
) -> None:
    """Between writes, flushes, merges, builds, and processes that end as they are; files large and small."""
    if not packed:
        monkeypatch.setattr(segment_files, "PACKED_BYTES", 0)
        for module in (field_indexes, later_columns):
            monkeypatch.setattr(module, "STORED_DOCUMENTS", 3)
    random, model, declared = np.random.default_rng(seed), Model(), list(LATER)
    live = LiveCollection(collection, LIMITS).__enter__()
    for step in range(45):
        ids = [str(id) for id in random.choice(IDS, random.integers(1, 20), replace=False)]
        match random.integers(0, 8):
            case 0 | 1 | 2:
                model |= put(
                    live, {id: metadata_of(step * 31 + n) for n, id in enumerate(ids)}, random_texts, step
                )
            case 3:
                live.delete(ids)
                model = {id: metadata for id, metadata in model.items() if id not in ids}
            case 4:
                live.update(parse_filter({"gte": {"year": 2002}}), {"year": 2001}, merge=True)
                model = {
                    id: {**m, "year": 2001} if m.get("year", 0) >= 2002 else m for id, m in model.items()
                }
            case 5:
                if declared:
                    fields = {**live.settings.fields, **declared.pop(0)}
                    assert live.declare(fields).fields == fields
                    assert verify(root, "demo") == []
                    assert Collection.open(root, "demo").settings == live.settings
            case 6:
                live.flush()
                live.merge()
            case 7:  # nothing is flushed: the next process reads the ledger
                live.__exit__(None, None, None)
                live = LiveCollection(Collection.open(root, "demo"), LIMITS).__enter__()
        fields = live.settings.fields
        assert counts(live.snapshot()) == model_counts(model, fields)
    live.flush()
    published = Collection.open(root, "demo").snapshot()
    assert counts(published) == model_counts(model, live.settings.fields)
    assert verify(root, "demo") == []
    live.__exit__(None, None, None)
    copy = CollectionLayout(root / "copy")
    copy.folder.mkdir()
    source = Collection.open(root, "demo")
    copy_collection(source, copy, source.settings.of_new_collection("copy"))
    assert verify(root, "copy") == []
    assert not copy.fields.exists()
    with LiveCollection(Collection.open(root, "copy"), LIMITS) as again:
        put(again, {"new": metadata_of(15)}, random_texts)
        again.flush()
        assert counts(again.snapshot()) == model_counts(
            {**model, "new": metadata_of(15)}, live.settings.fields
        )


def test_a_build_and_a_backup_of_before_get_the_columns(
    root: Path, collection: Collection, random_texts: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": 1, "year": 2000}, "b": {"n": 2}}, random_texts)
        live.delete(["b"])
        live.flush()
        before = CollectionLayout(root / "before")
        before.folder.mkdir()
        source = Collection.open(root, "demo")
        copy_collection(source, before, source.settings.of_new_collection("before"))
        live.declare({"n": "integer"})
        put(live, {"a": {"n": 7}, "c": {"n": 8}}, random_texts)
        with live.begin_build() as build:
            live.adopt(build, before)
        snapshot = live.snapshot()
        assert [each.id for each in snapshot.page(None, 9)] == ["a"]
        assert snapshot.count(parse_filter({"eq": {"n": 1}})) == 1
        live.declare({"m": "keyword"})
        with live.begin_build() as build:
            live.adopt(build, before, "upsert")
        assert live.snapshot().count(parse_filter({"and": [{"eq": {"n": 1}}, {"eq": {"year": 2000}}]})) == 1
        live.flush()
    assert verify(root, "demo") == []


def test_what_cannot_be_declared_changes_nothing(
    root: Path, collection: Collection, random_texts: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": "one"}, "b": {"n": 2}}, random_texts)
        refusals: list[tuple[dict[str, Any], type[Exception], str]] = [
            ({"n": "integer"}, InvalidDocumentError, "document 'a': field 'n' is declared as integer"),
            ({"year": "keyword"}, InvalidFieldError, "field 'year' is declared as integer, not keyword"),
            ({"n": "text"}, InvalidFieldError, "field 'n' has type \"text\"; use one of"),
            ({"": "keyword"}, InvalidNameError, "field name '' is not 1 to 64 characters"),
            ({"a\nb": "keyword"}, InvalidNameError, "characters that show"),
            ({" a": "keyword"}, InvalidNameError, "without blanks around"),
            ({f"f{n}": "keyword" for n in range(100)}, InvalidFieldError, "101 fields are declared"),
        ]
        for fields, error, message in refusals:
            for refuse in (live.check_fields, live.declare):
                with pytest.raises(error, match=message):
                    refuse(fields)
            assert live.settings.fields == {"year": "integer"}
        with pytest.raises(InvalidQueryError):
            live.snapshot().count(parse_filter({"eq": {"n": 2}}))
        live.delete(["a"])
        live.flush()
        live.check_fields({"n": "integer"})
        version = live.version
        live.declare({"n": "integer"})
        assert live.version != version  # else a service goes on with the former snapshot
        assert live.snapshot().count(parse_filter({"eq": {"n": 2}})) == 1
        with pytest.raises(InvalidDocumentError, match="document 'c': field 'n'"):
            put(live, {"c": {"n": "three"}}, random_texts)
    assert verify(root, "demo") == []


def test_none_is_declared_while_a_build_is_under_way(
    root: Path, collection: Collection, random_texts: Any
) -> None:
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": 1}}, random_texts)
        with live.begin_build() as build, staged_build(collection, "ab") as stage:
            with pytest.raises(CollectionBusyError, match="declare fields after it"):
                live.declare({"n": "integer"})
            with stage.writer() as writer:
                writer.add([Document("b", "text", None, {"n": 2})], random_texts(1, 3))
                writer.publish()
            live.adopt(build, stage.layout)
        live.declare({"n": "integer"})
        assert live.snapshot().count(parse_filter({"eq": {"n": 2}})) == 1
        again = Collection.open(root, "demo")
        with live.begin_build() as build, staged_build(again, "ac") as stage:  # its fields are all of them
            with stage.writer() as writer:
                writer.add([Document("c", "text", None, {"n": 3, "year": 2000})], random_texts(1, 3))
                writer.publish()
            live.adopt(build, stage.layout, "upsert")
        assert live.snapshot().count(parse_filter({"gte": {"n": 2}})) == 2
    assert verify(root, "demo") == []
    assert Collection.open(root, "demo").snapshot().count(parse_filter({"eq": {"year": 2000}})) == 1


@pytest.mark.parametrize("moment", ["columns", "publication", "written meanwhile", "fields.json"])
def test_after_a_failure_nothing_is_declared_and_another_type_can_be(
    root: Path, collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": 1}, "b": {"n": 2}}, random_texts)
        put(live, {"b": {"n": 3}}, random_texts)
        live.flush()

        def fail(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        successor = declaration.with_later_columns

        def meanwhile(*arguments: Any) -> Any:
            put(live, {"c": {"n": "three"}}, random_texts)
            return successor(*arguments)

        with monkeypatch.context() as broken:
            match moment:
                case "columns":
                    broken.setattr(declaration, "with_later_columns", fail)
                case "publication":
                    broken.setattr(Publication, "publish", fail)
                case "written meanwhile":
                    broken.setattr(declaration, "with_later_columns", meanwhile)
                case "fields.json":
                    broken.setattr(CollectionSettings, "write_later_fields", fail)
            with pytest.raises((OSError, InvalidDocumentError)):
                live.declare({"n": "integer"})
        assert live.settings.fields == {"year": "integer"}
        put(live, {"d": {"n": "four"}}, random_texts)
        live.delete(["d", "c"])
    assert verify(root, "demo") == []
    with LiveCollection(Collection.open(root, "demo")) as live:
        assert live.settings.fields == {"year": "integer"}
        live.declare({"n": "number"})
        assert live.snapshot().count(parse_filter({"gte": {"n": 2.5}})) == 1
        live.flush()
        assert len(list(collection.layout.segments.iterdir())) == live.stats().segments
    assert verify(root, "demo") == []


def test_documents_that_were_checked_before_get_the_columns_or_are_refused(
    live_settings: Any, make_rows: Any
) -> None:
    """As where a declaration comes between the check of a write and its turn."""
    former = live_settings()
    rows = make_rows(former, ["a", "b"], 1)
    state = LiveState(former.with_fields({"n": "integer"}), "", ())
    applied = Put.of(rows).apply(state, 1)
    assert applied.state.snapshot().count(parse_filter({"gte": {"n": 0}})) == 0
    state = LiveState(replace(former, fields={}).with_fields({"year": "keyword"}), "", ())
    with pytest.raises(InvalidDocumentError, match="document 'a': field 'year' is declared as keyword"):
        Put.of(replace(rows, columns={})).apply(state, 1)
