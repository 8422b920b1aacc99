"""`tercet collection build --shards` and `tercet collection reshard`, as a user runs them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.slow
def test_shards_are_built_divided_and_searched(tercet: Run, source: Path, tmp_path: Path) -> None:
    url = (tmp_path / "store").as_uri()
    build = ("collection", "build", str(source), "--collection", "small", "--output", url)
    done = tercet(*build, "--shards", "2", "--shard-urls", "http://one,http://two", "--progress", "none")
    assert done.returncode == 0, done.stderr
    assert f"version 1 of the map at {url}" in done.stdout
    assert "4 in 2 shards" in done.stdout
    first = json.loads((tmp_path / "store" / "map" / "000001.json").read_text())
    assert [shard["url"] for shard in first["shards"]] == ["http://one", "http://two"]
    prepared = tercet("collection", "reshard", url, "--shards", "1", "--prepare")
    assert "the map is as before" in prepared.stdout, prepared.stderr
    moved = json.loads(tercet("collection", "reshard", url, "--shards", "1", "--json").stdout)
    assert (moved["version"], moved["divided_segments"]) == (2, 0)
    (shard,) = moved["shards"]
    assert shard["documents"] == 4
    pulled = tercet("collection", "pull", "small", f"{url}/{shard['snapshots']}", "--data", "other")
    assert pulled.returncode == 0, pulled.stderr
    found = json.loads(tercet("search", "small", "hot tea", "--data", "other", "--json").stdout)
    assert found["hits"][0]["id"] == "tea"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--shards", "2"], "--shards: goes with --output"),
        (["--workers", "2", "--output", "file:///x"], "--workers: goes with --ray"),
        (["--output", "file:///x", "--mode", "upsert"], "--mode: goes without --output"),
        (
            ["--output", "file:///x", "--shards", "2", "--shard-urls", "http://one"],
            "names servers of 1 shard, and there",
        ),
        (["--ray", "--url", "http://127.0.0.1:1"], "--url: goes without --ray"),
        (["--ray", "--ray-address", "head:1"], "--ray-storage: is needed with a cluster"),
        (["--output", "nowhere"], "names no object store"),
    ],
)
def test_flags_that_do_not_go_together(tercet: Run, source: Path, flags: list[str], said: str) -> None:
    done = tercet("collection", "build", str(source), "--collection", "small", *flags)
    assert done.returncode in (1, 2)
    shown = " ".join(done.stderr.replace("│", " ").replace("'", "").split())
    assert said in shown, shown


@pytest.mark.slow
def test_without_ray_the_command_that_installs_it_is_named(tercet_without: Run, source: Path) -> None:
    done = tercet_without("ray", "collection", "build", str(source), "--collection", "small", "--ray")
    assert done.returncode == 1
    assert "pip install 'tercet[ray]'" in done.stderr


def test_what_is_not_in_shards_is_not_divided(tercet: Run, tmp_path: Path) -> None:
    done = tercet("collection", "reshard", tmp_path.as_uri(), "--shards", "2")
    assert done.returncode == 1
    assert "has no map of shards" in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--shards: is needed"),
        (["--shards", "2", "--live"], "--live: goes with --shard-urls, without --prepare"),
        (["--shards", "1", "--live", "--shard-urls", "http://one:1"], "has no map of shards"),
        (["--abort"], "has no map of shards"),
        (["--map-of", "notes"], "--shard-urls: is needed: the servers of its shards"),
        (["--map-of", "notes", "--shards", "2"], "--map-of: goes with --shard-urls alone"),
    ],
)
def test_a_move_between_servers_needs_a_map_and_servers(
    tercet: Run, tmp_path: Path, flags: list[str], said: str
) -> None:
    done = tercet("collection", "reshard", tmp_path.as_uri(), *flags)
    assert done.returncode in (1, 2)
    shown = " ".join(done.stderr.replace("│", " ").replace("'", "").split())
    assert said in shown, shown
