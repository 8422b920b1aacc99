"""Settings of the multilingual checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.errors import ConfigError
from training.settings.multilingual import read_multilingual_settings


def test_the_shipped_settings_are_valid(repository: Path) -> None:
    settings = read_multilingual_settings(repository / "training" / "multilingual" / "multi-m3.toml")
    assert {"ko", "ja", "zh"} <= set(settings.alignment.languages)


def test_every_fault_is_named(repository: Path, tmp_path: Path) -> None:
    text = (repository / "training" / "multilingual" / "multi-m3.toml").read_text(encoding="utf-8")
    text = text.replace("seed = 5", "sed = 5").replace("learning_rate = 1e-3", "learning_rate = 0.0")
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"a\.toml: .*distillation\.learning_rate: .*sed: "):
        read_multilingual_settings(path)
    path.write_text("base = ")
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        read_multilingual_settings(path)
