"""`tercet collection tune`: what it prints and stores."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def graph(tercet: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A collection whose few documents have a graph."""
    monkeypatch.setattr("tercet.index.dense.kinds.SMALLEST_INDEX", 1)
    words = ["tea", "water", "train", "station", "bees", "flowers", "noon", "rail", "honey", "green"]
    texts = [f"{first} and {second}" for first in words for second in words if first != second]
    source = tmp_path / "texts.jsonl"
    source.write_text(
        "\n".join(json.dumps({"id": str(place), "text": text}) for place, text in enumerate(texts))
    )
    done = tercet("collection", "build", str(source), "--collection", "graph", "--dense-kind", "hnsw")
    assert done.returncode == 0, done.stderr
    return "graph"


@pytest.mark.slow
def test_what_is_stored_is_shown_and_removed(tercet: Run, graph: str, tmp_path: Path) -> None:
    asked = ["collection", "tune", graph, "--k", "5", "--recall", "0.9"]
    done = tercet(*asked, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["ef_search", "recall@5", "lowest", "ms"]
    assert "Not stored: ef_search 42 for hnsw; recall " in " ".join(done.stdout.split())
    found = json.loads(tercet(*asked, "--json").stdout)
    assert found["stored"]
    inspected = json.loads(tercet("collection", "show", graph, "--json").stdout)
    assert inspected["dense_effort"] == found["effort"]
    assert (found["effort"]["ef_search"], found["effort"]["source"]) == (42, "documents")
    assert "ef_search 42 for hnsw; recall@5" in " ".join(tercet("collection", "show", graph).stdout.split())
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"text": "hot tea"}\n{"text": "a train"}\n')
    of_file = json.loads(tercet(*asked, "--file", str(queries), "--json").stdout)["effort"]
    assert (of_file["queries"], of_file["source"]) == (2, "file")
    assert tercet("collection", "verify", graph).returncode == 0
    assert "was removed" in tercet("collection", "tune", graph, "--reset").stdout
    assert json.loads(tercet("collection", "show", graph, "--json").stdout)["dense_effort"] is None
    assert "is none" in tercet("collection", "tune", graph, "--reset").stdout


@pytest.mark.usefixtures("built")
def test_where_nothing_is_to_tune_that_is_a_note(tercet: Run) -> None:
    done = tercet("collection", "tune", "small")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing to tune: the dense side of 'small' is scanned" in done.stdout
    assert json.loads(tercet("collection", "tune", "small", "--json").stdout)["effort"] is None
    assert tercet("collection", "tune", "small", "--reset", "--dry-run").returncode == 2
