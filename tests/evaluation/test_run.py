"""A tiny data set from folder to figures with the shipped checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.evaluation import run
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.errors import DatasetError, MeasureError
from tercet.evaluation.metrics import parse_measures
from tercet.evaluation.results import Measuring, Rankings
from tercet.evaluation.run import EvaluationReport, WordPieces, evaluate, rank_queries
from tercet.index.candidates import Weights
from tercet.index.errors import InvalidQueryError
from tercet.index.snapshot import Snapshot
from tercet.models.encoder import Encoder
from tercet.models.loader import load_encoder

RANKINGS = ["dense", "sparse", "colbert", "dense+sparse", "sum", "bm25"]


@pytest.fixture(scope="module")
def encoder(embedded_checkpoint: Path) -> Encoder:
    return load_encoder(str(embedded_checkpoint), threads=1)


def report_of(folder: Path, encoder: Encoder, split: str = "test", **options: Any) -> EvaluationReport:
    [report] = evaluate([read_dataset(folder, split)], encoder, **options)
    return report


def facts(report: EvaluationReport) -> tuple[str, int, int, int, str]:
    return (
        report["dataset"],
        report["documents"],
        report["queries"],
        report["unjudged_queries"],
        report["checkpoint"],
    )


@pytest.mark.parametrize("exhaustive", [True, False])
def test_easy_questions_are_answered(beir_folder: Path, encoder: Encoder, exhaustive: bool) -> None:
    report = report_of(beir_folder, encoder, exhaustive=exhaustive)
    assert facts(report) == ("things", 4, 3, 1, "minilm-m3")
    assert report["exhaustive"] is exhaustive
    assert list(report["results"]) == RANKINGS
    assert report["results"]["sum"]["RR@10"] == 1.0
    assert report["results"]["dense"]["R@100"] == 1.0
    for measures in report["results"].values():
        assert list(measures) == ["nDCG@10", "R@100", "RR@10"]
        assert all(0 <= value <= 1 for value in measures.values())


def test_a_side_sees_its_own_candidates_only(beir_folder: Path, encoder: Encoder) -> None:
    report = report_of(beir_folder, encoder, exhaustive=False, candidates=1)
    # One candidate: q2 has two relevant documents, so half of them; the union may find both.
    assert report["results"]["dense"]["R@100"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert report["results"]["sparse"]["R@100"] <= (1 + 0.5 + 1) / 3 + 1e-9


def test_weights_rank_the_sum(beir_folder: Path, encoder: Encoder) -> None:
    report = report_of(beir_folder, encoder, exhaustive=True, weights=Weights(1.0, 0.0, 0.0))
    assert report["weights"] == {"dense": 1, "sparse": 0, "colbert": 0}
    assert report["results"]["sum"] == report["results"]["dense"]


@pytest.mark.parametrize("exhaustive", [True, False])
def test_rows_of_ones_own_stand_beside_the_others(
    beir_folder: Path, encoder: Encoder, exhaustive: bool
) -> None:
    rows = {"dense+sparse": Weights(1.0, 0.3, 0.0), "late": Weights(0.0, 0.0, 2.0)}
    report = report_of(beir_folder, encoder, exhaustive=exhaustive, rows=rows)
    assert list(report["results"]) == [*RANKINGS[:-1], "late", "bm25"]
    assert report["rows"]["dense+sparse"] == {"dense": 1, "sparse": 0.3, "colbert": 0}
    assert report["results"]["late"] == report["results"]["colbert"]


def test_measures_decide_how_deep_rankings_are(beir_folder: Path, encoder: Encoder, tmp_path: Path) -> None:
    measuring = Measuring(parse_measures(["P@1,AP@1000", "Success@5"]))
    report = report_of(beir_folder, encoder, exhaustive=False, measuring=measuring)
    assert (report["depth"], report["candidates"], report["split"]) == (1000, 1000, "test")
    assert list(report["results"]["sum"]) == ["P@1", "AP@1000", "Success@5"]
    assert report["results"]["sum"]["P@1"] == 1.0
    shallow = Measuring(parse_measures(["P@1"]), depth=2)
    report = report_of(beir_folder, encoder, exhaustive=True, measuring=shallow, runs=tmp_path / "runs")
    assert report["candidates"] is None
    assert (tmp_path / "runs" / "dense.run").read_text().count("q1 ") == 2
    with pytest.raises(MeasureError, match=r"AP@1000 looks at 1000 ranks, and the depth is 2; keep 1000"):
        report_of(beir_folder, encoder, exhaustive=True, measuring=Measuring(measuring.measures, depth=2))


def test_another_split_is_measured(beir_folder: Path, encoder: Encoder) -> None:
    (beir_folder / "qrels" / "test.tsv").rename(beir_folder / "qrels" / "dev.tsv")
    with pytest.raises(DatasetError, match=r"test\.tsv: no such file.* is there for dev; give --split dev"):
        report_of(beir_folder, encoder, exhaustive=True)
    report = report_of(beir_folder, encoder, exhaustive=True, split="dev")
    assert (report["split"], report["queries"]) == ("dev", 3)


def test_queries_are_asked_of_a_collection_with_the_recommended_idf(
    beir_folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Snapshot] = []

    def seen(*arguments: Any) -> Rankings:
        searched.extend(found for found in arguments if isinstance(found, Snapshot))
        return rank_queries(*arguments)

    monkeypatch.setattr(run, "rank_queries", seen)
    for lexical, expected in ((None, "idf"), ("plain", "plain"), ("idf", "idf")):
        report = report_of(beir_folder, encoder, exhaustive=True, lexical=lexical)
        assert report["lexical"] == expected
        assert (searched.pop().idf is None) is (expected == "plain")


@pytest.mark.parametrize("exhaustive", [True, False])
def test_the_bm25_side_has_rankings_of_its_own(beir_folder: Path, encoder: Encoder, exhaustive: bool) -> None:
    report = report_of(beir_folder, encoder, exhaustive=exhaustive, bm25_language="english")
    assert report["bm25_language"] == "english"
    assert report["weights"] == {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0}
    assert list(report["results"]) == [*RANKINGS[:-1], "bm25-words", "sum+bm25-words", "bm25"]
    assert report["results"]["bm25-words"]["RR@10"] == 1.0
    alone = report_of(
        beir_folder,
        encoder,
        exhaustive=exhaustive,
        bm25_language="english",
        weights=Weights(0.0, 0.0, 0.0, 1.0),
    )["results"]
    assert alone["sum"] == alone["bm25-words"] == alone["sum+bm25-words"]
    built: list[object] = []
    with pytest.raises(InvalidQueryError, match="so BM25 is no side"):
        report_of(
            beir_folder, encoder, exhaustive=exhaustive, weights=Weights(bm25=1.0), progress=built.append
        )
    assert built == []


def test_bm25_reads_whole_texts(beir_folder: Path, encoder: Encoder) -> None:
    lines = (beir_folder / "corpus.jsonl").read_text().splitlines()
    long = {"_id": "long", "title": "", "text": "sea " * 600 + "zeppelin"}
    (beir_folder / "corpus.jsonl").write_text("\n".join([*lines, json.dumps(long)]) + "\n")
    baseline = WordPieces(read_dataset(beir_folder).corpus, encoder)
    assert list(baseline.rankings({"q9": "zeppelin"}, 100)["q9"]) == ["long"]


def test_work_goes_below_the_folder_given_and_is_cleared(
    beir_folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    report_of(beir_folder, encoder, exhaustive=True, work_dir=work)
    assert list(work.iterdir()) == []


def test_ranks_that_no_measure_looks_at_change_no_figure(
    beir_folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    measuring = Measuring(parse_measures(["nDCG@1,Success@2"]), depth=4)
    report = report_of(beir_folder, encoder, exhaustive=False, measuring=measuring)
    whole = report_of(beir_folder, encoder, exhaustive=False, measuring=measuring, runs=tmp_path / "runs")
    assert report["results"] == whole["results"]
    assert (report["depth"], report["candidates"]) == (4, 200)
    assert (tmp_path / "runs" / "dense.run").read_text().count("q1 ") == 4
