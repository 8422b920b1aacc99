"""`tercet eval`: the contract of its JSON, and its table."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
SIDES = ["dense", "sparse", "colbert", "dense+sparse", "sum", "bm25"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three documents and two queries whose answers share words with them."""
    folder = tmp_path / "tiny-set"
    (folder / "qrels").mkdir(parents=True)
    texts = {
        "tea": "Tea is brewed with hot water.",
        "rail": "The train leaves the station.",
        "x": "A red door.",
    }
    corpus = [{"_id": name, "title": "", "text": text} for name, text in texts.items()]
    queries = [{"_id": "q1", "text": "brewed tea"}, {"_id": "q2", "text": "train station"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ttea\t1\nq2\trail\t1\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("exhaustive", [False, True])
def test_json(tercet: Run, folder: Path, exhaustive: bool) -> None:
    done = tercet("eval", str(folder), "--json", *(["--exhaustive"] if exhaustive else []))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["dataset"], report["documents"], report["queries"]) == ("tiny-set", 3, 2)
    assert (report["checkpoint"], report["exhaustive"]) == ("minilm-m3", exhaustive)
    assert report["lexical"] == "idf"  # as the checkpoint recommends
    assert list(report["results"]) == SIDES
    assert report["results"]["bm25"] == {"nDCG@10": 1.0, "R@100": 1.0, "RR@10": 1.0}


@pytest.mark.slow
def test_table_and_a_bad_judgment(tercet: Run, folder: Path) -> None:
    lines = tercet("eval", str(folder), "--lexical", "plain").stdout.splitlines()
    assert lines[0] == (
        "tiny-set: 3 documents, 2 queries, minilm-m3, lexical plain, "
        "windows of 512, overlap 128, weights 1, 1, 1, through the index"
    )
    assert [line.split()[0] for line in lines[2:]] == SIDES
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("q1\ttea\tmany\n")
    done = tercet("eval", str(folder))
    assert done.returncode == 1
    assert "test.tsv" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_bm25_side(tercet: Run, folder: Path) -> None:
    runs = folder / "runs"
    done = tercet("eval", str(folder), "--json", "--bm25", "--bm25-language", "german", "--runs", str(runs))
    report = json.loads(done.stdout)
    assert report["bm25_language"] == "german"
    assert report["results"]["bm25-words"]["nDCG@10"] == 1.0
    assert "sum+bm25-words" in report["results"]
    assert sorted(path.stem for path in runs.iterdir()) == sorted(report["results"])
    query, _, document, rank, score, name = (runs / "bm25-words.run").read_text().splitlines()[0].split()
    assert (query, document, rank, float(score) > 0, name) == ("q1", "tea", "1", True, "bm25-words")
    done = tercet("eval", str(folder), "--weights", "1,1,1,1")
    assert done.returncode == 2
    assert "--weights gives bm25 1.0; give --bm25 too, or three numbers" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["bm25s", "ir_measures"])
def test_a_missing_extra_says_how_to_get_it(tercet_without: Run, folder: Path, missing: str) -> None:
    done = tercet_without(missing, "eval", str(folder))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: tercet eval needs more packages")
    assert missing in done.stderr
    assert "pip install -c constraints.txt -e '.[cpu,eval]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_rows_measures_and_a_split(tercet: Run, folder: Path) -> None:
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    done = tercet("eval", str(folder))
    assert (done.returncode, "give --split dev" in done.stderr) == (1, True)
    weights = ("--weights", "1,1,0", "--weights", "1,0.3,0", "--weights", "late=0,0,2", "--candidates", "2")
    measures = ("--measures", "Success@1,P@1", "--measures", "AP@20", "--depth", "20", "--split", "dev")
    done = tercet("eval", str(folder), "--json", *weights, *measures)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report["results"]) == [*SIDES[:-1], "dense+0.3sparse", "late", "bm25"]
    assert list(report["results"]["late"]) == ["Success@1", "P@1", "AP@20"]
    assert report["weights"] == {"dense": 1, "sparse": 1, "colbert": 0}
    assert report["rows"]["dense+0.3sparse"] == {"dense": 1, "sparse": 0.3, "colbert": 0}
    assert (report["split"], report["depth"], report["candidates"]) == ("dev", 20, 2)


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--measures", "ndcg@10"], 1, "'ndcg@10' is no measure"),
        (["--weights", "dense=1,1,1"], 2, "dense is a ranking of its own"),
        (["--weights", "a=1,1,1", "--weights", "a=1,0,0"], 2, "a is given twice"),
        (["--weights", "a=much"], 2, "'much' is neither a preset nor three or four numbers"),
        (["--by-query-file", "no/where.tsv"], 2, "no/where.tsv: there is no such folder"),
        (["--run", "none.run"], 1, "none.run: no such file"),
        (["--run", "none.run", "--exhaustive"], 2, "--run gives rankings"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    tercet: Run, folder: Path, flags: list[str], code: int, message: str
) -> None:
    done = tercet("eval", str(folder), *flags)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_run_files_are_scored_without_an_encoder(tercet: Run, folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    run = folder / "other.run"
    run.write_text("q1 Q0 x 1 2.0 other\nq1 Q0 tea 2 1.0 other\n")
    done = tercet("eval", str(folder), "--run", str(run), "--json", TERCET_CHECKPOINT="nowhere")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        **{"dataset": "tiny-set", "split": "test", "queries": 2, "unjudged_queries": 0},
        "missing_queries": {"other": 1},
        "results": {"other": {"nDCG@10": pytest.approx(0.3155, abs=1e-4), "R@100": 0.5, "RR@10": 0.25}},
    }
    lines = tercet("eval", str(folder), "--run", str(run)).stdout.splitlines()
    assert lines[0] == "tiny-set: 2 queries of qrels/test.tsv"
    assert [line.split()[:2] for line in lines[2:3]] == [["other", "0.3155"]]
    assert lines[-1] == "other lacks 1 judged query; each counts 0"


def test_run_files_are_compared(tercet: Run, folder: Path) -> None:
    for name, first in (("one", "tea"), ("two", "x")):
        (folder / name).mkdir()
        (folder / name / "sum.run").write_text(f"q1 Q0 {first} 1 2.0 s\nq2 Q0 rail 1 1.0 s\n")
    files = [str(folder / name / "sum.run") for name in ("one", "two")]
    flags = ("--compare", *files, "--measures", "RR", "--by-query-file", str(folder / "each.tsv"))
    report = json.loads(tercet("eval", str(folder), *flags, "--json").stdout)
    assert report["comparison"]["measures"]["RR"] == {
        **{"first": 1.0, "second": 0.5, "difference": -0.5, "p_value": 1.0}
    }
    assert "by_query" not in report
    assert (folder / "each.tsv").read_text().splitlines()[1] == f"{files[0]}\tq1\tRR\t1.0"
    done = tercet("eval", str(folder), *flags, "--by-query")
    assert files[0] in done.stdout.splitlines()[2]  # whole, however long
    assert "randomization test over all assignments of signs" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["RR", "1.0000", "0.5000", "-0.5000", "1.0000"]


def test_rankings_are_compared(tercet: Run, folder: Path) -> None:
    done = tercet("eval", str(folder), "--compare", "bm25", "sum", "--by-query", "--json")
    report = json.loads(done.stdout)
    assert (report["comparison"]["first"], report["comparison"]["exact"]) == ("bm25", True)
    assert list(report["by_query"]) == SIDES
    assert list(report["by_query"]["sum"]) == ["q1", "q2"]
    done = tercet("eval", str(folder), "--compare", "bm25", "other")
    assert (done.returncode, "'other' cannot be compared" in done.stderr) == (1, True)
