"""Heads that fit the states of a checkpoint between a base and what was trained of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.weights.head_weights import read_heads, write_heads
from tercet.training.errors import ConfigError
from tercet.training.merging import merge_checkpoints
from tercet.training.multilingual.refitting import refit
from tercet.training.settings.reading import settings_from

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
TEXTS = ["word1 word2 word3 word4 word5 word6", "word30 word31 word32 word33"]


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
    refit(settings, tmp_path / "data", trained, trained, tmp_path / "end", 1.0)
    before, after = (load_encoder(str(folder), "torch") for folder in (trained, tmp_path / "end"))
    found, expected = encode(after, TEXTS).sparse, encode(before, TEXTS).sparse
    assert found is not None
    assert expected is not None
    np.testing.assert_allclose(found.weights, expected.weights, atol=0.02)
    assert not np.allclose(
        read_heads(tmp_path / "end", 16).both()[1].weight, read_heads(trained, 16).both()[1].weight
    )


def test_halfway_the_heads_meet_the_trained_lexical_weights(
    settings: Any, trained: Path, base_folder: Path, tmp_path: Path
) -> None:
    """Nearer than the trained head by itself, on states that it was not trained on."""
    half, unfitted = tmp_path / "half", tmp_path / "unfitted"
    merge_checkpoints([trained], tmp_path / "between", base_folder, [0.5])
    refit(settings, tmp_path / "data", trained, tmp_path / "between", half, 1.0)
    shutil.copytree(half, unfitted)
    heads = read_heads(trained, 16)
    lexical, _ = heads.both()
    # The states are centred, and the heads know by how much.
    last_bias = "encoder.layer.0.output.LayerNorm.bias"
    base, end, now = (
        load_file(folder / "model.safetensors")[last_bias] for folder in (base_folder, trained, half)
    )
    mean = ((base + end) / 2 - now).numpy()
    assert np.abs(mean).max() > 0.01
    write_heads(unfitted, replace(heads, sparse=replace(lexical, bias=lexical.bias + lexical.weight @ mean)))
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


def test_dense_vectors_are_centred_and_lexical_weights_scaled(
    settings: Any, trained: Path, tmp_path: Path
) -> None:
    found = {}
    for scale in (1.0, 2.0):
        output = tmp_path / f"scaled-{scale:g}"
        refit(settings, tmp_path / "data", trained, trained, output, scale)
        found[scale] = encode(load_encoder(str(output), "torch"), TEXTS)
    plain, scaled = found[1.0], found[2.0]
    before = encode(load_encoder(str(trained), "torch"), TEXTS).dense
    assert before is not None
    assert plain.dense is not None
    assert plain.sparse is not None
    assert scaled.sparse is not None
    assert plain.dense[0] @ plain.dense[1] < before[0] @ before[1] - 0.2
    np.testing.assert_array_equal(scaled.dense, plain.dense)
    np.testing.assert_allclose(scaled.sparse.weights, 2 * plain.sparse.weights, rtol=1e-5)


def test_a_run_may_end_halfway(
    run: Callable[..., Any], run_values: dict[str, Any], trained: Path, base_folder: Path, tmp_path: Path
) -> None:
    """As by hand: the same run, merged with its base, with heads fitted to that."""
    heads = {**run_values["heads"], "distil_steps": 30}
    changes = {"heads": heads, "halfway": {"share": 0.25, "lexical_scale": 2.0}}
    run("whole", {"heads": heads})
    run("half", changes)
    merge_checkpoints([tmp_path / "whole"], tmp_path / "between", base_folder, [0.25])
    settings = settings_from({**run_values, **changes})
    refit(settings, tmp_path / "data", tmp_path / "whole", tmp_path / "between", tmp_path / "by-hand", 2.0)
    for name in ("model.safetensors", "heads.safetensors", "tercet.json"):
        assert (tmp_path / "half" / name).read_bytes() == (tmp_path / "by-hand" / name).read_bytes(), name
    assert "lies 0.25 of the way from the base" in (tmp_path / "half" / "README.md").read_text()
    assert not any((tmp_path / "half" / "run" / name).exists() for name in ("trained", "between"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads.distil_steps": 0}, r"heads\.distil_steps: it is 0, but must be at least 1 with halfway"),
        ({"adapter": {"kind": "lora"}, "encoder": None, "heads": None}, 'halfway: it is "adapter"'),
        ({"encoder.positions": 600}, r'halfway: it is "encoder\.positions"'),
        ({"halfway.share": 1.0}, r"halfway\.share: it is 1.0, but must be below 1"),
        ({"halfway.lexical_scale": 0.0}, r"halfway\.lexical_scale: it is 0.0, but must be above 0"),
    ],
)
def test_what_does_not_go_with_halfway(
    run: Callable[..., Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run("half", {"heads.distil_steps": 30, "halfway": {}, **changes})
