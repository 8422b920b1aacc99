"""Settings from files and plain values: an error is one line that names file, setting, value and limit."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tercet.training.errors import ConfigError
from tercet.training.settings.reading import read_settings, settings_from
from tercet.training.settings.run import CoCondenserRun, ContrastiveRun, FinetuneRun, RunSettings

SOURCE = {"path": "p.jsonl", "title": "P", "licence": "CC0 1.0"}
VALUES: dict[str, Any] = {
    "name": "n",
    "stage": "finetune",
    "base": {"name": "b", "licence": "MIT", "checkpoint": "minilm-m3"},
    "data": {"sources": [SOURCE]},
    "optimization": {"steps": 10, "learning_rate": 1e-5},
}
TOML = """
name = "n"
stage = "finetune"
[base]
name = "b"
licence = "MIT"
checkpoint = "minilm-m3"
[[data.sources]]
path = "p.jsonl"
title = "P"
licence = "CC0 1.0"
[optimization]
steps = 10
learning_rate = 1e-5
"""


def settings(path: str = "", value: object = None, stage: str = "finetune") -> RunSettings:
    """The settings above, of a stage, but for the value at a dotted path."""
    values = {**deepcopy(VALUES), "stage": stage}
    if stage not in ("finetune", "contrastive"):
        values["data"] = {"sources": [{**SOURCE, "format": "texts"}]}
    inner = values
    *parents, last = path.split(".")
    for key in parents:
        inner = inner.setdefault(key, {})
    if path:
        inner[last] = value
    return settings_from(values)


def test_each_stage_has_a_table_of_its_own() -> None:
    assert isinstance(settings(), FinetuneRun)
    assert isinstance(settings(stage="contrastive"), ContrastiveRun)
    assert isinstance(settings(stage="cocondenser"), CoCondenserRun)
    assert not hasattr(settings(stage="cocondenser"), "losses")


def test_values_take_their_types() -> None:
    found = settings("optimization", {"learning_rate": 1, "epochs": 2}).optimization
    assert (found.learning_rate, found.epochs) == (1.0, 2)
    assert type(found.learning_rate) is float
    assert settings("encoder.pooling", "mean").encoder.pooling == "mean"
    assert settings("data.held_out", ["a", "b"]).data.held_out == ("a", "b")


def test_null_stands_for_an_optional_that_is_not_given() -> None:
    assert settings("mining", None) == settings("optimization.dropout", None) == settings()
    with pytest.raises(ConfigError, match=r"^name: expected a text, found null$"):
        settings("name", None)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("seeds", 1, r"^seeds: unknown setting \(known are adapter, architecture, base, batches, data"),
        (
            "mining",
            {"frist": 2},
            r"^mining\.frist: unknown setting \(known are by, ceiling, draw, every_steps",
        ),
        ("batches.groups", [{"tokens": 300}], r"^batches\.groups\[0\]\.batch: this setting is required$"),
        ("batches.groups", {"tokens": 3}, r'^batches\.groups: expected a list, found \{"tokens": 3\}$'),
        ("batches.groups", [3], r"^batches\.groups\[0\]: expected a table of settings, found 3$"),
        ("losses", 3, r"^losses: expected a table of settings, found 3$"),
        ("save_steps", 1.0, r"^save_steps: expected a whole number, found 1\.0$"),
        ("save_steps", True, r"^save_steps: expected a whole number, found true$"),
        ("optimization.clip", "1", r'^optimization\.clip: expected a number, found "1"$'),
        ("losses.distill", 1, r"^losses\.distill: expected true or false, found 1$"),
        ("data.held_out", ["a", 1], r"^data\.held_out\[1\]: expected a text, found 1$"),
        ("data.held_out", "a", r'^data\.held_out: expected a list, found "a"$'),
        ("encoder.pooling", "max", r'^encoder\.pooling: expected one of "cls" or "mean", found "max"$'),
        (
            "losses.form",
            ["first"],
            r'^losses\.form: expected one of "first" or "revised", found \["first"\]$',
        ),
        (
            "losses.temperature",
            float("inf"),
            r"^losses\.temperature: expected a finite number, found Infinity$",
        ),
        ("losses.sum_sparse", float("nan"), r"^losses\.sum_sparse: expected a finite number, found NaN$"),
        (
            "optimization.learning_rate",
            10**400,
            r"^optimization\.learning_rate: expected a number, found an integer of 1329 bits$",
        ),
        ("data.sources", [{**SOURCE, "lines": ["3", 4]}], r'lines\[0\]: expected a whole number, found "3"$'),
    ],
)
def test_an_error_names_the_dotted_key(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(path, value)


def test_all_errors_are_told_and_a_misspelt_key_before_the_missing_one() -> None:
    values = {key: value for key, value in VALUES.items() if key != "name"}
    with pytest.raises(ConfigError) as raised:
        settings_from({**values, "nmae": "n", "seed": -1})
    first, *others = str(raised.value).split("; ")
    assert first.startswith("nmae: unknown setting")
    assert others == ["name: this setting is required", "seed: it is -1, but must be at least 0"]


def test_something_else_than_a_table_and_a_missing_or_unknown_stage() -> None:
    for values, message in (
        ([], r"^settings: expected a table of settings, found \[\]$"),
        ({}, r"^stage: this setting is required$"),
        ({"stage": "sft"}, r'^stage: expected one of "finetune", "contrastive", .*, found "sft"$'),
        ({"stage": ["finetune"]}, r'^stage: expected one of .*, found \["finetune"\]$'),
    ):
        with pytest.raises(ConfigError, match=message):
            settings_from(values)


@pytest.mark.parametrize(
    ("stage", "path", "value", "readers"),
    [
        ("finetune", "pretraining", {}, "mlm, retromae, condenser, cocondenser"),
        ("contrastive", "heads", {"fresh": True}, "finetune"),
        ("contrastive", "losses.form", "revised", "finetune"),
        ("contrastive", "optimization.frozen_body", True, "finetune"),
        ("retromae", "losses", {}, "finetune, contrastive"),
        ("retromae", "pretraining.ratio", 0.2, "mlm, condenser, cocondenser"),
        ("retromae", "batches.gradient_cache", True, "finetune, contrastive"),
        ("condenser", "mining", {}, "finetune, contrastive"),
        ("condenser", "adapter", {"kind": "lora"}, "finetune, contrastive"),
        ("condenser", "pretraining.span_weight", 0.5, "cocondenser"),
        ("cocondenser", "pretraining.decoding", "basic", "retromae"),
        ("cocondenser", "data.query_tokens", 32, "finetune, contrastive, score"),
    ],
)
def test_what_a_stage_does_not_read_is_refused(stage: str, path: str, value: object, readers: str) -> None:
    assert settings(stage=stage).stage == stage
    message = rf"^{path}: not read in stage {stage}, only in {readers}: leave it out$"
    with pytest.raises(ConfigError, match=message):
        settings(path, value, stage)


def test_the_place_of_what_is_not_read_may_be_in_a_list() -> None:
    source = {**SOURCE, "format": "texts", "join_up_to": 3}
    message = r"^data\.sources\[0\]\.join_up_to: not read in stage retromae, only in finetune, contrastive"
    with pytest.raises(ConfigError, match=message):
        settings("data.sources", [source], "retromae")


def test_toml_and_json_say_the_same_and_errors_name_the_file(tmp_path: Path) -> None:
    toml, plain = tmp_path / "run.toml", tmp_path / "run.json"
    toml.write_text(TOML)
    plain.write_text(json.dumps(VALUES))
    assert read_settings(toml) == read_settings(plain) == settings()
    plain.write_text('{"stage": "finetune", "name": "t"}')
    with pytest.raises(ConfigError, match=r"run\.json: base: this setting is required; data: this setting"):
        read_settings(plain)
    toml.write_text("name = 1979-05-27\n" + TOML.replace('name = "n"\n', ""))
    with pytest.raises(ConfigError, match=r"run\.toml: name: expected a text, found .1979-05-27"):
        read_settings(toml)
    for path, content in ((toml, b"name = "), (plain, b"{"), (plain, b"\xff")):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=f"{path.name}: cannot be read as {path.suffix}"):
            read_settings(path)
    with pytest.raises(ConfigError, match="absent"):
        read_settings(tmp_path / "absent.toml")
