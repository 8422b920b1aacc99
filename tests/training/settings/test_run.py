"""The limits of settings, and rules about several of them: what is refused, and by which name."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tercet.training.errors import ConfigError
from tercet.training.settings.reading import settings_from
from tercet.training.settings.run import FinetuneRun, RetroMaeRun, RunSettings

SOURCE = {"path": "p.jsonl", "title": "P", "licence": "CC0 1.0"}
VALUES: dict[str, Any] = {
    "name": "n",
    "stage": "finetune",
    "base": {"name": "b", "licence": "MIT", "checkpoint": "minilm-m3"},
    "data": {"sources": [SOURCE]},
    "optimization": {"steps": 10, "learning_rate": 1e-5},
}


def settings(path: str = "", value: object = None) -> RunSettings:
    """The settings above, but for the value at a dotted path."""
    values = deepcopy(VALUES)
    inner = values
    *parents, last = path.split(".")
    for key in parents:
        inner = inner.setdefault(key, {})
    if path:
        inner[last] = value
    return settings_from(values)


def test_the_defaults_are_those_of_the_paper() -> None:
    found = settings()
    assert isinstance(found, FinetuneRun)
    assert (found.losses.temperature, found.losses.form, found.losses.distill) == (0.02, "first", True)
    assert found.batches.negatives == 7
    assert found.mining is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", "", 'name: it is "", but must be letters, digits'),
        ("name", "../elsewhere", 'name: it is "../elsewhere"'),
        ("seed", -1, "seed: it is -1, but must be at least 0"),
        ("seed", 2**70, "seed: it is 1180591620717411303424, but must be below 4294967296"),
        ("evaluate_steps", 0, "evaluate_steps: it is 0, but must be at least 1"),
        ("save_steps", 0, "save_steps: it is 0"),
        ("base.package", "p", "base.checkpoint and package: it is 2, but must be 1 of the two"),
        ("base.folder", "model", 'base.folder: it is "model", but must be left out without a package'),
        (
            "base",
            {"name": "b", "licence": "MIT", "package": "p", "revision": "v1"},
            'base.revision: it is "v1", but must be left out with a package',
        ),
        ("base.checkpoint", "", "base.checkpoint and package: it is 0"),
        ("data.sources", [], "data.sources with train = true: it is 0"),
        ("data.sources", [{**SOURCE, "train": False}], "data.sources with train = true: it is 0"),
        ("data.sources", [{**SOURCE, "most": 0}], r"data.sources\[0\].most: it is 0"),
        ("data.sources", [{**SOURCE, "lines": [3, 2]}], r"data.sources\[0\].lines: it is \[3, 2\]"),
        ("data.sources", [{**SOURCE, "lines": [0, 2]}], r"data.sources\[0\].lines"),
        ("data.sources", [{**SOURCE, "lines": [1]}], r"data.sources\[0\].lines"),
        ("data.sources", [{**SOURCE, "join_up_to": 0}], r"data.sources\[0\].join_up_to: it is 0"),
        (
            "data.sources",
            [{**SOURCE, "development_pairs": -1}],
            r"data.sources\[0\].development_pairs: it is -1",
        ),
        ("data.sources", [{**SOURCE, "development_pairs": 1}] * 2, r'data.titles of .* it is \["P"\]'),
        (
            "data.sources",
            [SOURCE, {**SOURCE, "format": "texts"}],
            r'data.sources\[1\].format: expected one of "pairs", .* or "repeats", found "texts"',
        ),
        (
            "adapter",
            {"kind": "lora", "lora": {"rank": 0}},
            "adapter.lora: rank is 0; it must be a whole number of at least 1",
        ),
        ("data.query_tokens", 3, "data.query_tokens: it is 3, but must be at least 4"),
        ("batches.groups", [], "batches.groups: it is 0"),
        ("batches.groups", [{"tokens": 64, "batch": 1}], r"batches.groups\[0\].batch: it is 1"),
        (
            "batches.groups",
            [{"tokens": 300, "batch": 2}, {"tokens": 64, "batch": 4}],
            r"batches.groups: it is \[300, 64\]",
        ),
        # A longer pair would never come into a batch.
        (
            "batches.groups",
            [{"tokens": 64, "batch": 4}],
            r"batches.groups\[-1\].tokens: it is 64, but must be at least data.passage_tokens, 256",
        ),
        ("batches.negatives", -1, "batches.negatives: it is -1"),
        ("batches.neighbours", 0, "batches.neighbours: it is 0"),
        ("batches.sub_batch_tokens", 0, "batches.sub_batch_tokens: it is 0"),
        ("losses.temperature", 0, "losses.temperature: it is 0, but must be above 0"),
        ("losses.dense", -1, "losses.dense: it is -1, but must be at least 0"),
        ("losses.form", "second", 'losses.form: expected one of "first" or "revised"'),
        ("mining", {"first": 5, "last": 4}, r"mining.first and last: it is \[5, 4\]"),
        ("mining", {"every_steps": -1}, "mining.every_steps: it is -1"),
        ("mining", {"ceiling": 0}, "mining.ceiling: it is 0"),
        ("optimization.epochs", 1, "optimization.steps and epochs: it is 2, but must be 1 of the two"),
        ("optimization.steps", 0, "optimization.steps: it is 0, but must be at least 1"),
        ("optimization.learning_rate", 0, "optimization.learning_rate: it is 0"),
        ("optimization.heads_learning_rate", 0, "optimization.heads_learning_rate: it is 0"),
        ("optimization.head_warmup_steps", -1, "optimization.head_warmup_steps: it is -1"),
        ("optimization.warmup", 1, "optimization.warmup: it is 1, but must be below 1"),
        ("optimization.clip", -1, "optimization.clip: it is -1"),
        ("optimization.precision", "half", 'optimization.precision: expected one of "float32"'),
        ("optimization.last_layers", 0, "optimization.last_layers: it is 0"),
        ("heads.whitening", 2, "heads.whitening: it is 2, but must be at most 1"),
        ("heads.tokens_each", 0, "heads.tokens_each: it is 0"),
        ("encoder.pooling", "max", 'encoder.pooling: expected one of "cls" or "mean"'),
    ],
)
def test_what_is_refused(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        settings(path, value)


@pytest.mark.parametrize(
    ("stage", "path", "value", "message"),
    [
        ("cocondenser", "span_weight", -1, "it is -1, but must be at least 0"),
        ("cocondenser", "span_tokens", 2, "it is 2, but must be at least 3"),
        ("condenser", "ratio", 1.0, "it is 1.0, but must be below 1"),
        ("retromae", "decoder_ratio", 0, "it is 0, but must be above 0"),
        ("retromae", "decoder_layers", 0, "it is 0, but must be at least 1"),
        ("retromae", "decoder_layers", 4, "it is 4, but must be at most 3"),
        ("retromae", "decoding", "weak", 'expected one of "basic" or "enhanced", found "weak"'),
    ],
)
def test_what_pre_training_refuses(stage: str, path: str, value: object, message: str) -> None:
    documents = {"sources": [{**SOURCE, "format": "texts"}]}
    values = {**VALUES, "stage": stage, "data": documents}
    found = settings_from(values)
    if isinstance(found, RetroMaeRun):
        assert (found.pretraining.encoder_ratio, found.pretraining.decoder_ratio) == (0.3, 0.5)
    with pytest.raises(ConfigError, match=f"^pretraining.{path}: {message}$"):
        settings_from({**values, "pretraining": {path: value}})
    with pytest.raises(ConfigError, match=r"^data.sources: it is 0, but must be at least 1$"):
        settings_from({**values, "data": {"sources": []}})


def test_what_a_source_or_an_adapter_does_not_read_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sources\[0\].language: .* left out with format 'pairs'"):
        settings("data.sources", [{**SOURCE, "language": "ko"}])
    spans = {**SOURCE, "format": "spans", "language": "ko"}
    assert settings("data.sources", [spans]).data.sources[0].language == "ko"
    repeats = {**SOURCE, "format": "repeats"}
    without_dropout = {**VALUES["optimization"], "dropout": 0.0}
    with pytest.raises(ConfigError, match=r"development_pairs: it is 4, but must be 0 with format 'repeats'"):
        settings("data.sources", [{**repeats, "development_pairs": 4}])
    with pytest.raises(ConfigError, match=r"dropout: it is 0.0, but must be above 0 for a source of format"):
        settings_from({**VALUES, "data": {"sources": [repeats]}, "optimization": without_dropout})
    for extra, message in (
        ({"frozen_body": True}, r"last_layers: it is 2, but must be left out with frozen_body"),
        ({}, r"adapter: .*optimization.last_layers.* used without these settings"),
    ):
        optimization = {**VALUES["optimization"], "last_layers": 2, **extra}
        with pytest.raises(ConfigError, match=message):
            settings_from({**VALUES, "optimization": optimization, "adapter": {"kind": "lora"}})
    with pytest.raises(ConfigError, match=r"adapter\.lora: .* left out for an adapter of kind prefix"):
        settings("adapter", {"kind": "prefix", "lora": {"rank": 4}})
