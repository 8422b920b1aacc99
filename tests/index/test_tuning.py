"""The least effort for a wanted recall."""

from typing import Any

import numpy as np
import pytest

from tercet.index import tuning
from tercet.index.candidates import CandidateLimits, DenseOptions
from tercet.index.dense import index as dense
from tercet.index.errors import InvalidQueryError
from tercet.index.tuning import EffortTuning

pytestmark = pytest.mark.slow

K = 50


@pytest.fixture
def snapshot(build: Any, random_corpus: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two graphs that are walked at any effort."""
    monkeypatch.setattr(dense, "ROWS_PER_EF", 0)
    monkeypatch.setattr(dense, "TIE_MARGIN", 0)
    monkeypatch.setattr(dense, "least_effort", lambda k: k)
    monkeypatch.setattr(tuning, "least_effort", lambda _: 16)
    return build(random_corpus(4_000, seed=3), segment=2_000, dense_kind="hnsw").snapshot()


def test_efforts_grow_until_one_finds_enough(snapshot: Any) -> None:
    efforts = EffortTuning(snapshot, K)
    queries = efforts.sampled_queries(30, seed=1)
    assert np.linalg.norm(queries, axis=1) == pytest.approx(np.ones(30), abs=1e-5)
    told: list[tuple[int, int]] = []
    rows = list(efforts.measured(queries, 0.999, lambda *done: told.append(done)))
    assert [row.options.ef_search for row in rows][:4] == [16, 23, 32, 45]
    assert all(row.recall < 0.999 for row in rows[:-1])
    assert rows[-1].recall >= 0.999
    assert all(row.lowest <= row.recall for row in rows)
    assert told[-1] == (30, 30)
    assert efforts.kind == "hnsw"


def test_recall_is_that_of_searches(snapshot: Any, random_texts: Any) -> None:
    """Of the k best of all documents, what a search with this effort proposes."""
    queries = random_texts(20, 8)
    row = next(EffortTuning(snapshot, K).measured(queries.dense, 0.01))
    found, limits = [], CandidateLimits(K, 0)
    for number in range(20):
        query = queries.take(np.array([number]))
        best, exact = (
            set(np.round(snapshot.retrieve(query, candidates=limits, dense_options=options).dense, 6))
            for options in (row.options, DenseOptions(100_000))
        )
        found.append(len(best & exact) / K)
    assert row.recall == pytest.approx(np.mean(found), abs=0.02)


def test_the_first_effort_is_what_a_graph_does_with_any_less(
    snapshot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    efforts = EffortTuning(snapshot, K)
    first = next(efforts.measured(efforts.sampled_queries(2, seed=1), 0.5))
    assert first.options.ef_search == 2 * (K + dense.TIE_MARGIN)


@pytest.mark.parametrize(("largest", "usual"), [(100_000, 198), (100, 100)])  # 3 × (50 + 16)
def test_lists_are_tuned_by_their_probes_with_the_usual_effort_of_a_graph(
    build: Any, random_corpus: Any, monkeypatch: pytest.MonkeyPatch, largest: int, usual: int
) -> None:
    """Or with the largest that can be stored."""
    monkeypatch.setattr(tuning, "LARGEST_EFFORT", largest)
    efforts = EffortTuning(build(random_corpus(2_000, 4), dense_kind="ivfrabitq").snapshot(), K)
    first = next(efforts.measured(efforts.sampled_queries(2, seed=1), 0.01))
    assert efforts.kind == "ivfrabitq"
    assert first.options == DenseOptions(usual, 4)


def test_where_nothing_is_to_choose_it_says_so(snapshot: Any, build: Any, random_corpus: Any) -> None:
    with pytest.raises(InvalidQueryError, match="scanned, so any effort"):
        EffortTuning(build(random_corpus(30, 1), name="flat").snapshot(), 5)
    with pytest.raises(InvalidQueryError, match="k is 4001, but 'demo' has 4000 documents"):
        EffortTuning(snapshot, 4_001)
