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
    assert (runs / "bm25-words.run").read_text().startswith("q1 Q0 tea 1 -1 bm25-words\n")
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
