"""Sources as people have them, by the flags of `tercet index build` and `tercet documents put`."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

CSV = (
    "pid,name,body,seit\n1,Grüner Tee,Tee wird mit heißem Wasser aufgegossen.,2001\n"
    "2,,Der Zug fährt um zwölf.,1830\n"
)


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    path = tmp_path / "faq.csv"
    path.write_bytes(CSV.encode("cp1252"))
    return path


def test_a_table_without_a_flag(tercet: Run, faq: Path) -> None:
    done = tercet("index", "build", faq.name, "--collection", "faq", "--field", "seit:integer")
    assert done.returncode == 0, done.stderr
    assert "faq.csv (cp1252): text from 'body', title from 'name', ids from 'pid'" in done.stderr
    shown = json.loads(tercet("documents", "get", "1", "--collection", "faq").stdout)
    assert (shown["id"], shown["title"], shown["metadata"]) == ("1", "Grüner Tee", {"seit": 2001})
    assert shown["text"] == "Tee wird mit heißem Wasser aufgegossen."


def test_a_dry_run_shows_what_would_be_read(tercet: Run, faq: Path, tmp_path: Path) -> None:
    done = tercet(
        "index", "build", faq.name, "--collection", "faq", "--dry-run", "--no-metadata-field", "seit"
    )
    assert done.returncode == 0, done.stderr
    said, *documents = done.stdout.splitlines()
    assert said == "faq.csv (cp1252): text from 'body', title from 'name', ids from 'pid'"
    assert [json.loads(line)["metadata"] for line in documents] == [{}, {}]
    assert not (tmp_path / "data").exists()


def test_columns_by_flags_and_a_second_load_that_changes_nothing(tercet: Run, tmp_path: Path) -> None:
    posts = [{"post": {"words": "Hot tea."}, "n": 1}, {"post": {"words": "Cold tea."}, "n": 2}]
    (tmp_path / "posts.json").write_text(json.dumps({"posts": [*posts, posts[0]]}))
    flags = ["--text-field", "post.words", "--generate-ids", "--metadata-field", "n"]
    done = tercet("index", "build", "posts.json", "--collection", "posts", *flags)
    assert done.returncode == 0, done.stderr
    assert "text from 'post.words', ids from the content" in done.stderr
    listed = tercet("documents", "list", "--collection", "posts").stdout
    assert sorted(json.loads(line)["metadata"]["n"] for line in listed.splitlines()) == [1, 2]
    done = tercet("documents", "put", "posts.json", "--collection", "posts", *flags)
    assert done.returncode == 0, done.stderr
    assert tercet("documents", "list", "--collection", "posts").stdout == listed


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--generate-ids", "--id-field", "pid"], 2, "goes without --id-field"),
        (["--metadata-field", "a", "--no-metadata-field", "b"], 2, "goes without --metadata-field"),
        (["--delimiter", ";;"], 2, "is not one character"),
        (["--dry-run", "--url", "http://127.0.0.1:1"], 2, "goes without --url"),
        (
            ["--text-field", "words"],
            1,
            "no column 'words' (--text-field); the columns are pid, name, body, seit",
        ),
    ],
)
def test_flags_that_do_not_go(tercet: Run, faq: Path, flags: list[str], code: int, said: str) -> None:
    done = tercet("index", "build", faq.name, "--collection", "faq", *flags)
    assert done.returncode == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
