"""A search over shards finds what one machine with all documents finds: hits, scores and ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.candidates import CandidateLimits, Cursor, Document, Page, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.documents.boosts import DecayBoost, FilterBoost
from tercet.index.documents.filters import parse_filter
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.service.search.confidence import rated, with_leaders
from tests.cluster.router.conftest import Divided, MakeDivided
from tests.cluster.router.corpora import uneven_corpus
from tests.index.conftest import random_representations, settings_for

pytestmark = pytest.mark.slow

FIELDS = {"year": "integer", "tags": "keyword", "kind": "keyword", "new": "boolean"}
TEXTS = [None, "tea", "green tea and water", "the kettle", "train station rail steam", "xyz"]
WEIGHTS = [
    Weights(),
    Weights(1, 0, 0),
    Weights(0, 1, 0),
    Weights(0, 0, 1),
    Weights(0.15, 0.5, 0.35),
    Weights(1, 1, 0),
    Weights(1, -0.5, 0.2),
]
WITH_BM25 = [Weights(1, 1, 1, 1), Weights(0, 0, 0, 1), Weights(1, 0, 0, 0.3)]
LIMITS = [
    CandidateLimits(),
    CandidateLimits(30, 25),
    CandidateLimits(9, 7, 5),
    CandidateLimits(0, 3),
    CandidateLimits(1, 0),
]
FILTERS = [
    None,
    parse_filter({"not": {"eq": {"year": 2003}}}),
    parse_filter({"and": [{"in": {"tags": ["two", "five"]}}, {"eq": {"new": True}}]}),
    parse_filter({"eq": {"year": 1900}}),
]
BOOSTS = [
    (),
    (FilterBoost(parse_filter({"eq": {"kind": "odd"}}), 0.25),),
    (DecayBoost("year", "exp", 2004, 2, 0.5), FilterBoost(parse_filter({"exists": "kind"}), -0.1)),
]

asked = {
    "seed": st.integers(0, 30),
    "text": st.sampled_from(TEXTS),
    "weights": st.sampled_from(WEIGHTS + WITH_BM25),
    "candidates": st.sampled_from(LIMITS),
    "filter": st.sampled_from(FILTERS),
    "boosts": st.sampled_from(BOOSTS),
    "group_by": st.sampled_from([None, None, "tags", "kind"]),
    "fusion": st.sampled_from(["sum", "sum", "rrf"]),
    "top_k": st.sampled_from([1, 3, 10, 40, 200]),
    "contents": st.booleans(),
}
often = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=[1, 2, 5])
def divided(request: Any, divide: Any) -> Divided:
    """Of 90 documents over so many shards, with every side."""
    documents, encoded = uneven_corpus(90, 8, request.param)
    wanted = settings_for(encoded, "demo", fields=FIELDS, dense_kind="flat", lexical="idf", bm25=True)
    made: Divided = divide(documents, encoded, wanted, request.param)
    return made


def found_by(divided: Divided, wanted: dict[str, Any], page: Page) -> tuple[Any, Any]:
    """What one machine and what shards find."""
    return found_in(divided.one, wanted, page), found_in(divided.sharded(), wanted, page)


def found_in(snapshot: Any, wanted: dict[str, Any], page: Page) -> Any:
    """The hits of a search in a snapshot."""
    options = {name: value for name, value in wanted.items() if name != "seed"}
    query = random_representations(1, wanted["seed"])
    if wanted["weights"].bm25 and wanted["text"] is None:
        options["text"] = "tea"
    return snapshot.answer(SnapshotQuery(query, page=page, **options)).hits


@often
@given(
    wanted=st.fixed_dictionaries(asked),
    offset=st.sampled_from([0, 0, 0, 1, 7, 60]),
    least=st.sampled_from([None, None, 0.2, 1.0, -1.0]),
)
def test_hits_are_those_of_one_machine(
    divided: Divided, wanted: dict[str, Any], offset: int, least: Any
) -> None:
    expected, found = found_by(divided, wanted, Page(offset=offset, min_score=least))
    assert found == expected


@often
@given(wanted=st.fixed_dictionaries(asked), place=st.integers(0, 50), moved=st.sampled_from(["", "\0", "!"]))
def test_pages_behind_a_cursor_are_those_of_one_machine(
    divided: Divided, wanted: dict[str, Any], place: int, moved: str
) -> None:
    whole = found_in(divided.one, {**wanted, "top_k": 200}, Page())
    if not whole:
        return
    last = whole[min(place, len(whole) - 1)]
    expected, found = found_by(divided, wanted, Page(after=Cursor(last.score, last.document.id + moved)))
    assert found == expected


def test_sixteen_shards_answer_as_one(divide: Any) -> None:
    documents, encoded = uneven_corpus(120, 4, 16)
    wanted = settings_for(encoded, "demo", fields=FIELDS, dense_kind="flat", lexical="idf", bm25=True)
    divided = divide(documents, encoded, wanted, 16)
    random = np.random.default_rng(3)
    for seed in range(25):
        asked_for = {
            "seed": seed,
            "text": "green tea and water",
            "weights": (WEIGHTS + WITH_BM25)[random.integers(len(WEIGHTS) + len(WITH_BM25))],
            "candidates": LIMITS[random.integers(len(LIMITS))],
            "filter": FILTERS[random.integers(len(FILTERS))],
            "boosts": BOOSTS[random.integers(len(BOOSTS))],
            "group_by": [None, "tags"][random.integers(2)],
            "fusion": ["sum", "rrf"][random.integers(2)],
            "top_k": [3, 30][random.integers(2)],
        }
        expected, found = found_by(divided, asked_for, Page(offset=int(random.integers(3))))
        assert found == expected


@pytest.mark.parametrize("weights", [Weights(), Weights(0.15, 0.5, 0.35), Weights(1, 1, 1, 1)])
def test_how_sure_it_is_is_that_of_one_machine(divided: Divided, weights: Weights) -> None:
    calibration = Calibration((-1.0, 0.5, 0.25, 1.0, -0.125, 2.0), 0.5, 10)
    for seed in range(6):
        query = SnapshotQuery(random_representations(1, seed), "green tea", weights=weights, boosts=BOOSTS[1])
        rated_hits = []
        for snapshot in (divided.one, divided.sharded()):
            asked = with_leaders(query, snapshot)
            rated_hits.append(rated(snapshot, asked, snapshot.answer(asked), calibration))
        one, shards = rated_hits
        assert shards == one
        assert len(one.confidences) == len(one.hits) > 0


def test_shards_say_what_languages_they_have(divide: MakeDivided) -> None:
    said = "The bridge over the river was closed for repairs until the end of the month."
    gesagt = "Die Brücke über den Fluss wurde bis zum Ende des Monats für Reparaturen gesperrt."
    documents = [Document(f"d{row}", gesagt if row % 3 else said) for row in range(400)]
    encoded = random_representations(400, seed=3)
    divided = divide(documents, encoded, settings_for(encoded, "demo"), 3)
    found, expected = divided.sharded().languages(), divided.one.languages()
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    assert (found.languages, {*found.languages}) == (expected.languages, {"en", "de"})
