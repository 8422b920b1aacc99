"""Metrics of a run small enough to work out by hand."""

from __future__ import annotations

import math

import pytest

from tercet.evaluation.metrics import measure


def test_measures_of_a_run_worked_out_by_hand() -> None:
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}
    # q1: a at rank 2, b at rank 3; q2: nothing found.
    means = measure(qrels, {"q1": ["x", "a", "b"], "q2": ["x"]})
    gain = 2 / math.log2(3) + 1 / math.log2(4)
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    assert means["nDCG@10"] == pytest.approx(gain / ideal / 2)
    assert means["R@100"] == pytest.approx(0.5)
    assert means["RR@10"] == pytest.approx(0.25)


def test_a_query_without_a_ranking_counts_nothing() -> None:
    means = measure({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a"]})
    assert means == {"nDCG@10": 0.5, "R@100": 0.5, "RR@10": 0.5}


def test_the_order_given_is_kept() -> None:
    assert measure({"q": {"b": 1}}, {"q": ["a", "b", "c"]})["RR@10"] == pytest.approx(1 / 2)


def test_rank_eleven_is_too_late_for_the_first_ten() -> None:
    ranking = [f"x{number}" for number in range(10)] + ["a"]
    assert measure({"q": {"a": 1}}, {"q": ranking}) == {"nDCG@10": 0.0, "R@100": 1.0, "RR@10": 0.0}
