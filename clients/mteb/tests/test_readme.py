"""The README's example."""

from __future__ import annotations

from pathlib import Path

from tercet_readme import run_examples

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_runs(url: str, key: str | None) -> None:
    found = run_examples(README, url, key, {})
    assert found["hybrid"].model_name == f"{found['dense'].model_name}-hybrid"
    assert 0 < found["hybrid"].task_results[0].get_score() <= 1
