"""`tercet documents`, of a data root and of a running server."""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.service.collections.registry import CollectionRegistry

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


def ids(printed: str) -> list[str]:
    return [json.loads(line)["id"] for line in printed.splitlines()]


def more(tmp_path: Path) -> str:
    path = tmp_path / "more.jsonl"
    lines = [{"id": "tea", "text": "Black tea."}, {"id": "a/b c", "text": "x", "metadata": {"year": 1}}]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def check_documents(tercet: Run, tmp_path: Path, *where: str, **variables: str) -> None:
    """Puts, gets, lists and deletes."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return tercet("documents", *arguments, "--collection", "small", *where, **variables)

    done = run("put", more(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "2 documents are in collection 'small'" in done.stdout
    found = json.loads(run("get", "a/b c").stdout)
    assert found == {"id": "a/b c", "title": None, "text": "x", "metadata": {"year": 1}}
    assert json.loads(run("get", "tea").stdout)["text"] == "Black tea."
    assert ids(run("list").stdout) == ["a/b c", "bees", "korea", "rail", "tea"]
    assert ids(run("list", "--after", "bees", "--limit", "2").stdout) == ["korea", "rail"]
    assert ids(run("list", "--filter", '{"lt": {"year": 1900}}').stdout) == ["a/b c", "rail"]
    ordered = ["list", "--order-by", "year", "--descending", "--limit", "2"]
    assert ids(run(*ordered, "--filter", '{"lt": {"year": 1900}}').stdout) == ["rail", "a/b c"]
    assert run("list", "--descending").returncode == 2
    assert run("list", "--order-by", "year", "--after", "tea").returncode == 2
    declared = tercet("collection", "fields", "small", "--field", "Product Name:keyword", *where, **variables)
    assert declared.returncode == 0, declared.stderr
    assert "Product Name" in declared.stdout
    assert (
        "'year' is declared as"
        in tercet("collection", "fields", "small", "--field", "year:keyword", *where, **variables).stderr
    )
    change = ["--metadata", '{"year": 1800}', "--merge"]
    assert "2 documents were changed" in run("update", "--filter", '{"lt": {"year": 1900}}', *change).stdout
    assert "1 document was changed" in run("update", "a/b c", "missing", "--metadata", '{"year": 1}').stdout
    assert json.loads(run("get", "a/b c").stdout)["metadata"] == {"year": 1}
    assert run("update", "tea", "--metadata", "[]").returncode == 2
    assert (run("count").stdout, run("count", "--filter", '{"lt": {"year": 1900}}').stdout) == ("5\n", "2\n")
    assert "1 document was deleted" in run("delete", "a/b c", "missing").stdout
    assert "1 document was deleted" in run("delete", "--filter", '{"lt": {"year": 1900}}').stdout
    assert ids(run("list").stdout) == ["bees", "korea", "tea"]
    several = run("get", "tea", "none", "bees")
    assert (ids(several.stdout), several.returncode) == (["tea", "bees"], 1)
    missing = run("get", "a/b c")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "a/b c" in missing.stderr
    assert run("delete").returncode == 2
    assert run("list", "--filter", "{").returncode == 2
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "z"}')
    assert run("put", str(bad)).returncode == 1
    empty, skipped = tmp_path / "empty.jsonl", tmp_path / "skipped.jsonl"
    empty.touch()
    skipped.write_text('{"id": "z", "text": 5}')
    first = f'; the first: {skipped} line 1: "text" must be a string, got a number'
    for path, flags, count in (
        (empty, [], "0 records skipped"),
        (skipped, ["--on-error", "skip"], f"1 record skipped{first}"),
    ):
        nothing = run("put", str(path), *flags)
        said = (
            f"Error: {path}: no documents ({count}); nothing was written. Give a source with at least "
            "one document.\n"
        )
        assert (nothing.returncode, nothing.stdout, nothing.stderr[-len(said) :]) == (1, "", said)
    gone = run("put", "gone.jsonl")
    assert (gone.returncode, gone.stderr) == (1, "Error: gone.jsonl: no such file or folder\n")
    assert "2 documents are in" in run("put", more(tmp_path), str(empty)).stdout
    assert "1 document was deleted" in run("delete", "a/b c").stdout


def test_documents_of_a_data_root(tercet: Run, built: Path, tmp_path: Path) -> None:
    check_documents(tercet, tmp_path)
    answer = json.loads(tercet("search", "small", "tea", "--json").stdout)
    assert answer["hits"][0]["text"] == "Black tea."
    unknown = tercet("documents", "put", more(tmp_path), "--collection", "unknown")
    assert (unknown.returncode, "does not exist" in unknown.stderr) == (1, True)


def test_what_only_the_ledger_holds_is_listed(tercet: Run, built: Path) -> None:
    with LiveCollection(Collection.open(built / "collections", "small")) as live:
        live.delete(["bees"])
    assert ids(tercet("documents", "list", "--collection", "small").stdout) == ["korea", "rail", "tea"]
    stats = json.loads(tercet("collection", "stats", "small", "--json").stdout)
    assert (stats["documents"], stats["position"], stats["published_position"]) == (4, 1, 0)
    merged = tercet("collection", "merge", "small")
    assert merged.stdout == "Collection 'small' has 1 segments.\n", merged.stderr
    assert json.loads(tercet("collection", "stats", "small", "--json").stdout)["documents"] == 3


def test_a_server_is_asked_and_named(tercet: Run, server: str, built: Path, tmp_path: Path) -> None:
    check_documents(tercet, tmp_path, "--url", server, TERCET_API_KEYS="secret")
    refused = tercet("documents", "list", "--collection", "small", "--url", server)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    # The server writes the collection now, so that nobody else can.
    for command in (
        ["documents", "delete", "tea", "--collection", "small"],
        ["documents", "put", more(tmp_path), "--collection", "small"],
        ["collection", "build", more(tmp_path), "--collection", "small"],
        ["collection", "merge", "small"],
    ):
        busy = tercet(*command)
        assert (busy.returncode, "--url" in busy.stderr, busy.stderr.count("\n")) == (1, True, 1), busy.stderr
    keys = {"TERCET_API_KEYS": "secret"}
    (built / "sources").mkdir(exist_ok=True)
    (built / "sources" / "new.jsonl").write_text('{"id": "n", "text": "new"}')
    done = tercet(
        *("collection", "build", "new.jsonl", "--collection", "small", "--mode", "upsert", "--url", server),
        **keys,
    )
    assert done.returncode == 0, done.stderr
    listed = tercet("documents", "list", "--collection", "small", "--url", server, **keys)
    assert ids(listed.stdout) == ["bees", "korea", "n", "tea"]
    merged = tercet("collection", "merge", "small", "--url", server, **keys)
    assert merged.returncode == 0, merged.stderr
    stats = json.loads(tercet("collection", "stats", "small", "--url", server, "--json", **keys).stdout)
    assert (stats["documents"], stats["ledger"]["entries"]) == (4, 0)
    failed = tercet("collection", "build", "no.jsonl", "--collection", "small", "--url", server, **keys)
    assert (failed.returncode, "'no.jsonl' does not exist; give a path below sources/" in failed.stderr) == (
        1,
        True,
    )
    here = tercet("collection", "build", more(tmp_path), "--collection", "small", "--url", server, **keys)
    assert (here.returncode, "is on this machine: copy it there, or send it" in here.stderr) == (1, True)


def test_no_server_is_one_line(tercet: Run) -> None:
    for url, said in (("http://127.0.0.1:9", "does not answer"), ("nowhere", "--url is 'nowhere'")):
        done = tercet("documents", "list", "--collection", "small", "--url", url)
        assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (1, True, 1)


def test_half_characters_go_to_a_server_as_a_build_stores_them(
    tercet: Run, server: str, built: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half.jsonl"
    half.write_text('{"id": "h", "text": "a\\ud800b", "title": "\\udc00", "metadata": {"k": ["\\ud800"]}}')
    keys = {"TERCET_API_KEYS": "secret"}
    done = tercet("documents", "put", str(half), "--collection", "small", "--url", server, **keys)
    assert done.returncode == 0, done.stderr
    found = tercet("documents", "get", "h", "--collection", "small", "--url", server, **keys)
    local = tercet("collection", "build", str(half), "--collection", "other")
    assert local.returncode == 0, local.stderr
    stored = tercet("documents", "get", "h", "--collection", "other")
    assert json.loads(found.stdout) == json.loads(stored.stdout)
    assert json.loads(found.stdout)["text"] == "a\ufffdb"
    for wrong in (
        ["documents", "put", str(half), "--collection", "\udcff", "--url", server],
        ["documents", "delete", "--filter", '{"eq": {"year": "\\ud800"}}', "--collection", "small"],
        ["documents", "delete", "--filter", "[" * 100_000, "--collection", "small"],
        ["search", "small", "tea", "--filter", "[" * 100_000],
    ):
        refused = tercet(*wrong, **keys)
        assert refused.returncode == 2, refused.stderr
        assert "Traceback" not in refused.stderr


def test_what_a_server_writes_is_read_as_it_was_published(tercet: Run, server: str, tmp_path: Path) -> None:
    """Without --url, with a note that names the server's address; with it, by the server."""
    keys = {"TERCET_API_KEYS": "secret"}
    put = tercet("documents", "put", more(tmp_path), "--collection", "small", "--url", server, **keys)
    assert put.returncode == 0, put.stderr
    for command, wanted in (
        (["documents", "get", "bees", "--collection", "small"], ["bees"]),
        (["documents", "list", "--collection", "small"], ["bees", "korea", "rail", "tea"]),
    ):
        here = tercet(*command)
        assert (here.returncode, ids(here.stdout)) == (0, wanted)
        assert here.stderr == (
            "Note: a server writes collection 'small'; its last writes are in no segment and are left out. "
            f"tercet collection merge small --url {server} brings them there.\n"
        )
    assert tercet("documents", "count", "--collection", "small").stdout == "4\n"
    gone = tercet("documents", "get", "a/b c", "--collection", "small")
    assert (gone.returncode, "Note: a server writes" in gone.stderr) == (1, True)
    busy = tercet("documents", "delete", "tea", "--collection", "small")
    assert f"such as --url {server}" in busy.stderr

    here = tercet("search", "small", "black tea", "--json")
    assert "Note: a server writes collection 'small'; " in here.stderr
    assert {hit["id"]: hit["text"] for hit in json.loads(here.stdout)["hits"]}["tea"] != "Black tea."
    there = tercet("search", "small", "black tea", "--json", "--url", server, **keys)
    assert there.stderr == ""
    assert json.loads(there.stdout)["hits"][0]["text"] == "Black tea."
    assert tercet("collection", "merge", "small", "--url", server, **keys).returncode == 0
    merged = tercet("search", "small", "black tea", "--json")
    assert (merged.stderr, json.loads(merged.stdout)["hits"]) == ("", json.loads(there.stdout)["hits"])


def test_what_cannot_be_published_here_is_told_with_what_can_be_done(
    tercet: Run, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Collection, "has_unpublished", lambda _self: True)
    monkeypatch.setattr(CollectionRegistry, "writing", refused)
    done = tercet("search", "small", "tea", "--json")
    assert done.returncode == 0, done.stderr
    assert "cannot be written here" in done.stderr
    assert "--url" not in done.stderr
    assert (
        "Merge it where the data root can be written (tercet collection merge small), or give" in done.stderr
    )
