"""Suites measured from folder to figures with the shipped checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.cli.measuring.flags import parse_rows
from tercet.evaluation.metrics import parse_measures
from tercet.evaluation.results import Measuring, mean_results
from tercet.evaluation.run import evaluate
from tercet.evaluation.suites.presets import SUITES
from tercet.index.candidates import Weights
from tercet.models.loader import load_encoder


def test_languages_of_one_corpus_share_its_index(mkqa: Path, embedded_checkpoint: Path) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    measuring = Measuring(parse_measures(["Success@3"]), depth=3)
    datasets = SUITES["mkqa"].read(mkqa, None)
    danish, german = evaluate(datasets, encoder, exhaustive=True, measuring=measuring)
    assert (danish["dataset"], german["dataset"]) == ("da", "de")
    assert danish["index_seconds"] == german["index_seconds"]
    assert (danish["documents"], danish["queries"], german["queries"]) == (3, 1, 2)
    # Every passage is among the first three, so both answers are found by what scores all.
    assert danish["results"]["dense"] == german["results"]["dense"] == {"Success@3": 1.0}


def test_the_mean_counts_each_set_alike() -> None:
    reports = [{"results": {"sum": {"P@1": 1.0}}}, {"results": {"sum": {"P@1": 0.25}}}]
    assert mean_results(reports) == {"sum": {"P@1": 0.625}}  # type: ignore[arg-type]  # of results alone


@pytest.mark.parametrize("name", SUITES)
def test_presets_are_flags_that_are_understood(name: str) -> None:
    [suite] = [suite for key, suite in SUITES.items() if key == name]
    assert suite.depth == 1000
    assert [str(measure) for measure in parse_measures(suite.measures)] == list(suite.measures)
    total, rows = parse_rows(suite.weights or ["sum"])
    assert (total == Weights()) is (not suite.weights)
    assert set(rows) <= {"dense+sparse"}
