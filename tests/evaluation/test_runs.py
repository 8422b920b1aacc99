"""Run files of TREC: what ir-measures finds in them is what the report says."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest

from tercet.evaluation.beir import read_dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.metrics import MEASURES
from tercet.evaluation.run import evaluate
from tercet.evaluation.runs import write_runs
from tercet.models.loader import load_encoder


def test_a_line_for_each_document_in_six_columns(tmp_path: Path) -> None:
    write_runs(tmp_path, {"sum": {"q1": ["b", "a"], "q2": ["문서"]}, "dense": {"q1": []}})
    lines = (tmp_path / "sum.run").read_text(encoding="utf-8").splitlines()
    assert lines == ["q1 Q0 b 1 -1 sum", "q1 Q0 a 2 -2 sum", "q2 Q0 문서 1 -1 sum"]
    assert (tmp_path / "dense.run").read_text() == ""


def test_another_tool_measures_what_the_report_says(
    beir_folder: Path, embedded_checkpoint: Path, tmp_path: Path
) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    runs = tmp_path / "new" / "runs"
    report = evaluate(beir_folder, encoder, exhaustive=False, runs=runs)
    assert sorted(path.stem for path in runs.iterdir()) == sorted(report["results"])
    qrels = read_dataset(beir_folder).qrels
    for name, means in report["results"].items():
        measured = ir_measures.calc_aggregate(
            MEASURES, qrels, list(ir_measures.read_trec_run(str(runs / f"{name}.run")))
        )
        assert {str(measure): value for measure, value in measured.items()} == pytest.approx(means), name


def test_an_id_with_a_blank_is_refused_before_anything_is_encoded(
    beir_folder: Path, embedded_checkpoint: Path, tmp_path: Path
) -> None:
    with (beir_folder / "corpus.jsonl").open("a") as file:
        file.write(json.dumps({"_id": "two words", "text": "A door."}) + "\n")
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    encoded: list[object] = []
    with pytest.raises(DatasetError, match="id 'two words' has blanks"):
        evaluate(beir_folder, encoder, exhaustive=True, runs=tmp_path / "runs", progress=encoded.append)
    assert encoded == []
    assert not (tmp_path / "runs").exists()
    assert evaluate(beir_folder, encoder, exhaustive=True)["documents"] == 5
