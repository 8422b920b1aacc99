"""Metadata of many documents changed at once, beside a model of plain dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.metadata import MetadataChange, merged
from tercet.index.errors import DamagedIndexError, InvalidDocumentError, InvalidQueryError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.records import LedgerEntry
from tercet.index.live import collection as live_collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.operations import Update
from tercet.index.live.records import LiveLimits, WriteKey
from tercet.index.live.replay import replay
from tercet.index.live.state import LiveState

IDS = [f"d{number:02d}" for number in range(40)]
LIMITS = LiveLimits(merge_width=2)


@pytest.fixture
def collection(root: Path, live_settings: Any) -> Collection:
    return Collection.create(root, "demo", live_settings(lexical="idf"))


def put(live: LiveCollection, ids: list[str], metadata: dict[str, Any], random_texts: Any, seed: int) -> None:
    live.put([Document(id, f"text {id}", None, metadata) for id in ids], random_texts(len(ids), seed))


def stored(live: LiveCollection) -> dict[str, Any]:
    return {document.id: dict(document.metadata) for document in live.snapshot().page(None, 1000)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_updates_are_those_of_a_model(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Puts, deletes and updates in any order, through flushes, merges and processes that end as they are."""
    monkeypatch.setattr(live_collection, "UPDATED_AT_ONCE", 7)
    random, model = np.random.default_rng(seed), dict[str, dict[str, Any]]()
    live = LiveCollection(collection, LIMITS).__enter__()
    for step in range(80):
        ids = [str(id) for id in random.choice(IDS, random.integers(1, 20), replace=False)]
        year = int(random.integers(2000, 2005))
        match random.integers(0, 8):
            case 0 | 1:
                put(live, ids, {"year": year, "n": {"a": step, "b": 1}}, random_texts, step)
                model |= {id: {"year": year, "n": {"a": step, "b": 1}} for id in ids}
            case 2:
                live.delete(ids)
                model = {id: metadata for id, metadata in model.items() if id not in ids}
            case 3:
                change = {"year": year, "step": step}
                concerned = [id for id in ids if id in model]
                assert live.update([*ids, "missing"], change).documents == len(concerned)
                model |= dict.fromkeys(concerned, change)
            case 4 | 5:
                change = {"year": None if step % 2 else year, "n": {"a": None, "c": step}}
                concerned = [id for id, metadata in model.items() if metadata.get("year", 0) >= 2002]
                condition = parse_filter({"gte": {"year": 2002}})
                assert live.update(condition, change, merge=True).documents == len(concerned)
                model |= {id: merged(model[id], change) for id in concerned}
            case 6:
                live.flush()
                live.merge()
            case 7:  # nothing is flushed: the next process reads the ledger
                live.__exit__(None, None, None)
                live = LiveCollection(collection, LIMITS).__enter__()
        assert stored(live) == model
        snapshot = live.snapshot()
        assert snapshot.count() == len(model)
        assert snapshot.count(parse_filter({"eq": {"year": year}})) == sum(
            metadata.get("year") == year for metadata in model.values()
        )
    live.__exit__(None, None, None)


def test_scores_stay_as_they_are(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, IDS, {"year": 2001}, random_texts, 1)
        query = random_texts(3, 9).take(np.array([1]))
        before = [(hit.document.id, hit.scores) for hit in live.snapshot().search(query).hits]
        live.update(IDS[:30], {"year": 1999}, merge=True)
        assert [(hit.document.id, hit.scores) for hit in live.snapshot().search(query).hits] == before


def test_a_repeat_under_a_key_answers_the_same(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveCollection(collection) as live:
        put(live, IDS, {"year": 2001}, random_texts, 1)
        for at_once in (100, 7):
            monkeypatch.setattr(live_collection, "UPDATED_AT_ONCE", at_once)
            key = WriteKey(f"k{at_once}", "0" * 64)
            first = live.update(parse_filter({"eq": {"year": 2001}}), {"n": at_once}, merge=True, key=key)
            assert first.documents == len(IDS)
            live.update(IDS[:1], {"n": 0}, merge=True)
            assert (
                live.update(parse_filter({"eq": {"year": 2001}}), {"n": at_once}, merge=True, key=key)
                == first
            )
            assert stored(live)["d00"]["n"] == 0


def test_documents_that_a_filter_no_longer_allows_stay(
    collection: Collection, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two groups somebody else writes."""
    monkeypatch.setattr(live_collection, "UPDATED_AT_ONCE", 1)
    with LiveCollection(collection) as live:
        put(live, ["a", "b", "c"], {"year": 2001}, random_texts, 1)
        upkeep, groups = live._running().upkeep, 0

        def between() -> None:
            nonlocal groups
            groups += 1
            if groups == 2:
                live.delete(["c"])
                live.patch("b", {"year": 1990})

        monkeypatch.setattr(upkeep, "wait_for_room", between)
        assert live.update(parse_filter({"gte": {"year": 2000}}), {"n": 1}, merge=True).documents == 1
        assert stored(live) == {"a": {"year": 2001, "n": 1}, "b": {"year": 1990}}


def test_what_cannot_be_changes_nothing(collection: Collection, random_texts: Any) -> None:
    with LiveCollection(collection) as live:
        put(live, IDS, {"year": 2001}, random_texts, 1)
        before, position = stored(live), live.snapshot().version
        with pytest.raises(InvalidDocumentError, match="field 'year' is declared as integer"):
            live.update(IDS, {"year": "old"}, merge=True)
        with pytest.raises(InvalidQueryError):
            live.update(parse_filter({"exists": "colour"}), {})
        deep: dict[str, Any] = {}
        for _ in range(3000):
            deep = {"a": deep}
        for change in (
            lambda: live.update(IDS, deep, merge=True),
            lambda: live.patch("d00", deep, merge=True),
        ):
            with pytest.raises(InvalidDocumentError, match="it nests deeper than 64 levels"):
                change()
        assert live.update(["none"], {"year": 1}).documents == 0
        assert live.update(parse_filter({"lt": {"year": 1900}}), {"year": 1}).documents == 0
        assert (stored(live), live.snapshot().version) == (before, position)


def test_an_entry_holds_whole_documents(collection: Collection, random_texts: Any) -> None:
    """So that it can be carried out on any state, also after a build took the place of what was there."""
    with LiveCollection(collection) as live:
        put(live, IDS[:3], {"year": 2001}, random_texts, 1)
        live.flush()
        put(live, IDS[3:5], {"year": 2002}, random_texts, 2)
        state = live._running().committer.state
        ids = PackedBytes.of([id.encode() for id in IDS[:5]])
        applied = Update(ids, MetadataChange({"n": 1}, merge=True)).apply(state, 9)
        assert applied.entry is not None
        nothing = LiveState(collection.settings, "000000", ())
        again = replay(nothing, [(9, applied.entry)])
        found = {document.id: dict(document.metadata) for document in again.snapshot().page(None, 10)}
        assert found == {id: {"year": 2001 if id < "d03" else 2002, "n": 1} for id in IDS[:5]}
        damaged = LedgerEntry(applied.entry.kind, applied.entry.payload[:-3])
        with pytest.raises(
            DamagedIndexError, match="an entry in the ledger of collection 'demo' is not documents"
        ):
            replay(nothing, [(9, damaged)])


@pytest.mark.slow
def test_counts_and_updates_of_ten_thousand_documents_are_those_of_a_model(
    collection: Collection, random_texts: Any
) -> None:
    """In segments on the disk and in memory, by filters over single and several values."""
    random, model = np.random.default_rng(5), dict[str, dict[str, Any]]()
    encoded = random_texts(1000, 3)
    with LiveCollection(collection) as live:
        live.declare({"tags": "keyword", "price": "number"})
        for part in range(10):
            documents = []
            for number in random.permutation(1000).tolist():
                metadata: dict[str, Any] = {"year": int(random.integers(1990, 2020))}
                if random.random() < 0.8:
                    metadata["tags"] = [tag for tag in "abc" if random.random() < 0.4]
                if random.random() < 0.8:
                    metadata["price"] = [
                        float(each) for each in random.integers(0, 99, random.integers(1, 3)) / 4
                    ]
                documents.append(Document(f"d{part}-{number:03d}", "text", None, metadata))
            live.put(documents, encoded)
            model |= {document.id: dict(document.metadata) for document in documents}
            if part % 4 == 1:
                live.flush()
        assert live.snapshot().count() == len(model) == 10_000
        filters: list[tuple[Any, Any]] = [
            ({"gte": {"year": 2005}}, lambda m: m["year"] >= 2005),
            ({"in": {"tags": ["a", "c"]}}, lambda m: bool({"a", "c"} & set(m.get("tags", ())))),
            ({"not": {"exists": "price"}}, lambda m: "price" not in m),
            ({"lt": {"price": 3}}, lambda m: any(each < 3 for each in m.get("price", ()))),
            (
                {"and": [{"eq": {"tags": "b"}}, {"or": [{"eq": {"year": 1999}}, {"gt": {"price": 20}}]}]},
                lambda m: (
                    "b" in m.get("tags", ())
                    and (m["year"] == 1999 or any(each > 20 for each in m.get("price", ())))
                ),
            ),
        ]
        for step, (tree, allowed) in enumerate(filters * 2):
            concerned = {id for id, metadata in model.items() if allowed(metadata)}
            condition = parse_filter(tree)
            assert live.snapshot().count(condition) == len(concerned) > 0
            change = {"year": 2010 - 3 * step, "tags": ["a", "b"][step % 2 :], "step": step}
            assert live.update(condition, change, merge=True).documents == len(concerned)
            model |= {id: {**model[id], **change} for id in concerned}
            if step % 3 == 0:
                live.flush()
        found = {each.id: dict(each.metadata) for each in live.snapshot().page(None, 10_001)}
        assert found == model
