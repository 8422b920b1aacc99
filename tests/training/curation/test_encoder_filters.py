"""Filters of training pairs by an encoder: the sum of their scores, and the way back to the passage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tercet.index.candidates import Weights
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.service.search.scoring import score_texts
from tercet.training.curation import encoder_filters
from tercet.training.curation.encoder_filters import RoundTrip, SumFloor, ranks_of
from tercet.training.curation.filtering import PairFilters, filter_pairs

PAIRS = [
    ("why do bees dance?", "Bees dance to tell where flowers are."),
    ("how is tea brewed?", "Tea is brewed with hot water."),
    ("when does the train leave?", "The train leaves the station at noon."),
    ("who wrote the constitution?", "Kimchi is fermented cabbage with salt."),
]


@pytest.fixture(scope="module")
def encoder(embedded_checkpoint: Path) -> Encoder:
    return load_encoder(str(embedded_checkpoint), device="cpu", threads=1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    lines = [{"query": query, "pos": [passage], "neg": [PAIRS[0][1]]} for query, passage in PAIRS]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def report_of(source: Path, filters: PairFilters) -> list[dict[str, object]]:
    folder = source.parent
    filter_pairs([source], folder / "kept.jsonl", filters, folder / "report.jsonl")
    return [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("at_once", [1, 100_000])
def test_pairs_below_the_floor_have_the_score_of_the_sum(
    encoder: Encoder, source: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(encoder_filters, "CHARACTERS_AT_ONCE", at_once)
    report = report_of(source, PairFilters(floor=SumFloor(0.5, Weights(), score_texts), encoder=encoder))
    query, passage = PAIRS[3]
    scores = score_texts(encode(encoder, [query], "query"), encode(encoder, [passage]))
    [record] = report
    assert (record["line"], record["reason"]) == (f"{source}:4", "low_score")
    assert record["score"] == pytest.approx(float(scores.sum()), abs=1e-3)


def test_weights_choose_the_sides(encoder: Encoder, source: Path) -> None:
    floor = SumFloor(0.01, Weights(0, 1, 0), score_texts)
    report = report_of(source, PairFilters(floor=floor, encoder=encoder))
    assert [record["line"] for record in report] == [f"{source}:4"]  # which shares no word


def test_a_passage_that_its_query_does_not_find(encoder: Encoder, source: Path) -> None:
    report = report_of(source, PairFilters(round_trip=RoundTrip(1, Weights()), encoder=encoder))
    assert [record["line"] for record in report] == [f"{source}:4"]
    assert report[0]["beyond_rank"] == 1
    assert report_of(source, PairFilters(round_trip=RoundTrip(4, Weights()), encoder=encoder)) == []


def test_documents_beside_are_searched_too(encoder: Encoder, source: Path) -> None:
    def beside() -> list[str]:
        return ["Bees dance: why do bees dance?", "how is tea brewed? Tea is brewed."]

    report = report_of(source, PairFilters(round_trip=RoundTrip(1, Weights(), beside), encoder=encoder))
    assert [record["line"] for record in report] == [f"{source}:{line}" for line in (1, 2, 4)]


def test_other_positives_of_a_query_take_no_rank() -> None:
    assert ranks_of(["a", "x", "b", "y", "c"], {"a", "b", "c", "d"}) == {"a": 1, "b": 2, "c": 3}


def test_what_is_left_out_already_is_not_encoded(encoder: Encoder, source: Path) -> None:
    filters = PairFilters(
        floor=SumFloor(np.inf, Weights(), score_texts),
        round_trip=RoundTrip(1, Weights()),
        encoder=encoder,
    )
    assert {record["reason"] for record in report_of(source, filters)} == {"low_score"}
