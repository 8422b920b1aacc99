"""Settings of a run: what is refused, and by which name."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args

import pytest

from training.errors import ConfigError
from training.settings.data import (
    ArchitectureSettings,
    BaseSettings,
    BatchSettings,
    DataSettings,
    SourceSettings,
)
from training.settings.objective import (
    AdapterKind,
    AdapterTraining,
    HeadSettings,
    LossSettings,
    MiningSettings,
    PretrainingSettings,
)
from training.settings.reader import settings_from
from training.settings.run import EncodingOverrides, OptimizationSettings, RunSettings

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
    return settings_from(RunSettings, values, "")


def test_the_defaults_are_those_of_the_paper() -> None:
    found = settings()
    assert (found.losses.temperature, found.losses.form, found.losses.distill) == (0.02, "first", True)
    assert found.batches.negatives == 7
    assert found.mining is None
    assert (found.pretraining.encoder_ratio, found.pretraining.decoder_ratio) == (0.3, 0.5)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("stage", "sft", "stage: expected one of 'finetune', 'contrastive', 'retromae'"),
        ("name", "", "name: it is '', but must be letters, digits"),
        ("name", "../elsewhere", "name: it is '../elsewhere'"),
        ("seed", -1, "seed: it is -1, but must be from 0 to below 4294967296"),
        ("seed", 2**70, "seed: it is 1180591620717411303424"),
        ("evaluate_steps", 0, "evaluate_steps: it is 0, but must be at least 1"),
        ("save_steps", 0, "save_steps: it is 0"),
        ("base.package", "p", "base.checkpoint and package: it is 2, but must be 1 of the two"),
        ("base.folder", "model", "base.folder: it is 'model', but must be left out without a package"),
        (
            "base",
            {"name": "b", "licence": "MIT", "package": "p", "revision": "v1"},
            "base.revision: it is 'v1', but must be left out with a package",
        ),
        ("base.checkpoint", "", "base.checkpoint and package: it is 0"),
        ("data.sources", [], "data.sources with train = true: it is 0"),
        ("data.sources", [{**SOURCE, "train": False}], "data.sources with train = true: it is 0"),
        ("data.sources", [{**SOURCE, "most": 0}], r"data.sources\[0\].most: it is 0"),
        ("data.sources", [{**SOURCE, "lines": [3, 2]}], r"data.sources\[0\].lines: it is \(3, 2\)"),
        ("data.sources", [{**SOURCE, "lines": [0, 2]}], r"data.sources\[0\].lines"),
        ("data.sources", [{**SOURCE, "lines": [1]}], r"data.sources\[0\].lines"),
        ("data.sources", [{**SOURCE, "join_up_to": 0}], r"data.sources\[0\].join_up_to: it is 0"),
        (
            "data.sources",
            [{**SOURCE, "development_pairs": -1}],
            r"data.sources\[0\].development_pairs: it is -1",
        ),
        ("data.sources", [{**SOURCE, "development_pairs": 1}] * 2, r"data.titles of .* it is \['P'\]"),
        (
            "data.sources",
            [SOURCE, {**SOURCE, "format": "texts"}],
            r"data.sources\[1\].format: it is 'texts', but must be one that makes pairs in stage finetune",
        ),
        ("pretraining.span_weight", -1, "pretraining.span_weight: it is -1"),
        (
            "pretraining.decoding",
            "basic",
            "pretraining: it is 'given', but must be left out in stage finetune",
        ),
        (
            "adapter",
            {"kind": "lora", "lora": {"rank": 0}},
            "adapter.lora.rank is 0; it must be a whole number of at least 1",
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
        ("losses.sum_sparse", float("nan"), "losses.sum_sparse: expected a finite number, found nan"),
        ("losses.temperature", float("inf"), "losses.temperature: expected a finite number"),
        ("optimization.learning_rate", 10**400, "optimization.learning_rate: expected a finite number"),
        ("losses.form", "second", "losses.form: expected one of 'first', 'revised'"),
        ("mining", {"first": 5, "last": 4}, r"mining.first and last: it is \(5, 4\)"),
        ("mining", {"every_steps": -1}, "mining.every_steps: it is -1"),
        ("mining", {"ceiling": 0}, "mining.ceiling: it is 0"),
        ("optimization.epochs", 1, "optimization.steps and epochs: it is 2, but must be 1 of the two"),
        ("optimization.steps", 0, "optimization.steps or epochs: it is 0, but must be at least 1"),
        ("optimization.learning_rate", 0, "optimization.learning_rate: it is 0"),
        ("optimization.heads_learning_rate", 0, "optimization.heads_learning_rate: it is 0"),
        ("optimization.head_warmup_steps", -1, "optimization.head_warmup_steps: it is -1"),
        ("optimization.warmup", 1, "optimization.warmup: it is 1"),
        ("optimization.clip", -1, "optimization.clip: it is -1"),
        ("optimization.precision", "half", "optimization.precision: expected one of 'float32'"),
        ("heads.whitening", 2, "heads.whitening: it is 2"),
        ("heads.tokens_each", 0, "heads.tokens_each: it is 0"),
        ("encoder.pooling", "max", "encoder.pooling: expected one of 'cls', 'mean'"),
        ("pretraining.ratio", 1.0, "pretraining.ratio: it is 1"),
    ],
)
def test_what_is_refused(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        settings(path, value)


@pytest.mark.parametrize(
    ("stage", "path", "value", "named"),
    [
        ("contrastive", "heads.fresh", True, "heads: it is 'given'"),
        ("contrastive", "losses.form", "revised", "losses.form: it is 'revised'"),
        ("contrastive", "losses.sum_sparse", 0.5, "losses.sum_sparse: it is 0.5"),
        ("contrastive", "losses.prior", 1.0, "losses.prior: it is 1"),
        ("retromae", "losses.distill", False, "losses: it is 'given'"),
        ("retromae", "pretraining.ratio", 0.2, "pretraining.ratio: it is 0.2"),
        ("retromae", "batches.gradient_cache", True, "batches.gradient_cache: it is True"),
        ("condenser", "mining", {}, "mining: it is 'given'"),
        ("condenser", "pretraining.span_weight", 0.5, "pretraining.span_weight: it is 0.5"),
        ("cocondenser", "pretraining.decoding", "basic", "pretraining.decoding: it is 'basic'"),
        ("cocondenser", "data.query_tokens", 32, "data.query_tokens: it is 32"),
    ],
)
def test_what_the_stage_does_not_read_is_refused(stage: str, path: str, value: object, named: str) -> None:
    values = deepcopy(VALUES)
    if stage != "contrastive":
        values["data"] = {"sources": [{**SOURCE, "format": "texts"}]}
    values["stage"] = stage
    assert settings_from(RunSettings, values, "").stage == stage
    table, _, key = path.partition(".")
    values[table] = {**values.get(table, {}), key: value} if key else value
    with pytest.raises(ConfigError, match=f"^{named}, but must be left out in stage {stage}"):
        settings_from(RunSettings, values, "")


def test_what_a_source_or_an_adapter_does_not_read_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sources\[0\].language: .* left out with format 'pairs'"):
        settings("data.sources", [{**SOURCE, "language": "ko"}])
    assert (
        settings("data.sources", [{**SOURCE, "format": "spans", "language": "ko"}]).data.sources[0].language
    )
    with pytest.raises(ConfigError, match=r"adapter\.lora: .* left out for an adapter of kind prefix"):
        settings("adapter", {"kind": "prefix", "lora": {"rank": 4}})


TABLES: dict[str, type] = {
    "Top": RunSettings,
    "[base]": BaseSettings,
    "[architecture]": ArchitectureSettings,
    "[encoder]": EncodingOverrides,
    "[heads]": HeadSettings,
    "[data]": DataSettings,
    "[[data.sources]]": SourceSettings,
    "[batches]": BatchSettings,
    "[losses]": LossSettings,
    "[mining]": MiningSettings,
    "[pretraining]": PretrainingSettings,
    "[adapter]": AdapterTraining,
    "[optimization]": OptimizationSettings,
}


def test_the_page_lists_every_key_with_its_default(repository: Path) -> None:
    page = (repository / "docs" / "training-settings.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    assert set(sections) == set(TABLES)
    tables = {name.strip("[]").split(".")[-1] for name in TABLES}
    for name, kind in TABLES.items():
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \|$", sections[name], re.M))
        inner = get_args(AdapterKind) if kind is AdapterTraining else tables
        keys = {field.name: field.default for field in fields(kind) if field.name not in inner}
        assert set(rows) == set(keys), name
        for key, value in keys.items():
            if value is not MISSING and value not in (None, "", ()) and key != "groups":
                assert rows[key] == json.dumps(value), f"{name} {key}"


def test_an_optional_word_is_taken() -> None:
    assert settings("encoder.pooling", "mean").encoder.pooling == "mean"
