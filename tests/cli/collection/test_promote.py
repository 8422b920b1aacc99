"""`tercet collection promote`, as a user runs it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.cluster.ledgers.store_ledger import ledgers_below
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_promote(tercet: Run, built: Path, tmp_path: Path) -> None:
    url, other = (tmp_path / "store").as_uri(), str(tmp_path / "other")
    collection = Collection.named(built / "collections", "small")
    with LiveCollection(collection, remote=ledgers_below(url, built)(collection.layout)) as live:
        live.delete(["tea"])
    done = tercet("collection", "promote", "--all", "--ledger-url", url, "--data", other, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["promoted"] == [{"collection": "small", "documents": 3, "position": 1}]
    again = tercet("collection", "promote", "small", "--ledger-url", url, "--data", other)
    assert "This machine writes collection 'small': 3 documents, at position 1" in again.stdout
    for flags, said in (
        ((), "give the name of a collection, or --all"),
        (("none", "--ledger-url", url), "has no ledger"),
    ):
        wrong = tercet("collection", "promote", *flags, "--data", other)
        assert wrong.returncode != 0
        assert said in wrong.stderr
