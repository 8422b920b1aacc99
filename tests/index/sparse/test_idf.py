"""Collection idf: its formula by hand, its scale, and that every score of a search obeys it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.errors import SearchIndexError
from tercet.index.snapshot import Snapshot
from tercet.index.sparse import idf as idf_module
from tercet.index.sparse.idf import CollectionIdf
from tercet.index.sparse.left_counts import LeftCounts
from tercet.index.sparse.term_statistics import FREQUENCIES, MASSES, TermStatistics
from tercet.index.sparse.term_totals import TermTotals
from tercet.models.representations import Representations

ALL = CandidateLimits(10_000, 10_000)

# In `three`, term 1 is in two of three documents, terms 2, 4 and 5 are in one each:
# idf(1) = ln(1 + 1.5/2.5) = 0.4700 and ln(1 + 2.5/1.5) = 0.9808 for the others. The documents' weights for
# term 1 add up to 1.5, for the others to 4.5: m = (1.5·0.4700 + 4.5·0.9808) / 6 = 0.8531.
COMMON, RARE = math.log(1.6), math.log(8 / 3)
MEAN = (1.5 * COMMON + 4.5 * RARE) / 6


Counted = tuple[list[int], list[int], list[int]]


def idf_factors(documents: int, *segments: Counted, vocabulary: int = 6) -> np.ndarray[Any, Any]:
    """Of all terms, where segments have terms with frequencies and masses."""
    statistics = [
        TermStatistics(np.array(terms, np.int32), np.array(frequencies, np.int32), np.array(masses, np.int64))
        for terms, frequencies, masses in segments
    ]
    counts = [LeftCounts(each, lambda counts, _: counts) for each in statistics]
    return CollectionIdf(documents, counts, vocabulary).of_terms(np.arange(vocabulary, dtype=np.int32))


def test_factors_by_hand() -> None:
    unit = 1_000_000
    masses = [3 * unit, unit, 2 * unit, 6 * unit]
    absent = math.log(1 + 3.5 / 0.5)
    expected = [absent, COMMON, RARE, absent, RARE, RARE]
    factors = idf_factors(3, ([1, 2, 4, 5], [2, 1, 1, 1], masses))
    assert factors.tolist() == pytest.approx([idf / MEAN for idf in expected])


def test_all_lexical_weight_adds_up_to_as_much_as_without() -> None:
    random = np.random.default_rng(1)
    frequencies = random.integers(0, 400, 1000)
    masses = frequencies * random.integers(1, 900_000, 1000)
    every = list(range(1000))
    factors = idf_factors(400, (every, frequencies.tolist(), masses.tolist()), vocabulary=1000)
    assert masses @ factors == pytest.approx(masses.sum())
    assert (factors > 0).all()
    order = np.argsort(frequencies, kind="stable")
    assert (np.diff(factors[order]) <= 0).all()  # the more documents have a term, the less it counts


def test_without_any_weight_terms_count_as_they_are() -> None:
    assert idf_factors(0).tolist() == [1] * 6
    assert idf_factors(7).tolist() == [1] * 6  # documents without terms


def test_segments_add_up() -> None:
    found = idf_factors(9, ([0, 2], [3, 1], [70, 20]), ([0, 1], [2, 2], [5000, 8000]))
    assert found.tolist() == idf_factors(9, ([0, 1, 2], [5, 2, 1], [5070, 8000, 20])).tolist()


def test_a_search_by_hand(build: Any, three: Any, three_query: Any) -> None:
    snapshot = build(three, segment=2, token_codec="float16", lexical="idf").snapshot()
    scores = {hit.document.id: hit.scores for hit in snapshot.search(three_query).hits}
    # c: 2·1·idf(1)/m + 1·0.5·idf(2)/m, a: 2·0.5·idf(1)/m
    assert scores["c"].sparse == pytest.approx((2 * COMMON + 0.5 * RARE) / MEAN, abs=1e-6)
    assert scores["a"].sparse == pytest.approx(COMMON / MEAN, abs=1e-6)
    assert scores["b"].sparse == 0.0
    assert (scores["c"].dense, scores["c"].colbert) == (0.5, 0.5)


def test_an_explanation_shows_each_idf(build: Any, three: Any, three_query: Any) -> None:
    terms = build(three, segment=2, lexical="idf").snapshot().explanations(three_query, ["c"])[0].terms
    assert terms.token_ids.tolist() == [1, 2]
    assert terms.query_weights.tolist() == [2.0, 1.0]
    assert terms.idf.tolist() == pytest.approx([COMMON / MEAN, RARE / MEAN])
    assert terms.document_weights.tolist() == [1.0, 0.5]
    assert terms.products.tolist() == pytest.approx([2 * COMMON / MEAN, 0.5 * RARE / MEAN])


def test_candidates_are_chosen_by_the_same_weights(
    build: Any, plain_representations: Callable[..., Representations]
) -> None:
    """The common term finds one document, the rare one another; only idf prefers the rare one."""
    documents = [Document(name, name) for name in ("common", "rare", "x", "y", "z")]
    encoded = plain_representations(
        [[1, 0]] * 5, [{1: 1.0}, {2: 0.9}, {1: 0.1}, {1: 0.1}, {1: 0.1}], [[[1, 0]]] * 5
    )
    query = plain_representations([[1, 0]], [{1: 1.0, 2: 1.0}], [[[1, 0]]])
    for lexical, first in (("plain", 0), ("idf", 1)):
        snapshot = build((documents, encoded), name=lexical, lexical=lexical).snapshot()
        assert snapshot.retrieve(query, candidates=CandidateLimits(0, 1)).rows.tolist() == [first]


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), segment=st.sampled_from([9, 31, 80]))
def test_every_score_is_that_of_the_formula(
    build: Any, random_corpus: Any, random_texts: Any, seed: int, segment: int
) -> None:
    documents, encoded = random_corpus(80, seed)
    snapshot: Snapshot = build(
        (documents, encoded), name=f"s{segment}", segment=segment, lexical="idf"
    ).snapshot()
    query: Representations = random_texts(1, seed + 1)
    expected = lexical_scores_of_the_formula(encoded, query)
    ids = [document.id for document in documents]
    hits = snapshot.search(query, top_k=80, weights=Weights(0, 1, 0), candidates=ALL).hits
    assert len(hits) == sum(score != 0 for score in expected)  # others are no hits
    for hit in hits:
        wanted = expected[ids.index(hit.document.id)]
        assert hit.scores.sparse == hit.score == pytest.approx(wanted, rel=2e-6, abs=2e-6)
        terms = snapshot.explanations(query, [hit.document.id])[0].terms
        assert terms.products.sum() == pytest.approx(wanted, rel=2e-6, abs=2e-6)
    found_ids, components = snapshot.score_all(query)
    assert components[:, 1].tolist() == pytest.approx(
        [expected[ids.index(id)] for id in found_ids], rel=2e-6, abs=2e-6
    )


def lexical_scores_of_the_formula(documents: Representations, query: Representations) -> list[float]:
    """The sums, term by term, as the formula is written."""
    assert documents.sparse is not None
    assert query.sparse is not None
    rows = [dict(zip(*map(list, documents.sparse.row(row)), strict=True)) for row in range(len(documents))]

    def frequency(term: int) -> int:
        return sum(term in row for row in rows)

    def idf(term: int) -> float:
        return math.log(1 + (len(rows) - frequency(term) + 0.5) / (frequency(term) + 0.5))

    weights = [(term, weight) for row in rows for term, weight in row.items()]
    mean = sum(weight * idf(term) for term, weight in weights) / sum(weight for _, weight in weights)
    wanted = dict(zip(*map(list, query.sparse.row(0)), strict=True))
    return [
        sum(weight * row[term] * idf(term) / mean for term, weight in wanted.items() if term in row)
        for row in rows
    ]


def test_terms_are_counted_once_for_a_snapshot(
    build: Any, three: Any, three_query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []

    def counted(segments: Any, vocabulary_size: int) -> TermTotals:
        computed.append(vocabulary_size)
        time.sleep(0.05)  # time for others to begin, too
        return TermTotals(segments, vocabulary_size)

    monkeypatch.setattr(idf_module, "TermTotals", counted)
    snapshot = build(three, segment=1, lexical="idf").snapshot()
    assert snapshot.get("a") is not None
    assert computed == []  # a snapshot that is not searched needs none
    with ThreadPoolExecutor(4) as threads:
        for found in [threads.submit(snapshot.search, three_query) for _ in range(8)]:
            found.result()
    snapshot.explanations(three_query, ["c"])[0]
    snapshot.score_all(three_query)
    assert computed == [snapshot.settings.vocabulary_size]


def test_a_closed_snapshot_counts_nothing(build: Any, three: Any, three_query: Any) -> None:
    collection = build(three, lexical="idf")
    snapshot = collection.snapshot()
    idf = snapshot.idf
    snapshot.close()
    assert str(collection.layout.folder) not in Path("/proc/self/maps").read_text()
    with pytest.raises(SearchIndexError, match="open another"):
        snapshot.search(three_query)
    with pytest.raises(SearchIndexError, match="open another"):
        idf.of_terms(np.array([1], np.int32))
    searched = collection.snapshot()
    searched.search(three_query)
    searched.close()
    assert searched.idf.of_terms(np.array([1], np.int32)) == pytest.approx([COMMON / MEAN])
    assert str(collection.layout.folder) not in Path("/proc/self/maps").read_text()


def test_a_plain_collection_is_on_disk_as_before(build: Any, three: Any) -> None:
    collection = build(three, lexical="plain")
    assert "lexical" not in json.loads(collection.layout.settings.read_text())
    (file,) = collection.layout.segments.glob("*/*")
    assert not {FREQUENCIES, MASSES} & load_file(file).keys()
    assert collection.snapshot().idf is None


def test_an_empty_collection_searches(build: Any, three: Any, three_query: Any) -> None:
    documents, encoded = three
    collection = build((documents[:0], encoded.take(np.zeros(0, np.int64))), lexical="idf")
    assert collection.snapshot().search(three_query).hits == []


def test_a_rebuild_counts_anew(build: Any, three: Any, three_query: Any) -> None:
    build(three, lexical="idf")
    documents, encoded = three
    again = build((documents[:2], encoded.take(np.array([0, 1]))))  # the collection keeps its setting
    # Terms 1, 4 and 5 are now in one of two documents each, so that each counts 1.
    assert again.snapshot().search(three_query).hits[0].scores.sparse == 1.0
