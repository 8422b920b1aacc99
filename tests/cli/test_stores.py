"""A data root and a server have the same methods and answers: no command asks which of them it has."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tercet
from tercet.cli.stores.local import LocalStore
from tercet.cli.stores.opening import opened_store
from tercet.cli.stores.remote import Remote
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

if TYPE_CHECKING:
    from tercet.cli.stores.opening import Store

HERE_ALONE = {"publish_or_say"}  # for commands that have no --url
NOTES = [
    {"id": "tea", "text": "green tea", "title": None, "metadata": {"year": 2024}},
    {"id": "rail", "text": "a history of rail", "title": "Rail", "metadata": {"year": 1830}},
    {"id": "bread", "text": "bread rises", "title": None, "metadata": {}},
]


@pytest.fixture(params=["here", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path, tiny: Encoder) -> Iterator[Store]:
    """A store with the collection `notes`, whose documents are in its ledger alone."""
    settings = Settings(data=tmp_path / "data")
    with tercet.open(settings.data, encoder=tercet.Encoder(tiny)) as opened:
        opened.collection("notes", create=True, fields={"year": "integer"}).put(NOTES)
    if request.param == "here":
        with opened_store(None, settings) as found:
            yield found
        return
    with real_server(create_app(settings, tiny)) as url, opened_store(url, settings) as found:
        yield found


def test_both_have_the_same_methods() -> None:
    methods = {name for name in vars(LocalStore) if not name.startswith("_")} - HERE_ALONE
    assert {"search", "documents", "create_backup", "merge"} <= methods
    for name in methods:
        here, there = (
            [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
            for method in (getattr(LocalStore, name), getattr(Remote, name))
        )
        assert here == there, name


def test_documents(store: Store) -> None:
    assert [each["id"] for each in store.documents("notes")] == ["bread", "rail", "tea"]
    assert [each["id"] for each in store.documents("notes", after="bread", limit=1)] == ["rail"]
    ordered = store.documents("notes", order_by="year", descending=True, filter={"exists": "year"})
    assert list(ordered) == NOTES[:2]
    assert store.get_documents("notes", ["rail", "none", "rail"]) == {
        "documents": [NOTES[1]],
        "missing": ["none"],
    }
    assert (store.count_documents("notes"), store.count_documents("notes", {"lt": {"year": 1900}})) == (3, 1)
    assert store.update_documents("notes", {"year": 1}, ids=["bread", "none"])["updated"] == 1
    assert (
        store.update_documents("notes", {"year": 2}, filter={"eq": {"year": 1}}, merge=True)["updated"] == 1
    )
    assert store.delete_documents("notes", filter={"eq": {"year": 2}})["deleted"] == 1
    assert store.delete_documents("notes", ids=["tea", "none"])["deleted"] == 1
    assert store.count_documents("notes") == 1


def test_upkeep(store: Store) -> None:
    assert store.declare_fields("notes", {"lang": "keyword"})["fields"] == {
        "year": "integer",
        "lang": "keyword",
    }
    store.publish("notes")
    merged = store.merge("notes")
    assert (merged["name"], merged["documents"], merged["ledger"]["entries"]) == ("notes", 3, 0)
    assert store.statistics("notes") == merged
    (found,) = store.collections()
    assert (found["name"], found["documents"], bool(found["model"])) == ("notes", 3, True)


def test_backups(store: Store) -> None:
    made = store.create_backup("notes")
    assert (made["collection"], made["documents"]) == ("notes", 3)
    assert store.backups("notes") == [made]
    store.delete_documents("notes", ids=["tea"])
    for name, target in ((None, "notes"), ("other", "other")):
        restored = store.restore_backup("notes", made["id"], name=name)
        assert (restored["name"], restored["documents"]) == (target, 3)
    store.delete_backup("notes", made["id"])
    assert store.backups("notes") == []
