"""`tercet tune`: what it prints and stores, and that searches use it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]

QUERIES = {
    "tea": ["how is tea brewed", "hot water", "a green drink", "brewing with water"],
    "rail": ["train station", "when does the train leave", "at noon"],
    "bees": ["where flowers are", "the dance of bees", "bees tell others", "insects and flowers"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eleven queries about three of the documents, without a corpus."""
    folder = tmp_path / "judged"
    (folder / "qrels").mkdir(parents=True)
    queries, judgments = [], ["query-id\tcorpus-id\tscore"]
    for document, texts in QUERIES.items():
        for number, text in enumerate(texts):
            queries.append(json.dumps({"_id": f"{document}{number}", "text": text}))
            judgments.append(f"{document}{number}\t{document}\t1")
    (folder / "queries.jsonl").write_text("\n".join(queries))
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments))
    return folder


@pytest.mark.usefixtures("built")
def test_what_is_stored_is_shown_used_and_removed(tercet: Run, folder: Path) -> None:
    done = tercet("tune", "small", str(folder), "--folds", "3", "--force")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small, snapshot 000001: 11 judged queries, 3 folds, ")
    assert lines[1].split() == [
        "queries",
        "dense",
        "sparse",
        "colbert",
        "candidates",
        "usual",
        "tuned",
    ]
    assert [line.split()[:2] for line in lines[2:5]] == [["fold", str(n)] for n in (1, 2, 3)]
    assert max(map(len, lines)) <= 80
    assert "Stored as the defaults of 'small'" in done.stdout
    found = json.loads(tercet("collection", "show", "small", "--json").stdout)["defaults"]
    assert found["tuning"]["queries"] == 11
    assert f"candidates {found['candidates']['dense']}" in tercet("collection", "show", "small").stdout
    answer = json.loads(tercet("search", "small", "tea", "--json").stdout)
    assert (answer["weights"], answer["candidates"]) == (found["weights"], found["candidates"])
    plain = json.loads(tercet("search", "small", "tea", "--json", "--weights", "sum").stdout)
    assert plain["weights"] == {"dense": 1, "sparse": 1, "colbert": 1}
    assert tercet("collection", "verify", "small").returncode == 0
    assert "no stored defaults any more" in tercet("tune", "small", "--reset").stdout
    assert json.loads(tercet("tune", "small", "--reset", "--json").stdout)["removed"] is False
    assert json.loads(tercet("collection", "show", "small", "--json").stdout)["defaults"] is None
    assert "none stored" in tercet("collection", "show", "small").stdout


@pytest.mark.usefixtures("built")
def test_a_dry_run_reports_and_stores_nothing(tercet: Run, folder: Path) -> None:
    done = tercet("tune", "small", str(folder), "--dry-run", "--json", "--seed", "2")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["collection"], report["queries"], report["seed"]) == ("small", 11, 2)
    assert len(report["folds"]) == 5
    assert set(report["held_out"]) == {"plain", "tuned", "gain", "gain_standard_error"}
    assert report["stored"] is False
    assert json.loads(tercet("collection", "show", "small", "--json").stdout)["defaults"] is None


@pytest.mark.usefixtures("built")
def test_too_few_queries_fail_in_one_line(tercet: Run, folder: Path) -> None:
    done = tercet("tune", "small", str(folder), "--folds", "12")
    assert done.returncode == 1
    assert "11 judged queries for 12 folds" in done.stderr
    assert done.stderr.count("\n") == 1
    done = tercet("tune", "none", str(folder), "--folds", "12")
    assert done.returncode == 1
    assert "collection 'none' does not exist" in done.stderr  # before its folder is read


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "small"),
        ("tune", "small", "judged", "--reset"),
        ("tune", "small", "judged", "--dry-run", "--force"),
        ("tune", "small", "--reset", "--dry-run"),
        ("tune", "small", "judged", "--folds", "1"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(tercet: Run, arguments: tuple[str, ...]) -> None:
    done = tercet(*arguments)
    assert done.returncode == 2
    assert done.stderr
