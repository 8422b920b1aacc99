"""The README's example."""

from __future__ import annotations

from pathlib import Path

from tercet_client import Client
from tercet_readme import run_examples

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_runs(url: str, key: str | None, client: Client, collection: str) -> None:
    found = run_examples(README, url, key, {"notes": collection})
    assert [node.metadata["year"] for node in found["nodes"]] == [2001]
    assert found["best"].node.ref_doc_id == "tea"
    assert [one["metadata"]["ref_doc_id"] for one in client.documents(collection)] == ["tea"]
