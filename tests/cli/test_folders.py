"""A folder of documentation, by commands: built by section, searched, put."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "tea.md").write_text(
        "# Green tea\n\nTea is brewed with hot water.\n\n## Japan\n\nThere it is steamed.\n"
    )
    (folder / "train.html").write_text("<title>Trains</title><h1 id=top>Trains</h1><p>They leave at noon.")
    return folder


def test_sections_are_found_and_linked(tercet: Run, docs: Path) -> None:
    done = tercet("collection", "build", "docs", "--collection", "docs", "--split", "markdown")
    assert done.returncode == 0, done.stderr
    assert "docs: 2 files of text (1 .html, 1 .md)" in done.stderr
    found = tercet("search", "docs", "how is tea made in Japan", COLUMNS="160").stdout
    assert "guide/tea.md#japan  Green tea › Japan" in found
    grouped = json.loads(tercet("search", "docs", "tea", "--group-by", "source", "--json").stdout)
    assert sorted(hit["metadata"]["source"] for hit in grouped["hits"]) == ["guide/tea.md", "train.html"]
    one = ["--filter", '{"eq": {"source": "train.html"}}']
    (hit,) = json.loads(tercet("search", "docs", "tea", *one, "--json").stdout)["hits"]
    assert (hit["id"], hit["title"], hit["metadata"]["anchor"]) == ("train.html#top", "Trains", "top")
    again = tercet("collection", "build", "docs", "--collection", "docs", "--split", "paragraphs")
    assert again.returncode == 0, again.stderr
    assert "train.html#1  Trains  train.html#top" in tercet("search", "docs", "train", COLUMNS="160").stdout


@pytest.mark.usefixtures("docs")
def test_a_dry_run_shows_passages_and_their_size(tercet: Run) -> None:
    done = tercet("collection", "build", "docs", "--collection", "docs", "--split", "markdown", "--dry-run")
    said, *documents = done.stdout.splitlines()
    assert (
        said == "docs: 2 files of text (1 .html, 1 .md), cut at headings into passages of at most 256 tokens"
    )
    ids = [json.loads(line)["id"] for line in documents]
    assert ids == ["train.html#top", "guide/tea.md#green-tea", "guide/tea.md#japan"]


@pytest.mark.parametrize("over_http", [False, True])
def test_put_replaces_all_passages_of_a_document(
    tercet: Run, docs: Path, request: pytest.FixtureRequest, tmp_path: Path, over_http: bool
) -> None:
    where = ["--collection", "docs"]
    tercet("collection", "build", "docs", *where, "--split", "markdown")
    others = tmp_path / "others.jsonl"
    others.write_text(
        '{"id": "guide/tea.md#own", "text": "x", "metadata": {"source": "guide/tea.md"}}\n'
        '{"id": "a copy of tea", "text": "x", "metadata": {"source": "guide/tea.md", "start": 0, "end": 1}}'
    )
    assert tercet("documents", "put", "others.jsonl", *where).returncode == 0
    if over_http:
        where += ["--url", request.getfixturevalue("server")]
    (docs / "guide" / "tea.md").write_text("# Green tea\n\n## China\n\nThere it is roasted.\n")
    (docs / "train.html").unlink()
    done = tercet("documents", "put", "docs", *where, "--split", "markdown", TERCET_API_KEYS="secret")
    assert done.returncode == 0, done.stderr
    listed = tercet("documents", "list", *where, TERCET_API_KEYS="secret").stdout
    assert [json.loads(line)["id"] for line in listed.splitlines()] == [
        "a copy of tea", "guide/tea.md#china", "guide/tea.md#own", "train.html#top"
    ]  # fmt: skip


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize(
    ("command", "flags", "said"),
    [
        ("collection build", ["--split-size", "100"], "--split-size"),
        ("collection build", ["--split", "tokens", "--split-size", "3"], "the size is 3; give 16 to"),
        ("collection build", ["--split", "words"], "--split"),
        ("documents put", ["--watch"], "goes with --url"),
        ("documents put", ["--mark", "a"], "goes with --watch"),
        ("documents put", ["--watch", "--url", "http://127.0.0.1:9", "--generate-ids"], "go by their paths"),
        (
            "documents put",
            ["--sync", "--url", "http://127.0.0.1:9", "--format", "text"],
            "goes without --watch",
        ),
    ],
)
def test_flags_that_do_not_go_together(tercet: Run, command: str, flags: list[str], said: str) -> None:
    done = tercet(*command.split(), "docs", "--collection", "docs", *flags)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_without_the_extra_one_line_says_how_to_get_it(
    tercet_without: Run, docs: Path, tmp_path: Path
) -> None:
    for package, flags in (("selectolax", []), ("semantic_text_splitter", ["--split", "tokens"])):
        done = tercet_without(package, "collection", "build", "docs", "--collection", "docs", *flags)
        assert done.returncode == 1
        assert 'pip install "tercet[files]"' in done.stderr.splitlines()[-1]
        assert not (tmp_path / "data" / "collections" / "docs").exists()
    follow = ["--watch", "--url", "http://127.0.0.1:9"]
    done = tercet_without("watchfiles", "documents", "put", str(docs), "--collection", "docs", *follow)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert 'pip install "tercet[files]"' in done.stderr
