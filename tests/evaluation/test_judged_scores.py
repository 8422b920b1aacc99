"""Scores for tuning: worked out by hand, and always what a real search finds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tercet.evaluation.judged_scores import JudgedScores, ideal_dcg, judged_scores, ndcg_table
from tercet.evaluation.metrics import measure
from tercet.evaluation.weight_search import Choice, choose, cross_validate, weight_directions
from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.writer import SegmentLimits
from tercet.models.representations import OUTPUTS, Representations, SparseRows, TokenVectors, offsets_of

VOCABULARY = 40


def texts(dense: Any, terms: list[dict[int, float]], tokens: list[Any]) -> Representations:
    """Representations of some texts: dense [B, D], weights by token id, token vectors [L, C] each."""
    rows = [sorted(each.items()) for each in terms]
    pairs = [pair for row in rows for pair in row]
    lengths = np.array([len(each) for each in tokens], np.int64)
    return Representations(
        lengths + 1,
        np.zeros(len(lengths), np.bool_),
        np.asarray(dense, np.float32),
        SparseRows(
            offsets_of(np.array([len(row) for row in rows], np.int64)),
            np.array([token for token, _ in pairs], np.int32),
            np.array([weight for _, weight in pairs], np.float32),
        ),
        TokenVectors(np.concatenate(tokens).astype(np.float32), offsets_of(lengths)),
    )


def snapshot_of(
    root: Path, name: str, documents: Representations, segment: int = 10_000, **changes: Any
) -> Snapshot:
    """A published collection of documents d0, d1, …"""
    assert documents.dense is not None
    assert documents.colbert is not None
    collection = Collection.create(
        root,
        name,
        CollectionSettings(
            name=name,
            encoder="none",
            fingerprint="f" * 64,
            dense_dimension=documents.dense.shape[1],
            colbert_dimension=documents.colbert.vectors.shape[1],
            vocabulary_size=VOCABULARY,
            **{"token_codec": "float16", **changes},
        ),
    )
    with collection.writer(SegmentLimits(documents=segment)) as writer:
        writer.add([Document(f"d{number}", "text") for number in range(len(documents))], documents)
        writer.publish()
    return collection.snapshot()


@pytest.fixture
def four(tmp_path: Path) -> Snapshot:
    """Documents of which terms find the right one for `asked`, and vectors another."""
    vectors = np.eye(4)
    terms = [{number: 1.0} for number in range(4)]
    return snapshot_of(tmp_path, "four", texts(vectors, terms, [vectors[[n]] for n in range(4)]))


def asked(number: int) -> Representations:
    """A query for document `number`; its dense and token vectors are those of the document after it."""
    wrong = np.eye(4)[[(number + 1) % 4]]
    return texts(wrong, [{number: 0.5}], [wrong])


def test_scores_and_measures_worked_out_by_hand(four: Snapshot) -> None:
    judged = judged_scores(four, asked(1), {"d1": 2, "d9": 1, "d3": 0}, (1, 4))
    # With one candidate each, d2 by its vector and d1 by its term; with four, the scan gives all.
    assert judged.proposed.tolist() == [[False, True, True, False], [True] * 4]
    assert judged.components.tolist() == [[0, 0, 0], [0, 0.5, 0], [1, 0, 1], [0, 0, 0]]
    assert judged.grades.tolist() == [0, 2, 0, 0]
    assert judged.ideal == pytest.approx(2 + 1 / math.log2(3))
    table = ndcg_table(judged, np.array([[1.0, 1, 1], [0, 3, 0], [1.5, 0, 1.5], [0, 0, 3]]))
    first, second = (2 / math.log2(rank + 1) / judged.ideal for rank in (1, 2))
    # With its weight 0, nothing is said of d1: a search does not find it.
    assert table == pytest.approx(np.array(2 * [[second, first, 0, 0]]))
    for weights in (Weights(1.5, 0, 1.5), Weights(0, 0, 3)):
        assert [hit.document.id for hit in four.search(asked(1), weights=weights).hits] == ["d2"]


def test_the_side_that_is_right_is_found_and_its_gain_measured(four: Snapshot) -> None:
    directions = weight_directions(OUTPUTS)
    rows = [
        ndcg_table(judged_scores(four, asked(n % 4), {f"d{n % 4}": 1}, (1, 4)), directions) for n in range(12)
    ]
    table = np.stack(rows)
    choice = choose(table)
    assert choice.candidates == 0
    dense, sparse, colbert = directions[choice.weights]
    # The right document has 0.5 · sparse, the wrong one dense + colbert: nothing nearer to 1, 1, 1 will do.
    assert 0.5 * sparse > dense + colbert
    right = directions[0.5 * directions[:, 1] > directions[:, 0] + directions[:, 2]]
    assert np.linalg.norm([dense - 1, sparse - 1, colbert - 1]) == pytest.approx(
        np.linalg.norm(right - 1, axis=1).min(), abs=0.001
    )
    for fold in cross_validate(table, Choice(1, 0), 3, seed=0):
        assert fold.choice == choice
        assert fold.baseline == pytest.approx(np.full(4, 1 / math.log2(3)))
        assert fold.tuned == pytest.approx(np.ones(4))


def test_the_ideal_counts_ten_grades() -> None:
    assert ideal_dcg([0, 1, -1, 3]) == pytest.approx(3 + 1 / math.log2(3))
    assert ideal_dcg([1] * 30) == ideal_dcg([1] * 10)


def test_rank_eleven_is_too_late() -> None:
    scores = np.zeros((12, 3))
    scores[:, 0] = 12 - np.arange(12)
    for place, expected in ((9, 1 / math.log2(11)), (10, 0.0)):
        grades = np.zeros(12, np.int64)
        grades[place] = 1
        judged = JudgedScores(scores, np.ones((1, 12), np.bool_), grades, 1.0)
        assert ndcg_table(judged, np.array([[3.0, 0, 0]])) == pytest.approx(expected)


def random_texts(count: int, seed: int) -> Representations:
    """Unit vectors and weights; a few values only, so that scores often tie."""
    random = np.random.default_rng(seed)
    dense = random.integers(-1, 2, (count, 6)) + 0.01
    terms = [
        {
            int(token): float(random.integers(1, 4)) / 2
            for token in random.choice(VOCABULARY, 3, replace=False)
        }
        for _ in range(count)
    ]
    tokens = [random.integers(-1, 2, (int(random.integers(1, 4)), 4)) + 0.01 for _ in range(count)]
    return texts(
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        terms,
        [each / np.linalg.norm(each, axis=1, keepdims=True) for each in tokens],
    )


def check_against_searches(snapshot: Snapshot, seed: int, limits: tuple[int, ...]) -> None:
    """nDCG of the table equals that of rankings which real searches give."""
    random = np.random.default_rng(seed)
    query = random_texts(1, seed)
    grades = {f"d{n}": int(random.integers(0, 4)) for n in random.choice(snapshot.documents, 25)} | {"d0": 1}
    directions = weight_directions(snapshot.settings.sides)
    chosen = directions[[0, *random.choice(len(directions), 6)]]
    table = ndcg_table(judged_scores(snapshot, query, grades, limits), chosen)
    for row, limit in enumerate(limits):
        for column, weights in enumerate(chosen.tolist()):
            found = snapshot.search(
                query, weights=Weights(*weights), candidates=CandidateLimits(limit, limit), top_k=10
            )
            expected = measure({"q": grades}, {"q": [hit.document.id for hit in found.hits]})["nDCG@10"]
            assert table[row, column] == pytest.approx(expected, abs=1e-9), (limit, weights)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), segment=st.sampled_from([7, 30, 100]))
@example(seed=4996, segment=30)  # whose one candidate by dense has no term of the query
def test_fewer_candidates_are_those_of_a_real_search(
    tmp_path_factory: pytest.TempPathFactory, seed: int, segment: int
) -> None:
    root = tmp_path_factory.mktemp("collections")
    snapshot = snapshot_of(root, "random", random_texts(60, seed), segment)
    check_against_searches(snapshot, seed + 1, (1, 3, 10, 25))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "codec", "lexical"),
    [
        ("hnsw", "int8", "plain"),
        ("ivfpq", "int8", "plain"),
        ("flat", "none", "plain"),
        ("flat", "int8", "idf"),
    ],
)
def test_other_settings_too(tmp_path: Path, kind: str, codec: str, lexical: str) -> None:
    changes = {"dense_kind": kind, "token_codec": codec, "lexical": lexical}
    snapshot = snapshot_of(tmp_path, kind, random_texts(1200, 5), **changes)
    for seed in range(3):
        check_against_searches(snapshot, seed, (5, 20, 200))
