"""Sources as people have them, by the flags of `tercet collection build` and `tercet documents put`."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]

CSV = (
    "pid,name,body,seit\n1,Grüner Tee,Tee wird mit heißem Wasser aufgegossen.,2001\n"
    "2,,Der Zug fährt um zwölf.,1830\n"
)


LIKELIEST = "likeliest cp1252; --encoding says another"


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    path = tmp_path / "faq.csv"
    path.write_bytes(CSV.encode("cp1252"))
    return path


def test_a_table_without_a_flag(tercet: Run, faq: Path) -> None:
    done = tercet("collection", "build", faq.name, "--collection", "faq", "--field", "seit:integer")
    assert done.returncode == 0, done.stderr
    assert f"faq.csv ({LIKELIEST}): text from 'body', title from 'name', ids from 'pid'" in done.stderr
    shown = json.loads(tercet("documents", "get", "1", "--collection", "faq").stdout)
    assert (shown["id"], shown["title"], shown["metadata"]) == ("1", "Grüner Tee", {"seit": 2001})
    assert shown["text"] == "Tee wird mit heißem Wasser aufgegossen."


def test_a_dry_run_shows_what_would_be_read(tercet: Run, faq: Path, tmp_path: Path) -> None:
    done = tercet(
        "collection", "build", faq.name, "--collection", "faq", "--dry-run", "--no-metadata-field", "seit"
    )
    assert done.returncode == 0, done.stderr
    said, *documents = done.stdout.splitlines()
    assert said == f"faq.csv ({LIKELIEST}): text from 'body', title from 'name', ids from 'pid'"
    assert [json.loads(line)["metadata"] for line in documents] == [{}, {}]
    assert not (tmp_path / "data").exists()
    done = tercet("collection", "build", faq.name, "--collection", "faq", "--dry-run", "--encoding", "cp1252")
    assert done.stdout.startswith("faq.csv (cp1252): text from 'body'")


def test_columns_by_flags_and_a_second_load_that_changes_nothing(tercet: Run, tmp_path: Path) -> None:
    posts = [{"post": {"words": "Hot tea."}, "n": 1}, {"post": {"words": "Cold tea."}, "n": 2}]
    (tmp_path / "posts.json").write_text(json.dumps({"posts": [*posts, posts[0]]}))
    flags = ["--text-field", "post.words", "--generate-ids", "--metadata-field", "n"]
    done = tercet("collection", "build", "posts.json", "--collection", "posts", *flags)
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
        (["--records", "data..paragraphs"], 2, "is no path such as data.paragraphs"),
        (["--format", "xlsx"], 2, "is not one of 'jsonl', 'json', 'csv'"),
        (["--dry-run", "--url", "http://127.0.0.1:1"], 2, "goes without --url"),
        (
            ["--text-field", "words"],
            1,
            "no column 'words' (--text-field); the columns are pid, name, body, seit",
        ),
    ],
)
def test_flags_that_do_not_go(tercet: Run, faq: Path, flags: list[str], code: int, said: str) -> None:
    done = tercet("collection", "build", faq.name, "--collection", "faq", *flags)
    assert done.returncode == code
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_file_and_its_records_are_what_is_said(tercet: Run, tmp_path: Path) -> None:
    articles = [
        {"title": "Tea", "paragraphs": [{"context": "Hot tea.", "id": 1}, {"context": "Mint.", "id": 2}]}
    ]
    (tmp_path / "dump_00").write_text(json.dumps({"version": 1, "data": articles}, indent=1))
    flags = ["--format", "json", "--records", "data.paragraphs", "--text-field", "context"]
    unsaid = tercet("collection", "build", "dump_00", "--collection", "x", *flags[2:])
    assert (unsaid.returncode, "or --format must say what the file is" in unsaid.stderr) == (1, True)
    for command in (["collection", "build"], ["documents", "put"]):
        done = tercet(*command, "dump_00", "--collection", "x", *flags)
        assert done.returncode == 0, done.stderr
        assert "text from 'context'" in done.stderr
        assert json.loads(tercet("documents", "get", "2", "--collection", "x").stdout)["text"] == "Mint."


def test_several_sources_and_types_that_are_found(tercet: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,year,lang\n1,tea is hot,2001,en\n2,the train,1830,de\n")
    (tmp_path / "b.jsonl").write_text('{"id": 3, "text": "bees", "year": 1927, "at": "2024-05-17 09:30:00"}')
    flags = ["a.csv", "b.jsonl", "--collection", "x", "--infer-fields", "--field", "lang:keyword"]
    said = "fields as found in the first 3 documents: year:integer, at:datetime"
    dry = tercet("collection", "build", *flags, "--dry-run")
    assert dry.stdout.splitlines()[0] == said
    assert [json.loads(line)["id"] for line in dry.stdout.splitlines() if line[0] == "{"] == ["1", "2", "3"]
    done = tercet("collection", "build", *flags)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    for condition in ({"lt": {"year": 1900}}, {"eq": {"lang": "de"}}, {"lt": {"at": "2024-05-17T09:30:01Z"}}):
        counted = tercet("documents", "count", "--collection", "x", "--filter", json.dumps(condition))
        assert counted.stdout == "1\n", counted.stderr
    again = tercet("collection", "build", "a.csv", "--collection", "x", "--infer-fields")
    assert again.returncode == 0, again.stderr
    assert "collection 'x' exists with its fields, which stay" in again.stderr
    (tmp_path / "c.jsonl").write_text('{"id": "1", "text": "twice"}')
    twice = tercet("collection", "build", "a.csv", "c.jsonl", "--collection", "y")
    assert (
        twice.returncode,
        "c.jsonl line 1: the id '1' occurs already at a.csv line 2" in twice.stderr,
    ) == (
        1,
        True,
    )


def piped(
    environment: dict[str, str], folder: Path, content: bytes, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", *arguments],
        cwd=folder,
        env={**environment, "TMPDIR": str(folder)},
        input=content,
        capture_output=True,
        check=False,
    )


def test_standard_input_is_a_source_of_builds_and_puts(
    tercet: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    lines = b'{"id": 1, "text": "tea"}\n{"id": 2, "text": NaN}\n'
    skipped = piped(
        environment, tmp_path, lines, "collection", "build", "-", "--collection", "x", "--on-error", "skip"
    )
    assert skipped.returncode == 0, skipped.stderr
    assert b'skipped standard input line 2: "text" is nan' in skipped.stderr
    stopped = piped(environment, tmp_path, lines, "documents", "put", "-", "--collection", "x")
    assert (stopped.returncode, stopped.stderr.count(b"Error: standard input line 2: ")) == (1, 1)
    (tmp_path / "more.jsonl").write_text('{"id": 3, "text": "bees"}')
    packed = gzip.compress(b"pid,body\n4,rail\n")
    put = piped(environment, tmp_path, packed, "documents", "put", "more.jsonl", "-", "--collection", "x")
    assert put.returncode == 0, put.stderr
    assert b"standard input: text from 'body', ids from 'pid'" in put.stderr
    listed = tercet("documents", "list", "--collection", "x").stdout
    assert [json.loads(line)["id"] for line in listed.splitlines()] == ["1", "3", "4"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "more.jsonl"]  # nothing was left


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "-"], "- is there twice"),
        (["-", "--url", "http://127.0.0.1:9"], "tercet documents put - --url URL"),
        (["-", "--stop-with-stdin"], "goes without -"),
        (["a.parquet", "b.parquet", "--from", "parquet"], "is one with --from"),
        (["a.parquet", "--infer-fields", "--from", "parquet"], "goes without --from"),
    ],
)
def test_sources_that_do_not_go(
    environment: dict[str, str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = piped(environment, tmp_path, b"", "collection", "build", *arguments, "--collection", "x")
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.decode().replace("│", " ").split())


def test_a_job_with_an_unclear_source_says_why(tercet: Run, tmp_path: Path) -> None:
    """A service reads the error from the lines of progress, from whatever step it comes."""
    (tmp_path / "x.csv").write_text("id,words\n1,tea\n")
    done = tercet("collection", "build", "x.csv", "--collection", "x", "--infer-fields", "--progress", "json")
    assert done.returncode == 1
    assert "none of text, contents" in json.loads(done.stdout.splitlines()[-1])["error"]


@pytest.mark.parametrize(
    ("name", "content", "flags"),
    [
        ("empty.csv", "", []),
        ("header.csv", "id,text\n", []),
        ("bad.jsonl", '{"id": "a"}\n{"id": "b", "text": 5}\n', ["--on-error", "skip"]),
    ],
)
def test_a_dry_run_fails_where_the_build_would(
    tercet: Run, tmp_path: Path, name: str, content: str, flags: list[str]
) -> None:
    (tmp_path / name).write_text(content)
    of_build = tercet("collection", "build", name, "--collection", "none", "--infer-fields", *flags)
    dry = tercet("collection", "build", name, "--collection", "none", "--infer-fields", "--dry-run", *flags)
    assert (of_build.returncode, dry.returncode) == (1, 1)
    said = f"Error: {name}: no documents ("
    assert said in of_build.stderr
    assert of_build.stderr.splitlines()[-1] == dry.stderr.splitlines()[-1]
    assert "fields as found" not in of_build.stderr + of_build.stdout + dry.stderr + dry.stdout


def test_a_dry_run_with_unknown_columns_shows_them_and_what_would_work(tercet: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("nr,absatz,jahr\n7,Hot water for the tea.,2001\n8,The train.,1830\n")
    done = tercet("collection", "build", "notes.csv", "--collection", "notes", "--dry-run")
    assert done.returncode == 1
    *columns, command = done.stdout.splitlines()
    assert [column.split()[0] for column in columns] == ["nr", "absatz", "jahr"]
    assert "'Hot water for the tea.', 'The train.'" in columns[1]
    works = "tercet collection build notes.csv --collection notes --text-field absatz --generate-ids"
    assert command == f"This would work: {works}"
    assert tercet(*works.split()[1:], "--dry-run").returncode == 0
