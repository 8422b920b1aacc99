"""Run settings: the shipped file is complete, and every mistake is named by its key."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from training.errors import ConfigError
from training.frozen.config import FitSettings, load_settings
from training.settings_reader import settings_from


@pytest.fixture
def values(repository: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads((repository / "training" / "configs" / "minilm-m3.toml").read_text())


def test_the_shipped_settings_load(repository: Path) -> None:
    settings = load_settings(repository / "training" / "configs" / "minilm-m3.toml")
    assert settings.name == "minilm-m3"
    assert settings.encoder.colbert_dimension == 128
    assert any(source.train for source in settings.data.sources)


def test_json_and_toml_give_the_same(tmp_path: Path, values: dict[str, Any]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(values))
    assert load_settings(path) == settings_from(FitSettings, values, "")


@pytest.mark.parametrize(
    ("keys", "value", "complaint"),
    [
        (["learning_rate"], 1.0, "learning_rate: unknown setting"),
        (["losses", "dense"], 1.0, "losses.dense: unknown setting"),
        (["seed"], "seven", "seed: expected int, found 'seven'"),
        (["seed"], True, "seed: expected int, found True"),
        (["optimization", "epochs"], 1.5, "optimization.epochs: expected int"),
        (["data", "sources"], {}, "data.sources: expected a list"),
        (["data", "sources"], [{"path": "x"}], r"data.sources\[0\].title: this setting is required"),
        (["losses"], 3, "losses: expected a table"),
        (["losses", "temperature"], 0.0, "losses.temperature"),
        (["optimization", "batch_pairs"], 1, "optimization.batch_pairs"),
    ],
)
def test_a_mistake_is_named(values: dict[str, Any], keys: list[str], value: object, complaint: str) -> None:
    changed = copy.deepcopy(values)
    table = changed
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    with pytest.raises(ConfigError, match=complaint):
        settings_from(FitSettings, changed, "")


def test_something_must_choose_the_epoch(values: dict[str, Any]) -> None:
    values["data"]["sources"] = [{**values["data"]["sources"][0], "train": True, "development_pairs": 0}]
    with pytest.raises(ConfigError, match="development_pairs of all sources"):
        settings_from(FitSettings, values, "")


def test_a_missing_setting_is_named(values: dict[str, Any]) -> None:
    del values["optimization"]["epochs"]
    with pytest.raises(ConfigError, match=r"optimization\.epochs: this setting is required"):
        settings_from(FitSettings, values, "")


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("a = = 1")
    with pytest.raises(ConfigError, match=r"run\.toml"):
        load_settings(path)
    with pytest.raises(ConfigError, match="absent"):
        load_settings(tmp_path / "absent.toml")
