"""Metrics of a run small enough to work out by hand."""

from __future__ import annotations

import math

import pytest

from tercet.evaluation.errors import MeasureError
from tercet.evaluation.metrics import figures, measure, parse_measures


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


def test_measures_go_by_their_names_in_ir_measures() -> None:
    measures = parse_measures(["nDCG@10, RR@10 R@20", "Success@5,P@5,AP(rel=2)@1000,nDCG@10"])
    assert [str(each) for each in measures] == [
        *("nDCG@10", "RR@10", "R@20", "Success@5", "P@5", "AP(rel=2)@1000")
    ]
    assert [str(each) for each in parse_measures([])] == ["nDCG@10", "R@100", "RR@10"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("ndcg@10", "'ndcg@10' is no measure .* did you mean nDCG@10"),
        ("recal@20", "'recal@20' is no measure"),
        ("nDCG@ten", "'nDCG@ten' is no measure .* use names of ir-measures, such as nDCG@10"),
        ("P", "'P' is no measure"),
        ("P@0", "'P@0' is no measure"),
        ("alpha_nDCG@20", "'alpha_nDCG@20' is no measure"),  # which needs grades of subtopics
    ],
)
def test_a_name_that_is_no_measure_is_refused(name: str, remedy: str) -> None:
    with pytest.raises(MeasureError, match=remedy):
        parse_measures(["nDCG@10", name])


def test_each_query_has_figures_of_its_own() -> None:
    found = figures({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["x", "a"], "other": ["a"]})
    assert found.by_query["q1"] == {"nDCG@10": pytest.approx(1 / math.log2(3)), "R@100": 1.0, "RR@10": 0.5}
    assert found.by_query["q2"] == {"nDCG@10": 0.0, "R@100": 0.0, "RR@10": 0.0}
    assert found.means["RR@10"] == 0.25
