"""`tercet collection backup` and `restore`: made, listed, restored and removed without a server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


def ids(tercet: Run, name: str = "small") -> list[str]:
    return [
        each["id"]
        for each in json.loads(tercet("collection", "backup", name, "--list", "--json").stdout)["backups"]
    ]


def hits(tercet: Run, name: str) -> list[object]:
    found: list[object] = json.loads(tercet("search", name, "hot tea", "--json").stdout)["hits"]
    return found


def test_a_collection_is_backed_up_and_restored(tercet: Run, built: Path, source: Path) -> None:
    former = hits(tercet, "small")
    done = tercet("collection", "backup", "small")
    assert done.returncode == 0, done.stderr
    (id,) = ids(tercet)
    assert id in done.stdout
    assert id in tercet("collection", "backup", "small", "--list").stdout
    source.write_text('{"id": "other", "text": "Something else."}\n')
    assert tercet("collection", "build", str(source), "--collection", "small").returncode == 0
    assert hits(tercet, "small") != former
    restored = tercet("collection", "restore", "small", id)
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout == f"Collection 'small' was restored from backup {id}: 4 documents.\n"
    assert hits(tercet, "small") == former
    assert tercet("collection", "verify", "small").returncode == 0
    beside = tercet("collection", "restore", "small", id, "--as", "beside", "--json")
    assert json.loads(beside.stdout) == {"collection": "beside", "backup": id, "documents": 4}
    assert hits(tercet, "beside") == former
    assert tercet("collection", "verify", "beside").returncode == 0
    again = tercet("collection", "restore", "small", id, "--as", "beside")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "'beside' exists already" in again.stderr
    assert tercet("collection", "backup", "small", "--delete", id).returncode == 0
    assert ids(tercet) == []
    assert "has no backup" in tercet("collection", "restore", "small", id).stderr
    assert tercet("collection", "backup", "none").returncode == 1
    assert tercet("collection", "backup", "small", "--list", "--delete", id).returncode == 2


def test_where_another_process_writes_the_server_is_named(tercet: Run, built: Path) -> None:
    collection = Collection.open(built / "collections", "small")
    assert json.loads(tercet("collection", "backup", "small", "--json").stdout)["documents"] == 4
    (id,) = ids(tercet)
    with LiveCollection(collection) as live:
        live.delete(["tea"])
        for command in (("backup", "small"), ("restore", "small", id)):
            done = tercet("collection", *command)
            assert (done.returncode, done.stderr.count("\n")) == (1, 1)
            assert "where a server writes it, give that with --url" in done.stderr
    assert ids(tercet) == [id]
    made = json.loads(tercet("collection", "backup", "small", "--json").stdout)
    assert (made["documents"], made["position"]) == (3, 1)


def test_a_server_is_asked(tercet: Run, server: str) -> None:
    where = ("--url", server)
    put = httpx.put(
        f"{server}/collections/small/documents",
        json={"documents": [{"id": "new", "text": "Black tea."}]},
        headers={"Authorization": "Bearer secret"},
    )
    assert put.status_code == 200
    keys = {"TERCET_API_KEYS": "secret"}
    made = json.loads(tercet("collection", "backup", "small", "--json", *where, **keys).stdout)
    assert (made["documents"], made["position"]) == (5, 1)
    listed = tercet("collection", "backup", "small", "--list", "--json", *where, **keys)
    assert json.loads(listed.stdout) == {"backups": [made]}
    for options, name in (((), "small"), (("--as", "beside"), "beside")):
        restored = tercet("collection", "restore", "small", made["id"], *options, "--json", *where, **keys)
        assert json.loads(restored.stdout) == {"collection": name, "backup": made["id"], "documents": 5}
    assert tercet("collection", "backup", "small", "--delete", made["id"], *where, **keys).returncode == 0
    assert tercet("collection", "backup", "small", "--list", *where, **keys).stdout == ""
    missing = tercet("collection", "restore", "small", made["id"], *where, **keys)
    assert (missing.returncode, "has no backup" in missing.stderr) == (1, True)


@pytest.mark.parametrize("options", [[], ["--as", "other"]])
def test_a_damaged_backup_is_one_line_and_changes_nothing(
    tercet: Run, built: Path, options: list[str]
) -> None:
    tercet("collection", "backup", "small")
    (id,) = ids(tercet)
    path = max((built / "backups").rglob("segments/*/*"), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])
    done = tercet("collection", "restore", "small", id, *options)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert path.name in done.stderr
    assert sorted(path.name for path in (built / "collections").glob("*/")) == ["small"]
    assert tercet("collection", "verify", "small").returncode == 0
