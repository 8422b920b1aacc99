"""`tercet collection push`, `pull` and `gc` on a folder, as a user runs them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_push_pull_and_gc(tercet: Run, built: Path, tmp_path: Path) -> None:
    url = (tmp_path / "store").as_uri()
    done = tercet("collection", "push", "small", url)
    assert done.returncode == 0, done.stderr
    assert "is published as snapshot 000001" in done.stdout
    assert "4 documents" in done.stdout
    again = tercet("collection", "push", "small", url)
    assert "nothing was published" in again.stdout
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "more", "text": "Steam drives the engine."}\n')
    put = tercet("documents", "put", str(more), "--collection", "small")
    assert put.returncode == 0, put.stderr
    pushed = json.loads(tercet("collection", "push", "small", url, "--json").stdout)
    assert (pushed["snapshot"], pushed["new"], pushed["documents"]) == ("000002", True, 5)
    assert pushed["position"] > 0  # what was put was flushed
    assert 0 < pushed["sent_bytes"] < pushed["total_bytes"]
    other = tmp_path / "other"
    pulled = tercet("collection", "pull", "small", url, "--as", "mine", "--data", str(other))
    assert pulled.returncode == 0, pulled.stderr
    assert "Collection 'mine' is snapshot 000002" in pulled.stdout
    found = json.loads(tercet("search", "mine", "hot tea", "--data", str(other), "--json").stdout)
    assert found["hits"][0]["id"] == "tea"
    older = tercet("collection", "pull", "small", url, "--snapshot", "1", "--data", str(other), "--json")
    assert json.loads(older.stdout)["documents"] == 4
    shown = tercet("collection", "gc", url, "--keep", "1", "--grace-hours", "0", "--dry-run")
    assert "1 manifest and" in shown.stdout
    assert "would be removed" in shown.stdout
    gone = json.loads(tercet("collection", "gc", url, "--keep", "1", "--grace-hours", "0", "--json").stdout)
    assert gone["manifests"] == 1
    assert tercet("collection", "pull", "small", url, "--data", str(tmp_path / "third")).returncode == 0


def test_a_server_flushes_what_is_pushed(
    tercet: Run, built: Path, server: str, source: Path, tmp_path: Path
) -> None:
    url, key = (tmp_path / "store").as_uri(), {"TERCET_API_KEYS": "secret"}
    put = tercet("documents", "put", str(source), "--collection", "small", "--url", server, **key)
    assert put.returncode == 0, put.stderr
    as_published = tercet("collection", "push", "small", url, "--json")
    assert "Warning: collection 'small' is being written" in as_published.stderr
    assert json.loads(as_published.stdout)["position"] == 0
    flushed = json.loads(tercet("collection", "push", "small", url, "--url", server, "--json", **key).stdout)
    assert flushed["position"] > 0
    busy = tercet("collection", "pull", "small", url)
    assert busy.returncode == 1
    assert "pull under another name (--as)" in busy.stderr


def test_what_cannot_be_is_one_line(tercet: Run, built: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (("push", "small", "/mnt/x"), "names no object store"),
        (("push", "none", (tmp_path / "x").as_uri()), "collection 'none' does not exist"),
        (("pull", "small", (tmp_path / "x").as_uri()), "nothing is published"),
        (("gc", "s3://"), "names no object store"),
        (("gc", (tmp_path / "x").as_uri()), "nothing is published"),
    ):
        done = tercet("collection", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert message in done.stderr
    assert not (tmp_path / "x").exists()
    endless = tercet("collection", "gc", (tmp_path / "x").as_uri(), "--grace-hours", "inf")
    assert endless.returncode == 2
    assert "'--grace-hours'" in endless.stderr
    served = tercet("serve", "--follow", "nowhere")
    assert served.returncode == 2
    assert "setting follow (TERCET_FOLLOW): 'nowhere" in served.stderr
