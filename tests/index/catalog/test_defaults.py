"""Stored defaults: their file, what is refused in it, and when it goes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection, delete_collection
from tercet.index.errors import CollectionNotFoundError, DamagedIndexError
from tercet.index.inspection import inspect_collection
from tercet.index.verify import verify

DEFAULTS = SearchDefaults(
    Weights(1.252, 0.497, 1.251),
    CandidateLimits(50, 100),
    Tuning("000001", queries=225, folds=5, seed=3, plain=0.45, tuned=0.4618),
)


@pytest.fixture
def collection(build: Any, three: Any) -> Collection:
    collection: Collection = build(three)
    return collection


def test_what_is_stored_is_read_and_can_be_removed(collection: Collection, root: Path) -> None:
    assert collection.defaults() is None
    collection.store_defaults(DEFAULTS)
    assert collection.defaults() == DEFAULTS
    assert inspect_collection(root, "demo").defaults == DEFAULTS
    assert [path.name for path in collection.layout.folder.glob("*defaults*")] == ["defaults.json"]
    assert json.loads(collection.layout.defaults.read_text())["weights"] == {
        "dense": 1.252,
        "sparse": 0.497,
        "colbert": 1.251,
    }
    assert verify(root, "demo") == []
    by_hand = SearchDefaults(Weights(1, 0.5, 1), CandidateLimits())
    collection.store_defaults(by_hand)
    assert collection.defaults() == by_hand
    assert "tuning" not in json.loads(collection.layout.defaults.read_text())
    assert collection.remove_defaults()
    assert not collection.remove_defaults()
    assert inspect_collection(root, "demo").defaults is None


def test_how_sure_searches_are_is_written_where_it_is_known(collection: Collection) -> None:
    stored = replace(DEFAULTS, confidence=Calibration((-1.0, 0.5, 0.25, 1.0, -0.5, 2.0), 0.25, 12))
    collection.store_defaults(stored)
    assert collection.defaults() == stored
    record = json.loads(collection.layout.defaults.read_text())
    record["confidence"]["coefficients"]["gap"] = "wide"
    collection.layout.defaults.write_text(json.dumps(record))
    with pytest.raises(DamagedIndexError, match='gap is "wide", no number from -1e'):
        collection.defaults()


def test_bm25_is_written_where_it_has_a_weight(build: Any, three: Any) -> None:
    collection: Collection = build(three, bm25=True)
    stored = SearchDefaults(Weights(1, 1, 1, 0.5), CandidateLimits(50, 100, 70), DEFAULTS.tuning)
    collection.store_defaults(stored)
    record = json.loads(collection.layout.defaults.read_text())
    assert (record["weights"]["bm25"], record["candidates"]["bm25"]) == (0.5, 70)
    assert collection.defaults() == stored
    collection.store_defaults(SearchDefaults(Weights(0, 0, 0, 1), CandidateLimits(), DEFAULTS.tuning))
    assert collection.defaults() is not None
    record["candidates"]["bm25"] = 0
    collection.layout.defaults.write_text(json.dumps(record))
    with pytest.raises(DamagedIndexError, match="bm25 is 0, no whole number of at least 1"):
        collection.defaults()


def test_a_collection_without_bm25_has_no_default_for_it(build: Any, three: Any, root: Path) -> None:
    first, other = build(three, bm25=True), build(three, name="other")
    stored = SearchDefaults(Weights(1, 1, 1, 0.5), CandidateLimits(), DEFAULTS.tuning)
    first.store_defaults(stored)
    shutil.copyfile(first.layout.defaults, other.layout.defaults)
    assert verify(root, "demo") == []
    (problem,) = verify(root, "other")
    assert str(other.layout.defaults) in problem
    assert "weights.bm25 is 0.5, but collection 'other' has no BM25" in problem
    assert "tercet tune NAME --reset" in problem
    with pytest.raises(DamagedIndexError, match="has no BM25"):
        other.defaults()


def test_defaults_outlive_a_rebuild_but_not_the_collection(
    build: Any, three: Any, collection: Collection, root: Path
) -> None:
    collection.store_defaults(DEFAULTS)
    assert build(three).defaults() == DEFAULTS
    delete_collection(root, "demo")
    with pytest.raises(CollectionNotFoundError, match="was deleted"):
        collection.store_defaults(DEFAULTS)
    assert build(three).defaults() is None


def test_a_folder_that_lost_its_settings_gives_no_defaults_to_a_new_collection(
    root: Path, three: Any, make_settings: Any
) -> None:
    settings = make_settings(three[1], "demo")
    first = Collection.create(root, "demo", settings)
    first.store_defaults(DEFAULTS)
    first.layout.settings.unlink()
    assert Collection.create(root, "demo", settings).defaults() is None


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("format_version",), 2, "format version 2"),
        (("format_version",), True, "format version true"),
        (("weight",), 1, 'unknown: ["weight"]'),
        (("weights",), [1, 1, 1], "weights is no object"),
        (("weights", "lexical"), 1, 'unknown: ["lexical"]'),
        (("weights", "dense"), "1", 'dense is "1", no number from 0 to'),
        (("weights", "dense"), True, "dense is true, no number from 0 to"),
        (("weights", "dense"), -1, "dense is -1, no number from 0 to"),
        (("weights", "dense"), float("nan"), "dense is NaN, no number from 0 to"),
        (("weights",), {"dense": 0, "sparse": 0, "colbert": 0}, "all weights are 0"),
        (("candidates", "dense"), 0, "dense is 0, no whole number of at least 1"),
        (("candidates", "dense"), 2.5, "dense is 2.5, no whole number"),
        (("tuning", "snapshot"), "../1", 'snapshot "../1" is not of the form'),
        (("tuning", "folds"), 1, "folds is 1, no whole number of at least 2"),
        (("tuning", "tuned"), 1.2, "tuned is 1.2, no number from 0 to 1"),
        (("tuning",), None, "tuning is no object"),
    ],
)
def test_a_wrong_key_or_value_is_damage(
    collection: Collection, root: Path, place: tuple[str, ...], value: Any, fault: str
) -> None:
    collection.store_defaults(DEFAULTS)
    path = collection.layout.defaults
    record = json.loads(path.read_text())
    part = record
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(record))
    (problem,) = verify(root, "demo")
    assert str(path) in problem
    assert fault in problem
    assert "tercet tune NAME --reset" in problem
    with pytest.raises(DamagedIndexError, match=r"defaults\.json"):
        collection.defaults()
    assert collection.remove_defaults()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xff"])
def test_what_is_no_json_object_is_damage(collection: Collection, root: Path, content: bytes) -> None:
    collection.layout.defaults.write_bytes(content)
    (problem,) = verify(root, "demo")
    assert "tercet tune NAME --reset" in problem
