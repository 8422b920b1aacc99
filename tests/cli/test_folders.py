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
    done = tercet("index", "build", "docs", "--collection", "docs", "--split", "markdown")
    assert done.returncode == 0, done.stderr
    assert "docs: 2 files of text (1 .html, 1 .md)" in done.stderr
    found = tercet("search", "docs", "how is tea made in Japan", COLUMNS="160").stdout
    assert "guide/tea.md#japan  Green tea › Japan" in found
    grouped = json.loads(tercet("search", "docs", "tea", "--group-by", "source", "--json").stdout)
    assert sorted(hit["metadata"]["source"] for hit in grouped["hits"]) == ["guide/tea.md", "train.html"]
    one = ["--filter", '{"eq": {"source": "train.html"}}']
    (hit,) = json.loads(tercet("search", "docs", "tea", *one, "--json").stdout)["hits"]
    assert (hit["id"], hit["title"], hit["metadata"]["anchor"]) == ("train.html#top", "Trains", "top")
    again = tercet("index", "build", "docs", "--collection", "docs", "--split", "paragraphs")
    assert again.returncode == 0, again.stderr
    assert "train.html#1  Trains  train.html#top" in tercet("search", "docs", "train", COLUMNS="160").stdout


@pytest.mark.usefixtures("docs")
def test_a_dry_run_shows_passages_and_their_size(tercet: Run) -> None:
    done = tercet("index", "build", "docs", "--collection", "docs", "--split", "markdown", "--dry-run")
    said, *documents = done.stdout.splitlines()
    assert (
        said == "docs: 2 files of text (1 .html, 1 .md), cut at headings into passages of at most 256 tokens"
    )
    ids = [json.loads(line)["id"] for line in documents]
    assert ids == ["train.html#top", "guide/tea.md#green-tea", "guide/tea.md#japan"]


def test_put_leaves_passages_that_are_no_longer_there(tercet: Run, docs: Path) -> None:
    tercet("index", "build", "docs", "--collection", "docs", "--split", "markdown")
    (docs / "guide" / "tea.md").write_text("# Green tea\n\n## China\n\nThere it is roasted.\n")
    done = tercet("documents", "put", "docs", "--collection", "docs", "--split", "markdown")
    assert done.returncode == 0, done.stderr

    def ids() -> list[str]:
        listed = tercet("documents", "list", "--collection", "docs").stdout
        return [json.loads(line)["id"] for line in listed.splitlines()]

    assert ids() == [
        "guide/tea.md#china", "guide/tea.md#green-tea", "guide/tea.md#japan", "train.html#top"
    ]  # fmt: skip
    one = ["--filter", '{"eq": {"source": "guide/tea.md"}}']
    assert tercet("documents", "delete", "--collection", "docs", *one).returncode == 0
    assert tercet("documents", "put", "docs", "--collection", "docs", "--split", "markdown").returncode == 0
    assert ids() == ["guide/tea.md#china", "train.html#top"]


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize(
    ("command", "flags", "said"),
    [
        ("index build", ["--split-size", "100"], "--split-size"),
        ("index build", ["--split", "tokens", "--split-size", "3"], "the size is 3; give 16 to"),
        ("index build", ["--split", "words"], "--split"),
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
        done = tercet_without(package, "index", "build", "docs", "--collection", "docs", *flags)
        assert done.returncode == 1
        assert 'pip install "tercet[files]"' in done.stderr.splitlines()[-1]
        assert not (tmp_path / "data" / "collections" / "docs").exists()
    follow = ["--watch", "--url", "http://127.0.0.1:9"]
    done = tercet_without("watchfiles", "documents", "put", str(docs), "--collection", "docs", *follow)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert 'pip install "tercet[files]"' in done.stderr
