"""Run files of TREC: what ir-measures finds in them is what the report says."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval

from tercet.evaluation.beir import read_dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.metrics import MEASURES, measure, parse_measures
from tercet.evaluation.results import Measuring, score_runs, write_by_query
from tercet.evaluation.run import evaluate
from tercet.evaluation.runs import read_run, write_runs
from tercet.models.loader import load_encoder


def test_a_line_for_each_document_in_six_columns(tmp_path: Path) -> None:
    write_runs(tmp_path, {"sum": {"q1": {"b": 1.5, "a": 0.25}, "q2": {"문서": 0.125}}, "dense": {"q1": {}}})
    lines = (tmp_path / "sum.run").read_text(encoding="utf-8").splitlines()
    assert lines == ["q1 Q0 b 1 1.5 sum", "q1 Q0 a 2 0.25 sum", "q2 Q0 문서 1 0.125 sum"]
    assert (tmp_path / "dense.run").read_text() == ""


def test_equal_scores_keep_their_order_in_every_tool(tmp_path: Path) -> None:
    documents = dict.fromkeys(("a", "b", "c"), 0.75) | {"d": 0.75 - 1e-9}
    write_runs(tmp_path, {"sum": {"q": documents}})
    path = tmp_path / "sum.run"
    scores = [float(line.split()[4]) for line in path.read_text().splitlines()]
    assert scores == pytest.approx([0.75] * 4, abs=1e-6)
    assert scores == sorted(set(scores), reverse=True)
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"d": 1}}, {"recip_rank"})
    with path.open() as file:
        assert evaluator.evaluate(pytrec_eval.parse_run(file))["q"]["recip_rank"] == 0.25
    assert list(read_run(path)["q"]) == ["a", "b", "c", "d"]


def test_ties_of_other_systems_are_ordered_as_trec_eval_does(tmp_path: Path) -> None:
    path = tmp_path / "other.run"
    # Ranks say nothing; 0.5 and 0.5000000001 are one float32.
    path.write_text("q Q0 a 1 0.5 x\nq\tQ0\tc 2 0.5000000001 x\nq Q0 b 3 0.5 x\nq Q0 d 4 2e1 x\n")
    assert list(read_run(path)["q"]) == ["d", "c", "b", "a"]
    assert list(read_run(path, depth=2)["q"]) == ["d", "c"]
    qrels = {"q": {"b": 2, "a": 1}}
    with path.open() as file:
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(pytrec_eval.parse_run(file))
    assert measure(qrels, read_run(path))["nDCG@10"] == pytest.approx(theirs["q"]["ndcg_cut_10"], abs=1e-9)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("q1 Q0 b 2 0.5", "line 2: expected the 6 columns .* found 5"),
        ("q1 Q0 b 2 high x", "line 2: the score 'high' is no number"),
        ("q1 Q0 b 2 nan x", "line 2: the score 'nan' is no number"),
        ("q1 Q0 b 2 1e39 x", "line 2: the score '1e39' is no number that a float32 holds"),
        ("q1 Q0 a 2 0.5 x", "line 2: document 'a' occurs a second time for query 'q1'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "bad.run"
    path.write_text(f"q1 Q0 a 1 1.0 x\n{line}\n")
    with pytest.raises(DatasetError, match=problem):
        read_run(path)
    path.write_text("\n")
    with pytest.raises(DatasetError, match="holds no line"):
        read_run(path)


def test_a_run_that_is_written_and_read_again_agrees_with_trec_eval(
    beir_folder: Path, embedded_checkpoint: Path, tmp_path: Path
) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    measuring = Measuring(parse_measures(["nDCG@3,AP@1000,R@2,P@2,Success@1,RR"]))
    dataset = read_dataset(beir_folder)
    [report] = evaluate([dataset], encoder, exhaustive=True, measuring=measuring, runs=tmp_path)
    files = sorted(tmp_path.glob("*.run"))
    scored = score_runs(dataset, files, measuring)
    names = {"nDCG@3": "ndcg_cut_3", "AP@1000": "map_cut_1000", "R@2": "recall_2", "P@2": "P_2"}
    names |= {"Success@1": "success_1", "RR": "recip_rank"}
    qrels = dataset.qrels
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {"ndcg_cut.3", "map_cut.1000", "recall.2", "P.2", "success.1", "recip_rank"}
    )
    assert sorted(scored["results"]) == sorted(report["results"])
    for path in files:
        with path.open() as file:
            theirs = evaluator.evaluate(pytrec_eval.parse_run(file))
        for ours, name in names.items():
            mean = sum(each[name] for each in theirs.values()) / len(qrels)
            assert scored["results"][path.stem][ours] == pytest.approx(mean, abs=1e-6), (path, ours)
            assert report["results"][path.stem][ours] == pytest.approx(mean, abs=1e-6), (path, ours)


def test_runs_are_named_by_their_files_and_may_lack_queries(beir_folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "one" / "sum.run", tmp_path / "two" / "sum.run"
    for path in (first, second):
        path.parent.mkdir()
        path.write_text("q1 Q0 bread 1 1.0 x\nunknown Q0 bread 1 1.0 x\n")
    dataset = read_dataset(beir_folder)
    report = score_runs(dataset, [first], Measuring())
    assert report["results"]["sum"]["RR@10"] == pytest.approx(1 / 3)
    assert (report["queries"], report["missing_queries"]) == (3, {"sum": 2})
    assert list(score_runs(dataset, [first, second], Measuring())["results"]) == [str(first), str(second)]
    with pytest.raises(DatasetError, match="given twice"):
        score_runs(dataset, [first, first], Measuring())
    first.write_text("q9 Q0 bread 1 1.0 x\n")
    with pytest.raises(DatasetError, match=r"has none of the queries that qrels/test\.tsv judges"):
        score_runs(dataset, [first], Measuring())


def test_another_tool_measures_what_the_report_says(
    beir_folder: Path, embedded_checkpoint: Path, tmp_path: Path
) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    runs = tmp_path / "new" / "runs"
    report = next(evaluate([read_dataset(beir_folder)], encoder, exhaustive=False, runs=runs))
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
    dataset, encoded = read_dataset(beir_folder), list[object]()
    with pytest.raises(DatasetError, match="id 'two words' has blanks"):
        next(evaluate([dataset], encoder, exhaustive=True, runs=tmp_path / "runs", progress=encoded.append))
    assert encoded == []
    assert not (tmp_path / "runs").exists()
    assert next(evaluate([dataset], encoder, exhaustive=True))["documents"] == 5


def test_two_runs_are_compared_query_by_query(beir_folder: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.run", tmp_path / "bad.run"
    good.write_text("q1 Q0 bread 1 1.0 x\nq2 Q0 tide 1 1.0 x\nq3 Q0 violin 1 1.0 x\n")
    bad.write_text("q1 Q0 bread 1 1.0 x\nq2 Q0 bread 1 1.0 x\nq2 Q0 tide 2 0.5 x\n")
    measuring = Measuring(parse_measures(["RR"]), by_query=True, compare=("bad", "good"))
    report = score_runs(read_dataset(beir_folder), [good, bad], measuring)
    assert report["by_query"]["bad"] == {"q1": {"RR": 1.0}, "q2": {"RR": 0.5}, "q3": {"RR": 0.0}}
    comparison = report["comparison"]
    assert (comparison["queries"], comparison["exact"], comparison["trials"]) == (3, True, 8)
    # Differences of 0, 0.5 and 1: half of the signs give 1.5 or -1.5.
    assert comparison["measures"]["RR"] == {"first": 0.5, "second": 1.0, "difference": 0.5, "p_value": 0.5}
    write_by_query(tmp_path / "figures.tsv", report["by_query"])
    lines = (tmp_path / "figures.tsv").read_text().splitlines()
    assert lines[:2] == ["ranking\tquery\tmeasure\tvalue", "good\tq1\tRR\t1.0"]
    assert len(lines) == 1 + 6
    with pytest.raises(DatasetError, match=r"'sum' cannot be compared: .* there are good, bad"):
        score_runs(read_dataset(beir_folder), [good, bad], Measuring(compare=("good", "sum")))
