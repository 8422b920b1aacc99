"""Adapters trained by whole runs: what they change, what is written, and what serves it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.models.errors import AdapterUnusableError, CheckpointError
from tercet.models.representations import Representations

pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.cli.main import main
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import StackSettings
from tercet.training.errors import ConfigError, RunStateError
from tercet.training.runs.log import read_log
from tests.training.runs.adapters import KINDS, KilledError, Run, assert_alike, dense_differs, served

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", list(KINDS))
def test_each_kind_trains_and_is_served_as_it_was_in_training(
    adapt: Run, base: Path, tmp_path: Path, in_training: list[Representations], kind: str
) -> None:
    """And a run of it that was cut off goes on to the same bytes."""
    before = load_file(base / "model.safetensors")
    # A prefix starts smaller than the steps that the other kinds take here.
    changes = {"optimization.learning_rate": 0.01 if kind in ("prefix", "prompt", "mixed") else 0.05}
    progress = adapt(kind, KINDS[kind], changes)
    folder = tmp_path / "adapters" / kind
    lines = list(read_log(folder / "run"))
    sums = [line["development"]["Made pairs"]["sum"] for line in lines if "development" in line]
    assert progress.best_figure == max(sums)
    losses = [line["losses"]["loss"] for line in lines if "losses" in line]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])

    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert files == {"adapter.json", "adapter.safetensors", "README.md"}
    state = torch.load(folder / "run" / "state.pt", weights_only=True)["weights"]
    assert all(adapter_part(name) or name.startswith("heads.") for name in state)
    after = load_file(base / "model.safetensors")
    assert all(torch.equal(before[name], after[name]) for name in before)

    with_adapter = served(base, tmp_path / "adapters", kind)
    assert_alike(with_adapter, in_training[0])
    assert dense_differs(with_adapter, served(base, tmp_path / "adapters", None))

    def kill(line: dict[str, Any]) -> None:
        if line["step"] == 7:
            raise KilledError

    cut, renamed = folder.with_name("cut"), folder.with_name("renamed")
    with pytest.raises(KilledError):
        adapt("cut", KINDS[kind], changes, report=kill)
    assert not (cut / "adapter.json").exists()
    cut.rename(renamed)  # the name of a folder is not part of what is trained
    adapt("renamed", KINDS[kind], changes)
    for one, other in zip(lines, read_log(renamed / "run"), strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert (renamed / "adapter.safetensors").read_bytes() == (folder / "adapter.safetensors").read_bytes()
    with pytest.raises(RunStateError, match="a run with other adapter"):
        adapt(kind, {**KINDS[kind], "heads": False}, changes)


def adapter_part(name: str) -> bool:
    return "adapter_trained" in name and name.startswith("body.")


def test_without_heads_those_of_the_base_stay(
    adapt: Run, base: Path, tmp_path: Path, in_training: list[Representations]
) -> None:
    adapt("plain", {**KINDS["lora"], "heads": False}, {"optimization.steps": 3})
    assert read_adapter(tmp_path / "adapters" / "plain").heads is None
    state = torch.load(tmp_path / "adapters" / "plain" / "run" / "state.pt", weights_only=True)
    assert not any(name.startswith("heads.") for name in state["weights"])
    assert_alike(served(base, tmp_path / "adapters", "plain"), in_training[0])


def test_the_contrastive_stage_trains_no_heads_and_saves_none(adapt: Run, tmp_path: Path) -> None:
    adapt("dense", KINDS["lora"], {"stage": "contrastive", "heads": None, "optimization.steps": 2})
    assert read_adapter(tmp_path / "adapters" / "dense").heads is None


@pytest.mark.parametrize("upper", ["lora", "prefix", "bottleneck"])
def test_an_adapter_on_top_of_another_is_served_as_their_stack(
    adapt: Run, base: Path, tmp_path: Path, in_training: list[Representations], upper: str
) -> None:
    adapters = tmp_path / "adapters"
    adapt("lower", KINDS["lora"])
    lower = (adapters / "lower" / "adapter.safetensors").read_bytes()
    adapt("upper", {**KINDS[upper], "heads": False, "below": [str(adapters / "lower")]})
    assert (adapters / "lower" / "adapter.safetensors").read_bytes() == lower
    write_adapter(adapters / "both", Adapter(StackSettings(("lower", "upper")), adapter_base(base)))
    with pytest.raises(AdapterUnusableError, match=r"was trained on top of 1 other.* stack it on these"):
        served(base, adapters, "upper")
    # The heads are those trained with the lower one, in training as in the stack.
    assert_alike(served(base, adapters, "both"), in_training[1])
    assert "trained on top of `lower`: stack it on these" in (adapters / "upper" / "README.md").read_text()


def test_an_adapter_is_stacked_on_what_it_was_trained_on_alone(
    adapt: Run, base: Path, tmp_path: Path
) -> None:
    adapters = tmp_path / "adapters"
    short = {"optimization.steps": 1}
    adapt("lower", KINDS["lora"], short)
    adapt("other", KINDS["lora"], {**short, "seed": 9})
    adapt("middle", {**KINDS["ia3"], "below": [str(adapters / "lower")]}, short)
    assert read_adapter(adapters / "middle").below == (read_adapter(adapters / "lower").digest,)
    for name, parts in {"good": ("lower", "middle"), "bad": ("other", "middle")}.items():
        write_adapter(adapters / name, Adapter(StackSettings(parts), adapter_base(base)))
    served(base, adapters, "good")
    with pytest.raises(AdapterUnusableError, match=r"middle was trained on top of others than \['other'\]"):
        served(base, adapters, "bad")
    with pytest.raises(CheckpointError, match=r"middle was trained on top of others than \[\]"):
        adapt("upper", {**KINDS["lora"], "below": [str(adapters / "middle")]}, short)
    # A run whose lower adapter has changed is another run, whatever its folder is called.
    (adapters / "lower").rename(adapters / "before")
    adapt("lower", KINDS["lora"], {**short, "seed": 9})
    with pytest.raises(RunStateError, match=r"a run with other adapter\.below was begun there"):
        adapt("middle", {**KINDS["ia3"], "below": [str(adapters / "lower")]}, short)
    adapt("middle", {**KINDS["ia3"], "below": [str(adapters / "before")]}, short)


def test_what_cannot_lie_below_is_refused(adapt: Run, base: Path, tmp_path: Path) -> None:
    adapters = tmp_path / "adapters"
    adapt("one", KINDS["lora"], {"optimization.steps": 1})
    write_adapter(adapters / "both", Adapter(StackSettings(("one", "one")), adapter_base(base)))
    with pytest.raises(ConfigError, match=r"both is a stack; name its parts instead, .*: one, one"):
        adapt("upper", {**KINDS["lora"], "below": [str(adapters / "both")]})
    with pytest.raises(CheckpointError, match="absent' is neither a folder, nor a hub id"):
        adapt("other", {**KINDS["lora"], "below": [str(adapters / "absent")]})
    adapt("scaled", KINDS["ia3"], {"optimization.steps": 1})
    with pytest.raises(ConfigError, match="scaled is of kind ia3, and sparse changes do not go on top"):
        adapt("chosen", {**KINDS["sparse"], "below": [str(adapters / "scaled")]})
    settings = base / "tercet.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "pooling": "cls"}))
    with pytest.raises(ConfigError, match=r"one belongs to base 'base' .* train it on this base first"):
        adapt("third", {**KINDS["lora"], "below": [str(adapters / "one")]})


@pytest.mark.parametrize("name", ["keys", "train", "lora", "a-b_c"])
def test_any_name_of_an_adapter_will_do(adapt: Run, base: Path, tmp_path: Path, name: str) -> None:
    for kind in ("lora", "ia3"):
        folder = f"{kind}/{name}"
        adapt(folder, KINDS[kind], {"optimization.steps": 1})
        assert served(base, tmp_path / "adapters" / kind, name).dense is not None


def test_it_trains_with_gradient_checkpointing_and_head_warm_up(adapt: Run, tmp_path: Path) -> None:
    adapt("plain", KINDS["lora"], {"optimization.steps": 4, "optimization.head_warmup_steps": 2})
    saving = {"batches.gradient_checkpointing": True, "batches.gradient_cache": True}
    warm = {"optimization.steps": 4, "optimization.head_warmup_steps": 2}
    adapt("saving", KINDS["lora"], {**warm, **saving})
    plain, saved = (
        [
            line["losses"]["loss"]
            for line in read_log(tmp_path / "adapters" / name / "run")
            if "losses" in line
        ]
        for name in ("plain", "saving")
    )
    assert saved == pytest.approx(plain, abs=1e-3)


def test_the_card_says_what_the_adapter_is(adapt: Run, tmp_path: Path) -> None:
    adapt("carded", KINDS["ia3"], {"optimization.steps": 1})
    card = (tmp_path / "adapters" / "carded" / "README.md").read_text()
    assert "An adapter of kind ia3 for tiny with heads with heads of its own, served beside it" in card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"stage": "retromae"},
            "adapter: not read in stage retromae, only in finetune, contrastive: leave it out",
        ),
        ({"encoder.pooling": "cls"}, 'adapter: it is "encoder", but must be used without these settings'),
        ({"heads.fresh": True}, r"adapter: it is \"heads\.fresh\""),
        ({"optimization.frozen_body": True}, r"adapter: it is \"optimization\.frozen_body\""),
        (
            {"architecture": {"layers": 1, "width": 8, "attention_heads": 1, "intermediate": 8}},
            'adapter: it is "architecture"',
        ),
        (
            {"adapter.routing": {"modules": 2, "top": 3}},
            r"adapter\.routing.top: it is 3, but must be at most modules, 2",
        ),
        (
            {"adapter.routing": {"modules": 2}, "adapter.below": ["one"]},
            'adapter.below: it is "given", but must be left out with routing',
        ),
        (
            {"adapter": {"kind": "prompt", "routing": {"modules": 2}}},
            r'adapter\.kind: it is "prompt", but must be another one with routing',
        ),
        (
            {"adapter.routing": {"modules": 2}, "batches.gradient_checkpointing": True},
            r"batches\.gradient_checkpointing: it is true, but must be false with adapter\.routing",
        ),
        ({"adapter": {"kind": "fusion"}}, 'adapter.fusion: it is "left out", but must be given for'),
        (
            {"adapter": {"kind": "fusion", "fusion": {"modules": ["one"]}}},
            r"adapter\.fusion\.modules: .*at least 2",
        ),
        (
            {"adapter.fusion": {"modules": ["one", "two"]}},
            'adapter.fusion: it is "given", but must be left out for an adapter of kind lora',
        ),
        (
            {"adapter": {"kind": "fusion", "fusion": {"modules": ["one", "two"]}, "routing": {"modules": 2}}},
            r'adapter\.kind: it is "fusion", but must be another one with routing',
        ),
        (
            {"adapter.heads": False, "optimization.head_warmup_steps": 1},
            r"optimization\.head_warmup_steps: it is 1, but must be 0 where no heads are trained",
        ),
        (
            {"stage": "contrastive", "optimization.head_warmup_steps": 1},
            r"optimization\.head_warmup_steps: not read in stage contrastive",
        ),
        (
            {"adapter": {"kind": "sparse", "mask_batches": 6}, "mining": {"every_steps": 5}},
            r"mining\.every_steps: it is 5, but must be at least adapter\.mask_batches, 6, or 0",
        ),
    ],
)
def test_settings_that_do_not_go_with_an_adapter(adapt: Run, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"(^|; ){message}"):
        adapt("out", KINDS["lora"], changes)


def test_a_base_without_heads_and_a_bad_name_are_one_line(
    run_values: dict[str, Any],
    base: Path,
    base_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for checkpoint, heads, output, message in (
        (base_folder, run_values["heads"], "fine", "heads.safetensors"),
        (base, {}, "No Name", "adapter name 'No Name' does not match"),
    ):
        origin = {"name": "b", "licence": "MIT", "checkpoint": str(checkpoint)}
        changes = {"base": origin, "encoder": {}, "heads": heads, "adapter": {"kind": "lora"}}
        values = {**run_values, **changes}
        config = tmp_path / "run.json"
        config.write_text(json.dumps(values))
        places = ["--data", str(tmp_path / "data"), "--output", str(tmp_path / output), "--threads", "1"]
        monkeypatch.setattr(sys, "argv", ["tercet", "train", str(config), *places])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        error = capfd.readouterr().err
        assert error.count("\n") == 1, error
        assert message in error
