"""`tercet collection alias`: second names that every command takes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.slow
def test_an_alias_is_put_used_and_deleted(tercet: Run, built: Path, source: Path) -> None:
    done = tercet("collection", "alias", "put", "live", "small")
    assert (done.returncode, done.stdout) == (0, "Alias 'live' means collection 'small'.\n")
    assert tercet("collection", "alias", "list").stdout == "live  small\n"
    listed = json.loads(tercet("collection", "alias", "list", "--json").stdout)
    assert listed == {"aliases": [{"alias": "live", "collection": "small", "collections": ["small"]}]}
    assert json.loads(tercet("collection", "show", "live", "--json").stdout)["name"] == "small"
    assert tercet("collection", "verify", "live").returncode == 0
    answer = json.loads(tercet("search", "live", "hot tea", "--json").stdout)
    assert (answer["collection"], len(answer["hits"])) == ("live", 4)
    rebuilt = tercet("collection", "build", str(source), "--collection", "live")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "small, snapshot 000002" in rebuilt.stdout
    assert tercet("collection", "alias", "delete", "live").stdout == "Alias 'live' is removed.\n"
    assert tercet("search", "live", "hot tea").returncode == 1
    again = tercet("collection", "alias", "put", "small", "small")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "'small' is a collection" in again.stderr


@pytest.mark.slow
def test_an_alias_of_several_is_searched_and_read_as_one(tercet: Run, built: Path, source: Path) -> None:
    done = tercet("collection", "build", str(source), "--collection", "copy")
    assert done.returncode == 0, done.stderr
    done = tercet("collection", "alias", "put", "both", "small", "copy")
    assert (done.returncode, done.stdout) == (0, "Alias 'both' means collections 'small' and 'copy'.\n")
    assert tercet("collection", "alias", "list").stdout == "both  small, copy\n"
    answer = json.loads(tercet("search", "both", "hot tea", "--top-k", "20", "--json").stdout)
    assert [hit["collection"] for hit in answer["hits"]] == ["copy", "small"] * 4
    assert "small" in tercet("search", "both", "hot tea").stdout
    assert tercet("documents", "count", "--collection", "both").stdout == "8\n"
    lines = tercet("documents", "list", "--collection", "both").stdout.splitlines()
    assert [json.loads(line)["collection"] for line in lines] == ["copy", "small"] * 4
    for command in (["collection", "show", "both"], ["documents", "delete", "--collection", "both", "x"]):
        refused = tercet(*command)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "'both' means collections 'small' and 'copy'" in refused.stderr
