"""Modules that learn with their router, trained by whole runs and served by the router that is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

import tercet.training.run
from tercet.models.adapters.files import read_adapter
from tercet.models.adapters.router_files import read_router
from tercet.models.loader import load_encoder
from tercet.training.errors import RunStateError
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.runs.log import read_log
from tests.training.runs.adapters import KINDS, TEXTS, KilledError, Run, dense_differs, served

pytestmark = pytest.mark.slow


def routed(kind: str, **routing: Any) -> dict[str, Any]:
    return {**KINDS[kind], "routing": {"modules": 3, **routing}}


@pytest.fixture
def encoded_in_training(monkeypatch: pytest.MonkeyPatch) -> list[EncodedTexts]:
    """What training's own forward makes of `TEXTS` when the modules are written."""
    found: list[EncodedTexts] = []
    write = tercet.training.run.write_trained_adapter

    def watched(folder: Path, model: Any, attached: Any) -> None:
        write(folder, model, attached)
        tokenizer = load_encoder(str(folder.parents[1] / "base"), "torch").tokenizer
        encoder = TextEncoder(model, tokenizer, 64, "float32", "cpu", attached.modules)
        with torch.no_grad():
            found.append(encoder.encode_all(tokenizer.tokenize(TEXTS, "document")))

    monkeypatch.setattr(tercet.training.run, "write_trained_adapter", watched)
    return found


@pytest.mark.parametrize(
    ("kind", "top", "router"),
    [
        ("lora", 1, "gate"),
        ("lora", 2, "soft"),
        ("lora", 3, "soft"),
        ("ia3", 2, "soft"),
        ("bias", 1, "gate"),
        ("prefix", 2, "soft"),
        ("bottleneck", 1, "gate"),
    ],
)
def test_modules_and_their_router_are_served_as_they_were_in_training(
    adapt: Run,
    base: Path,
    tmp_path: Path,
    encoded_in_training: list[EncodedTexts],
    kind: str,
    top: int,
    router: str,
) -> None:
    adapters = tmp_path / "adapters"
    # A prefix starts smaller than the steps that the other kinds take here.
    rate = {"optimization.learning_rate": 0.01 if kind == "prefix" else 0.05}
    adapt("routed", routed(kind, top=top), {**rate, "seed": 2})
    names = [f"routed-{number}" for number in (1, 2, 3)]
    assert sorted(path.name for path in adapters.iterdir()) == ["routed", *names]
    assert all(read_adapter(adapters / name).kind == kind for name in names)
    assert read_router(adapters / "routed").kind == router
    card = (adapters / "routed" / "README.md").read_text()
    assert f"A router among 3 adapters of kind {kind} for tiny with heads with heads of its own" in card
    lines = [line["losses"] for line in read_log(adapters / "routed" / "run") if "losses" in line]
    assert all(0.9 < line["balance"] <= 3 for line in lines)

    found, trained = served(base, adapters, "routed"), encoded_in_training[0]
    assert found.dense is not None
    assert found.colbert is not None
    assert found.routes is not None
    np.testing.assert_allclose(found.dense, trained.dense, atol=2e-6)
    vectors = torch.cat([row[has] for row, has in zip(trained.vectors, trained.vector_mask, strict=True)])
    np.testing.assert_allclose(found.colbert.vectors, vectors, atol=2e-6)
    assert all(len(route.adapters) == top for route in found.routes if route)
    assert dense_differs(found, served(base, adapters, None))


def test_modules_learn_alike_with_cached_gradients_and_go_on_after_a_kill(adapt: Run, tmp_path: Path) -> None:
    adapters, settings = tmp_path / "adapters", routed("lora", top=2, balance=0.5)
    whole = {"optimization.dropout": 0.0}
    adapt("plain", settings, whole)
    adapt("cached", settings, {**whole, "batches.gradient_cache": True})

    def kill(line: dict[str, Any]) -> None:
        if line["step"] == 7:
            raise KilledError

    with pytest.raises(KilledError):
        adapt("cut", settings, whole, report=kill)
    adapt("cut", settings, whole)
    plain, cached, cut = (
        [line["losses"] for line in read_log(adapters / name / "run") if "losses" in line]
        for name in ("plain", "cached", "cut")
    )
    assert cut == plain
    for one, other in zip(plain, cached, strict=True):
        assert other == pytest.approx(one, abs=2e-3)
    for number in (1, 2, 3):
        assert (adapters / f"plain-{number}" / "adapter.safetensors").read_bytes() == (
            adapters / f"cut-{number}" / "adapter.safetensors"
        ).read_bytes()


def test_modules_replace_no_adapter_of_another_run(adapt: Run, tmp_path: Path) -> None:
    short = {"optimization.steps": 1}
    adapt("routed-2", KINDS["lora"], short)
    with pytest.raises(RunStateError, match=r"routed-2: holds adapter\.json of something that no run there"):
        adapt("routed", routed("lora"), short)
    assert not (tmp_path / "adapters" / "routed-1").exists()
