"""Fusions of trained bottlenecks, by whole runs: what trains, what is written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.files import read_adapter
from tercet.models.adapters.settings import fused_name
from tercet.models.errors import CheckpointError
from tercet.models.representations import Representations
from tercet.training.errors import ConfigError, RunStateError
from tests.training.runs.adapters import KINDS, KilledError, Run, assert_alike, dense_differs, served

pytestmark = pytest.mark.slow

SHORT = {"optimization.steps": 3}
NARROW = {"kind": "bottleneck", "bottleneck": {"width": 4}}
WIDE = {"kind": "bottleneck", "bottleneck": {"width": 6, "nonlinearity": "gelu", "scale": 2.0}}


@pytest.fixture
def adapters(adapt: Run, tmp_path: Path) -> Path:
    """The folder of two trained bottlenecks, `law` and `tea`."""
    adapt("law", NARROW, SHORT)
    adapt("tea", WIDE, {**SHORT, "seed": 9})
    return tmp_path / "adapters"


def fusion(adapters: Path, *names: str, **others: Any) -> dict[str, Any]:
    modules = [str(adapters / name) for name in names or ("law", "tea")]
    return {"kind": "fusion", "fusion": {"modules": modules}, **others}


def test_it_trains_alone_and_is_served_as_it_was_in_training(
    adapt: Run, adapters: Path, base: Path, in_training: list[Representations]
) -> None:
    before = {name: read_adapter(adapters / name) for name in ("law", "tea")}
    adapt("both", fusion(adapters), {"optimization.steps": 8, "optimization.head_warmup_steps": 2})
    fused = read_adapter(adapters / "both")
    assert fused.settings.widths == (4, 6)
    assert fused.settings.nonlinearities == ("relu", "gelu")
    assert fused.settings.scales == (1.0, 2.0)
    for number, (name, adapter) in enumerate(before.items()):
        assert read_adapter(adapters / name).digest == adapter.digest
        for key, array in adapter.arrays.items():
            np.testing.assert_array_equal(fused.arrays[fused_name(key, number)], array)
    assert all(fused.arrays[f"layers.{layer}.output.value"].any() for layer in range(fused.base.body.layers))
    alone = served(base, adapters, "both")
    assert_alike(alone, in_training[-1])
    assert dense_differs(alone, served(base, adapters, None))
    assert "It holds copies of `law`, `tea`, which it attends over." in (
        adapters / "both" / "README.md"
    ).read_text(encoding="utf-8")
    # It holds what it needs: the others may go.
    (adapters / "law" / "adapter.json").unlink()
    assert_alike(served(base, adapters, "both"), alone)


def test_a_run_that_was_cut_off_goes_on_with_the_same_modules_alone(adapt: Run, adapters: Path) -> None:
    def kill(line: dict[str, Any]) -> None:
        if line["step"] == 7:
            raise KilledError

    adapt("whole", fusion(adapters))
    with pytest.raises(KilledError):
        adapt("cut", fusion(adapters), report=kill)
    (adapters / "law").rename(adapters / "moved")
    adapt("cut", fusion(adapters, "moved", "tea"))
    assert len({(adapters / name / "adapter.safetensors").read_bytes() for name in ("whole", "cut")}) == 1
    with pytest.raises(RunStateError, match=r"a run with other adapter\.fusion\.modules was begun there"):
        adapt("cut", fusion(adapters, "tea", "moved"))


def test_what_cannot_be_fused_is_refused(adapt: Run, adapters: Path, base: Path) -> None:
    short = {"optimization.steps": 1}
    adapt("low", KINDS["lora"], short)
    adapt("beside", KINDS["parallel"], short)
    adapt("upper", {**NARROW, "below": [str(adapters / "low")]}, short)
    with pytest.raises(ConfigError, match=r"^adapter\.fusion\.modules: .*low is of kind lora; a fusion"):
        adapt("x", fusion(adapters, "law", "low"))
    with pytest.raises(
        ConfigError, match=r"several placements \(.*law feed_forward, .*beside parallel\); a fusion"
    ):
        adapt("x", fusion(adapters, "law", "beside"))
    with pytest.raises(CheckpointError, match="absent' is neither a folder, nor a hub id"):
        adapt("x", fusion(adapters, "law", "absent"))
    with pytest.raises(CheckpointError, match=r"upper was trained on top of others than \[\]"):
        adapt("x", fusion(adapters, "law", "upper"))
    adapt("on-low", fusion(adapters, "law", "upper", below=[str(adapters / "low")]), short)
    assert read_adapter(adapters / "on-low").below == (read_adapter(adapters / "low").digest,)
    with pytest.raises(ConfigError, match="on-low is of kind fusion, and sparse changes do not go on top"):
        adapt("x", {**KINDS["sparse"], "below": [str(adapters / "low"), str(adapters / "on-low")]})
    settings = base / "tercet.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "pooling": "cls"}))
    with pytest.raises(ConfigError, match=r"modules: .*law belongs to base 'base' .* train it on this base"):
        adapt("x", fusion(adapters))
