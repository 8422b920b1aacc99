"""Fields that are declared while merges, readers of other processes and searches go on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.live import declaration
from tercet.index.live.collection import LiveCollection
from tercet.index.live.merge import Pace
from tercet.index.publisher import Publisher
from tercet.index.verify import verify
from tests.index.live.test_declaration import LIMITS, put


@pytest.fixture
def collection(root: Path, live_settings: Any) -> Collection:
    return Collection.create(root, "demo", live_settings(lexical="idf", bm25=True))


def test_a_merge_that_began_before_is_left_out(root: Path, collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection, LIMITS) as live:
        for number in range(4):
            put(live, {f"d{number}": {"n": number}}, random_texts, number)
            live.flush()
        merge = live._running().merge

        class Between(Pace):
            declared = False

            def rest(self) -> None:
                if not Between.declared:
                    Between.declared = True
                    live.declare({"n": "integer"})

        merge.run(Between())
        assert Between.declared
        assert live.snapshot().count(parse_filter({"gte": {"n": 0}})) == 4
        live.merge()
        assert live.snapshot().count(parse_filter({"gte": {"n": 0}})) == 4
    assert verify(root, "demo") == []


def test_a_merge_whose_sources_were_chosen_before_is_left_out(
    root: Path, collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows have no columns of the new field, whatever the settings are by then."""
    writing, declared = Publisher.writing, list[bool]()

    def declaring(publisher: Publisher, *arguments: Any) -> Any:
        if not declared and len(arguments) > 4:  # of a merge
            declared.append(True)
            live.declare({"n": "integer"})
        return writing(publisher, *arguments)

    with LiveCollection(collection, LIMITS) as live:
        for number in range(4):
            put(live, {f"d{number}": {"n": number}}, random_texts, number)
            live.flush()
        with monkeypatch.context() as patched:
            patched.setattr(Publisher, "writing", declaring)
            live.merge()
        assert declared
        assert live.snapshot().count(parse_filter({"gte": {"n": 0}})) == 4
    assert verify(root, "demo") == []


def test_readers_of_other_processes_see_it_with_the_last_publication(
    root: Path, collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each moment's reader finds a whole collection, with the field or without it."""
    seen: list[dict[str, FieldType]] = []
    write = CollectionSettings.write_later_fields

    def look() -> None:
        opened = Collection.open(root, "demo")
        seen.append(dict(opened.settings.fields))
        assert opened.snapshot().documents == 1

    def looking(settings: CollectionSettings, path: Path) -> None:
        look()
        write(settings, path)
        look()

    monkeypatch.setattr(CollectionSettings, "write_later_fields", looking)
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": 1}}, random_texts)
        live.flush()
        former = collection.current()
        live.declare({"n": "integer"})
        assert collection.current() != former
    assert seen == [{"year": "integer"}, {"year": "integer", "n": "integer"}]


def test_searches_go_on_while_fields_are_declared(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    successor, begun, go_on = declaration.with_later_columns, threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return successor(*arguments)

    monkeypatch.setattr(declaration, "with_later_columns", slow)
    with LiveCollection(collection) as live:
        put(live, {"a": {"n": 1}}, random_texts)
        declaring = threading.Thread(target=live.declare, args=({"n": "integer"},))
        declaring.start()
        assert begun.wait(30)
        put(live, {"b": {"n": 2}}, random_texts)
        assert live.snapshot().count() == 2
        go_on.set()
        declaring.join()
        assert live.snapshot().count(parse_filter({"gte": {"n": 1}})) == 2
