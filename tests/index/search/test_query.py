"""Queries: what a collection cannot answer is refused with the value, the limit and the remedy."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.errors import InvalidQueryError
from tercet.index.search.query import check_query
from tercet.models.representations import SparseRows, TokenVectors

NAN, INF = float("nan"), float("inf")


def sparse(token_ids: list[int], weights: list[float]) -> SparseRows:
    return SparseRows(
        np.array([0, len(token_ids)]), np.array(token_ids, np.int32), np.array(weights, np.float32)
    )


def test_terms_are_sorted_and_zero_weights_dropped(three: Any, three_query: Any, make_settings: Any) -> None:
    query = dataclasses.replace(three_query, sparse=sparse([5, 2, 9], [0.5, 1.5, 0]))
    checked = check_query(query, make_settings(three[1], "demo"))
    assert checked.token_ids.tolist() == [2, 5]
    assert checked.weights.tolist() == [1.5, 0.5]


def test_vectors_may_lie_in_pieces(build: Any, three: Any, three_query: Any) -> None:
    """As columns of a matrix do."""
    snapshot = build(three).snapshot()
    apart = np.repeat(three_query.dense, 2, axis=1)[:, ::2]
    assert not apart.flags.c_contiguous
    query = dataclasses.replace(three_query, dense=apart)
    assert snapshot.search(query).hits == snapshot.search(three_query).hits
    np.testing.assert_array_equal(snapshot.score_all(query)[1], snapshot.score_all(three_query)[1])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"dense": np.ones((1, 3), np.float32)}, r"dense vectors have shape \(1, 3\).*dimension 2"),
        ({"dense": np.array([[NAN, 0]], np.float32)}, "a dense value of the query is not finite"),
        ({"dense": np.array([[1e7, 0]], np.float32)}, r"beyond 1e\+06"),
        ({"sparse": sparse([60], [1])}, "outside the vocabulary of 60"),
        ({"sparse": sparse([-1], [1])}, "outside the vocabulary"),
        ({"sparse": sparse([3, 3], [1, 1])}, "occurs twice"),
        ({"sparse": sparse([3], [-1])}, "below 0"),
        ({"sparse": sparse([3], [INF])}, "sparse weight of the query is not finite"),
        ({"sparse": sparse([3, 4], [1])}, "2 token ids came with 1 weights"),
        (
            {"colbert": TokenVectors(np.ones((1, 3), np.float32), np.array([0, 1]))},
            "colbert vectors have shape",
        ),
        ({"colbert": TokenVectors(np.full((1, 2), -INF, np.float32), np.array([0, 1]))}, "a colbert value"),
    ],
)
def test_unusable_representations_are_refused(
    build: Any, three: Any, three_query: Any, changes: dict[str, Any], problem: str
) -> None:
    snapshot = build(three).snapshot()
    query = dataclasses.replace(three_query, **changes)
    for action in (
        snapshot.search,
        snapshot.retrieve,
        snapshot.score_all,
        lambda q: snapshot.explanations(q, ["a"])[0],
    ):
        with pytest.raises(InvalidQueryError, match=problem):
            action(query)


def test_one_text_at_a_time(build: Any, three: Any) -> None:
    with pytest.raises(InvalidQueryError, match="of one text, not of 3"):
        build(three).snapshot().search(three[1])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"top_k": 0}, "top_k is 0; use at least 1"),
        ({"candidates": CandidateLimits(-1, 5)}, "candidates.dense is -1"),
        ({"candidates": CandidateLimits(5, -1)}, "candidates.sparse is -1"),
        ({"candidates": CandidateLimits(0, 0)}, "nothing can be found"),
        ({"dense_options": DenseOptions(ef_search=0)}, "ef_search is 0"),
        ({"dense_options": DenseOptions(nprobe=0)}, "nprobe is 0"),
        ({"weights": Weights(NAN, 1, 1)}, "weight of dense is nan"),
        ({"weights": Weights(0, 0, 0)}, "weights of dense and sparse and colbert, all that"),
        ({"weights": Weights(1, INF, 1)}, "weight of sparse is inf"),
        ({"weights": Weights(1, 1, 1e9)}, "weight of colbert is 1000000000.0"),
    ],
)
def test_options_out_of_range_are_refused(
    build: Any, three: Any, three_query: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidQueryError, match=problem):
        build(three).snapshot().search(three_query, **options)


@pytest.mark.parametrize(
    ("side", "weights"),
    [("dense", Weights(0, 1, 1)), ("sparse", Weights(1, 0, 1)), ("colbert", Weights(1, 1, 0))],
)
def test_a_side_without_weight_may_be_absent(
    build: Any, three: Any, three_query: Any, side: str, weights: Weights
) -> None:
    snapshot = build(three).snapshot()
    query = dataclasses.replace(three_query, **{side: None})
    with pytest.raises(InvalidQueryError, match=f"no {side} representation"):
        snapshot.search(query)
    hits = snapshot.search(query, weights=weights).hits
    full = snapshot.search(three_query, weights=weights).hits
    assert [(h.document.id, h.score) for h in hits] == [(h.document.id, h.score) for h in full][: len(hits)]
    assert all(getattr(hit.scores, side) in (0.0, None) for hit in hits)


def test_extreme_but_valid_values_stay_finite(build: Any, three: Any, three_query: Any) -> None:
    query = dataclasses.replace(
        three_query,
        dense=np.array([[1e6, -1e6]], np.float32),
        sparse=sparse([1, 2], [1e6, 1e-30]),
        colbert=TokenVectors(np.full((2, 2), 1e6, np.float32), np.array([0, 2])),
    )
    hits = build(three).snapshot().search(query, weights=Weights(1e6, -1e6, 1e6), top_k=1).hits
    assert np.isfinite([hits[0].score, hits[0].scores.dense, hits[0].scores.sparse]).all()
