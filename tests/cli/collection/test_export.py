"""`tercet collection export` and `query`, and builds from what was exported, as a user runs them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


def hits(tercet: Run, name: str) -> object:
    return json.loads(tercet("search", name, "hot tea", "--json").stdout)["hits"]


def test_to_parquet_and_back(tercet: Run, built: Path, tmp_path: Path) -> None:
    done = tercet(
        "collection", "export", "small", "--to", "parquet", "--output", "out.parquet", "--query", "hot tea"
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "4 documents of collection 'small' are in out.parquet." in done.stderr
    assert "The query for 'hot tea' is in small-query.py." in done.stderr
    printed = subprocess.run(
        [sys.executable, "small-query.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines()[0].split()[1:] == ["tea", "Green", "tea"]
    done = tercet("collection", "build", "out.parquet", "--from", "parquet", "--collection", "back")
    assert done.returncode == 0, done.stderr
    assert "back, snapshot 000001" in done.stdout
    assert "tokens" not in done.stdout + done.stderr  # none were encoded
    assert hits(tercet, "back") == hits(tercet, "small")
    done = tercet("collection", "export", "small", "--to", "parquet", "--output", "out.parquet", "--no-query")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Error: out.parquet exists: give --overwrite" in done.stderr


def test_to_qdrant_and_back_by_an_alias(tercet: Run, built: Path, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client", reason="install tercet[qdrant]")
    assert tercet("collection", "alias", "put", "shelf", "small").returncode == 0
    done = tercet(
        "collection",
        "export",
        "shelf",
        "--to",
        "qdrant",
        "--path",
        "qdrant",
        "--query",
        "hot tea",
        "--query-file",
        "-",
    )
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", done.stdout]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    best = json.loads(tercet("search", "small", "hot tea", "--json").stdout)["hits"][0]
    assert float(printed.stdout.split()[0]) == pytest.approx(best["score"], abs=3e-6)
    again = tercet("collection", "query", "small", "hot tea", "--to", "qdrant", "--path", "qdrant")
    assert again.stdout == done.stdout
    from_qdrant = ["--from", "qdrant", "--source-collection", "small", "--collection", "back"]
    done = tercet("collection", "build", "qdrant", *from_qdrant)
    assert done.returncode == 0, done.stderr
    assert hits(tercet, "back") == hits(tercet, "small")


def test_files_for_other_systems(tercet: Run, built: Path, tmp_path: Path) -> None:
    done = tercet("collection", "export", "small", "--to", "elasticsearch", "--output", "es")
    assert done.returncode == 0, done.stderr
    query = (tmp_path / "small-query.sh").read_text()
    assert query.splitlines()[0] == "# Bees dance to tell where flowers are.", "the first document's words"
    assert len((tmp_path / "es" / "bulk-00001.ndjson").read_text().splitlines()) == 8
    done = tercet(
        "collection", "export", "small", "--to", "vespa", "--output", "vespa", "--no-colbert", "--no-query"
    )
    assert done.returncode == 0, done.stderr
    assert "colbert" not in (tmp_path / "vespa" / "feed.jsonl").read_text()


def test_what_only_the_ledger_holds_is_exported_too(
    tercet: Run, built: Path, server: str, tmp_path: Path
) -> None:
    (tmp_path / "new.jsonl").write_text('{"id": "new", "text": "Rails are made of steel."}')
    put = ["documents", "put", "new.jsonl", "--collection", "small", "--url", server]
    assert tercet(*put, TERCET_API_KEYS="secret").returncode == 0
    export = ["collection", "export", "small", "--to", "parquet", "--no-query", "--output"]
    done = tercet(*export, "beside.parquet")
    assert done.returncode == 0, done.stderr
    assert "4 documents" in done.stderr
    assert (
        "a server writes collection 'small'; its last writes are in no segment and are left out"
        in done.stderr
    )
    merge = ["collection", "merge", "small", "--url", server]
    assert tercet(*merge, TERCET_API_KEYS="secret").returncode == 0
    done = tercet(*export, "after.parquet")
    assert "5 documents of collection 'small' are in after.parquet." in done.stderr
    assert "Note" not in done.stderr


def test_wrong_usage(tercet: Run, built: Path) -> None:
    export = ["collection", "export", "small", "--to"]
    for arguments, part in (
        (["parquet"], "give --output"),
        (["qdrant", "--url", "http://x", "--path", "y"], "give --url or --path"),
        (["qdrant", "--output", "x"], "goes not with --to qdrant"),
        (["qdrant", "--url", "/srv/qdrant"], "'/srv/qdrant' is not a URL"),
        (["vespa", "--url", "127.0.0.1"], "'127.0.0.1' is not a URL"),
        (["milvus", "--path", "x"], "ends in .db"),
        (["parquet", "--output", "x", "--overwrite", "--resume"], "goes without --overwrite"),
        (["parquet", "--output", "x", "--query", "q", "--no-query"], "goes without --query"),
        (["mongo"], "'mongo' is not one of"),
    ):
        done = tercet(*export, *arguments)
        assert done.returncode == 2
        assert part in " ".join(done.stderr.replace("│", " ").split())
    done = tercet("collection", "build", "x", "--collection", "y", "--source-collection", "z")
    assert done.returncode == 2
    assert "goes with --from qdrant" in done.stderr


def test_failures_are_one_line(tercet: Run, built: Path, tmp_path: Path) -> None:
    export = ["collection", "export", "small", "--to"]
    for arguments, part in (
        (["elasticsearch", "--url", "http://127.0.0.1:1"], "Elasticsearch does not answer"),
        (["parquet", "--output", "no/such/x.parquet"], "no such folder to write x.parquet to"),
    ):
        done = tercet(*export, *arguments, "--no-query")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: ")
        assert part in done.stderr
        assert done.stderr.count("\n") == 1
    done = tercet("collection", "export", "none", "--to", "parquet", "--output", "x")
    assert "collection 'none' does not exist" in done.stderr
    done = tercet(*export, "parquet", "--output", "x.parquet", "--checkpoint", "multi-m3")
    assert (done.returncode, (tmp_path / "x.parquet").exists()) == (1, False)
    assert done.stderr.count("fingerprint ") == 2


@pytest.mark.parametrize(("missing", "to"), [("qdrant_client", "qdrant"), ("pymilvus", "milvus")])
def test_a_missing_extra_says_how_to_get_it(tercet_without: Run, built: Path, missing: str, to: str) -> None:
    done = tercet_without(missing, "collection", "export", "small", "--to", to, "--path", "x.db")
    assert done.returncode == 1
    assert f"pip install 'tercet[{to}]'" in done.stderr
    assert "Traceback" not in done.stderr
