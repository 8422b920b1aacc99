"""`tercet eval --suite`: its table and JSON, its preset, and what overrides it."""

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
SIDES = ["dense", "sparse", "colbert", "dense+sparse", "sum", "bm25"]


@pytest.fixture
def miracl(tmp_path: Path) -> Path:
    """Two languages of one query each, whose answer shares words with it."""
    passages = {"1#0": "Tea is brewed with hot water.", "1#1": "The train leaves the station."}
    for language, query, answer in (("en", "brewed tea", "1#0"), ("sw", "train station", "1#1")):
        name = f"miracl-v1.0-{language}"
        for folder, lines in (("topics", f"q\t{query}\n"), ("qrels", f"q\tQ0\t{answer}\t1\n")):
            path = tmp_path / name / folder / f"{folder}.{name}-dev.tsv"
            path.parent.mkdir(parents=True)
            path.write_text(lines)
        corpus = tmp_path / f"miracl-corpus-v1.0-{language}"
        corpus.mkdir()
        lines = "\n".join(
            json.dumps({"docid": id, "title": "", "text": text}) for id, text in passages.items()
        )
        (corpus / "docs-0.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return tmp_path


def test_each_language_has_figures_and_all_have_a_mean(tercet: Run, miracl: Path) -> None:
    runs = miracl / "runs"
    done = tercet("eval", "--suite", "miracl", str(miracl), "--json", "--runs", str(runs))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["suite"], [each["dataset"] for each in report["sets"]]) == ("miracl", ["en", "sw"])
    for each in report["sets"]:
        assert (each["split"], each["documents"], each["queries"], each["depth"]) == ("dev", 2, 1, 1000)
        assert each["weights"] == {"dense": 1, "sparse": 0.3, "colbert": 1}
        assert each["rows"] == {"dense+sparse": {"dense": 1, "sparse": 0.3, "colbert": 0}}
    assert list(report["mean"]) == SIDES
    assert report["mean"]["bm25"] == {"nDCG@10": 1.0, "R@100": 1.0}
    assert (runs / "sw" / "bm25.run").read_text().split()[:4] == ["q", "Q0", "1#1", "1"]


def test_the_table_has_a_group_for_each_language(tercet: Run, miracl: Path) -> None:
    flags = ("--measures", "RR@10", "--weights", "1,1,1", "--by-query-file", str(miracl / "each.tsv"))
    lines = tercet("eval", "--suite", "miracl", str(miracl), *flags).stdout.splitlines()
    assert lines[0].startswith("miracl: 2 sets, minilm-m3, ")
    assert "weights 1, 1, 1" in lines[0]
    assert lines[1].split() == ["set", "documents", "queries", "ranking", "RR@10"]
    rows = [line.split() for line in lines[2:]]
    assert rows[0][:4] == ["en", "2", "1", "dense"]
    assert [row[0] for row in rows[1:6]] == SIDES[1:]
    assert (rows[6][0], rows[12][0], rows[-1]) == ("sw", "mean", ["bm25", "1.0000"])
    assert (miracl / "each.tsv").read_text().splitlines()[1].split("\t")[:3] == ["en/dense", "q", "RR@10"]


def test_a_run_file_is_scored_for_one_language(tercet: Run, miracl: Path) -> None:
    run = miracl / "other.run"
    run.write_text("q Q0 1#0 1 2.0 other\nq Q0 1#1 2 1.0 other\n")
    flags = ("eval", "--suite", "miracl", str(miracl), "--run", str(run))
    done = tercet(*flags)
    assert (done.returncode, "scores one set" in done.stderr) == (2, True)
    done = tercet(*flags, "--only", "sw")
    assert done.stdout.splitlines()[0] == "sw: 1 query of qrels.miracl-v1.0-sw-dev.tsv"
    assert done.stdout.splitlines()[-1].split() == ["other", "0.6309", "1.0000"]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--suite", "miracl", "--only", "xx"], 2, "'xx' is no set here; there are en, sw"),
        (["--only", "en"], 2, "chooses sets of a --suite"),
        (["--suite", "mldr"], 1, "looked for corpus.jsonl.gz and test.jsonl.gz"),
        (["--suite", "cranfield"], 2, "'cranfield' is not one of"),
    ],
)
def test_what_is_not_there_is_refused(
    tercet: Run, miracl: Path, flags: list[str], code: int, message: str
) -> None:
    done = tercet("eval", str(miracl), *flags)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.replace("│", " ").split())
