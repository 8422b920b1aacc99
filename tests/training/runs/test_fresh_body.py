"""A body of random weights in place of the base's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.models.encoder_model import load_body
from tercet.models.errors import CheckpointError
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError
from tercet.training.run import open_base
from tercet.training.runs.fresh_body import write_fresh_base
from tercet.training.settings.base import ArchitectureSettings
from tercet.training.settings.reading import settings_from

SETTINGS = ArchitectureSettings(layers=3, width=24, attention_heads=3, intermediate=40, positions=20)


def test_the_sizes_and_the_tokenizer_of_the_source(tmp_path: Path, base_folder: Path) -> None:
    write_fresh_base(SETTINGS, base_folder, tmp_path / "new", 7)
    assert (tmp_path / "new" / "tokenizer.json").read_bytes() == (base_folder / "tokenizer.json").read_bytes()
    config = json.loads((tmp_path / "new" / "config.json").read_text())
    sizes = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    assert [config[name] for name in sizes] == [3, 24, 3, 40]
    assert (config["vocab_size"], config["max_position_embeddings"], config["pad_token_id"]) == (45, 20, 0)
    assert json.loads((tmp_path / "new" / "tercet.json").read_text()) == {"pooling": "cls", "max_length": 20}
    body = load_body(tmp_path / "new")
    ids = torch.tensor([[2, *range(5, 23), 3]])
    assert body(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.shape == (1, 20, 24)


def test_weights_depend_on_the_seed_alone_and_leave_other_draws_alone(
    tmp_path: Path, base_folder: Path
) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    for name, seed in (("first", 7), ("again", 7), ("other", 8)):
        write_fresh_base(SETTINGS, base_folder, tmp_path / name, seed)
        assert torch.equal(torch.get_rng_state(), state)
        torch.rand(1)
        state = torch.get_rng_state()
    first, again, other = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "again", "other")
    )
    assert first == again != other


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_it_is_the_base_of_a_run(run_values: dict[str, Any], tmp_path: Path, pooling: str) -> None:
    sizes = {"layers": 2, "width": 8, "attention_heads": 2, "intermediate": 16, "positions": 24}
    values = {**run_values, "encoder": {}, "architecture": {**sizes, "pooling": pooling}}
    base = open_base(settings_from(values), tmp_path, "cpu", Ranks())
    assert (base.encoding.pooling, base.encoding.max_length) == (pooling, 24)
    assert not base.has_heads
    assert base.folder == tmp_path / "base-0"


def test_a_source_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        write_fresh_base(SETTINGS, tmp_path, tmp_path / "new", 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers: it is 0, but must be at least 1"),
        ({"attention_heads": 0}, "attention_heads: it is 0, but must be at least 1"),
        ({"intermediate": 0}, "intermediate: it is 0"),
        ({"width": 0}, "width: it is 0, but must be at least 1"),
        ({"width": 9}, "width: it is 9, but must be a multiple of attention_heads, 2"),
        ({"positions": 3}, "positions: it is 3, but must be at least 4"),
        ({"pooling": "max"}, 'pooling: expected one of "cls" or "mean"'),
        ({"positions": 24, "passages": 1}, "passages: unknown setting"),
    ],
)
def test_bad_sizes_are_refused(run_values: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    sizes = {"layers": 2, "width": 8, "attention_heads": 2, "intermediate": 16, **changes}
    with pytest.raises(ConfigError, match=rf"^architecture\.{message}"):
        settings_from({**run_values, "architecture": sizes})
