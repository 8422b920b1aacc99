"""The README's example."""

from __future__ import annotations

from pathlib import Path

from tercet_readme import run_examples

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_runs(url: str, key: str | None, collection: str) -> None:
    found = run_examples(README, url, key, {"notes": collection})
    assert found["best"].id == "tea"
    assert set(found["best"].meta["tercet"]["scores"]) == {"dense", "sparse", "colbert"}
    assert found["best"].meta["year"] == 2001
