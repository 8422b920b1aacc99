"""A checkpoint between a base and what was trained of it, and heads that fit its states."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.encoder import encode
from models.head_weights import read_heads, write_heads
from models.loader import load_encoder
from training.errors import ConfigError
from training.multilingual.halfway import averaged, write_halfway
from training.settings.reading import settings_from

torch = pytest.importorskip("torch")
TEXTS = ["word1 word2 word3 word4 word5 word6", "word30 word31 word32 word33"]


def test_weights_lie_on_the_line_between() -> None:
    base, trained = {"a": torch.tensor([0.0, 2.0])}, {"a": torch.tensor([4.0, 2.0])}
    for share, expected in ((0.0, [0, 2]), (0.25, [1, 2]), (1.0, [4, 2])):
        assert averaged(base, trained, share)["a"].tolist() == expected


@pytest.fixture
def trained(run: Callable[..., Any], tmp_path: Path) -> Path:
    run("trained")
    return tmp_path / "trained"


@pytest.fixture
def settings(run_values: dict[str, Any]) -> Any:
    heads = {**run_values.get("heads", {}), "distil_steps": 30, "ridge_penalty": 1e-3}
    return settings_from({**run_values, "heads": heads})


def test_at_the_trained_end_the_lexical_weights_are_its_own(
    settings: Any, trained: Path, tmp_path: Path
) -> None:
    write_halfway(settings, tmp_path / "data", trained, tmp_path / "end", share=1.0)
    before, after = (load_encoder(str(folder), "torch") for folder in (trained, tmp_path / "end"))
    found, expected = encode(after, TEXTS), encode(before, TEXTS)
    assert found.dense is not None
    assert found.sparse is not None
    assert expected.dense is not None
    assert expected.sparse is not None
    np.testing.assert_allclose(found.dense, expected.dense, atol=1e-6)
    np.testing.assert_allclose(found.sparse.weights, expected.sparse.weights, atol=0.02)
    assert not np.allclose(
        read_heads(tmp_path / "end", 16).colbert_weight, read_heads(trained, 16).colbert_weight
    )


def test_halfway_the_heads_meet_the_trained_lexical_weights(
    settings: Any, trained: Path, tmp_path: Path
) -> None:
    """Nearer than the trained head by itself, on states that it was not trained on."""
    half, unfitted = tmp_path / "half", tmp_path / "unfitted"
    write_halfway(settings, tmp_path / "data", trained, half, share=0.5)
    shutil.copytree(half, unfitted)
    write_heads(unfitted, read_heads(trained, 16))
    records = [json.loads(line) for line in (tmp_path / "data" / "pairs.jsonl").read_text().splitlines()]
    texts = [record["pos"][0] for record in records]
    expected, fitted, other = (
        encode(load_encoder(str(folder), "torch"), texts).sparse for folder in (trained, half, unfitted)
    )
    assert expected is not None
    assert fitted is not None
    assert other is not None
    assert fitted.token_ids.tolist() == expected.token_ids.tolist() == other.token_ids.tolist()
    distances = [np.square(found.weights - expected.weights).mean() for found in (fitted, other)]
    assert distances[0] < 0.8 * distances[1]


def test_it_says_what_is_missing(run_values: dict[str, Any], trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="distil_steps"):
        write_halfway(settings_from(run_values), tmp_path / "data", trained, tmp_path / "half", share=0.5)
    with pytest.raises(ConfigError, match=r"share is 1\.5"):
        write_halfway(settings_from(run_values), tmp_path / "data", trained, tmp_path / "half", share=1.5)
