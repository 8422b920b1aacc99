"""The card names every source with its licence, and what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tercet.training.runs.log import RunLog
from tercet.training.runs.model_card import SourceCount, write_card
from tercet.training.settings.reading import settings_from

VALUES: dict[str, Any] = {
    "name": "carded",
    "stage": "finetune",
    "base": {"name": "Some BERT", "licence": "Apache-2.0", "checkpoint": "minilm-m3"},
    "data": {
        "held_out": ["cranfield", "npl"],
        "sources": [
            {"path": "a.jsonl", "title": "Source A", "licence": "CC BY 4.0", "development_pairs": 5},
            {"path": "b.jsonl", "title": "Source B", "licence": "MIT", "train": False},
        ],
    },
    "optimization": {"steps": 10, "learning_rate": 1e-5},
}
SIDES = {"dense": 0.1, "sparse": 0.2, "colbert": 0.3}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    log = RunLog(tmp_path, 0)
    log.write({"step": 0, "development": {"Source A": {**SIDES, "sum": 0.4}}})
    for step in (1, 2):
        log.write({"step": step, "losses": {"loss": 1.0}, "tokens": 1_000, "seconds": 1_800.0})
        log.write({"step": step, "development": {"Source A": {**SIDES, "sum": 0.4 + step / 10}}})
    return tmp_path


def card(run: Path, kept: int | None, terms: Mapping[str, float] = MappingProxyType({})) -> str:
    settings = settings_from(VALUES)
    write_card(run, settings, [SourceCount(12_345, 5), SourceCount(0, 0)], run, "one GPU", kept, terms)
    return (run / "README.md").read_text(encoding="utf-8")


def test_sources_licences_and_figures(run: Path) -> None:
    text = card(run, 2)
    assert text.startswith("# carded\n\nTrained from Some BERT (licence Apache-2.0) by `tercet train`")
    assert "| Source A | CC BY 4.0 | 12,345 pairs | 5 |" in text
    assert "| Source B | MIT | nothing: chooses the weights only | 0 |" in text
    assert "was left out: cranfield, npl." in text
    assert "2 steps, 2,000 tokens, 1.0 hours of training on one GPU." in text
    assert "those after step 2" in text
    assert "| Source A | 0 | 0.1000 | 0.2000 | 0.3000 | 0.4000 |" in text
    assert "| Source A | 2 | 0.1000 | 0.2000 | 0.3000 | 0.6000 |" in text
    assert "| Source A | 1 |" not in text


def test_without_a_development_set_the_last_weights(run: Path) -> None:
    text = card(run, None)
    assert "The last weights are kept." in text
    assert "| step |" not in text


def test_a_run_that_improved_nothing_says_so(run: Path) -> None:
    text = card(run, 0)
    assert "No step improved on the held-out pairs (nDCG@10), so the weights are those before" in text
    assert "| Source A | 0 | 0.1000 | 0.2000 | 0.3000 | 0.4000 |" in text


def test_the_card_says_which_sides_the_loss_leaves_out(run: Path) -> None:
    text = card(run, 2, {"sparse": 1.0, "sum": 1.0, "distill_sparse": 0.5})
    assert "Factors of the loss: `sparse` 1, `sum` 1, `distill_sparse` 0.5. Without a loss" in text
    assert "or distillation of their own: dense, colbert.\n" in text
    whole = card(run, 2, dict.fromkeys(("dense", "sparse", "distill_colbert"), 1.0))
    assert "`distill_colbert` 1.\n" in whole
    assert "Factors" not in card(run, 2)


def test_the_settings_in_the_card_make_the_run_again(run: Path) -> None:
    shown = card(run, 2).split("```json\n")[1].split("```")[0]
    assert settings_from(json.loads(shown)) == settings_from(VALUES)
    assert "null" not in shown
