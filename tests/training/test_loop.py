"""What a step does to the weights: the gradient is clipped to the norm that the settings allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tercet.training.loop
from tercet.training.loop import clip
from tercet.training.optimizer import make_optimizer
from tercet.training.runs.log import read_log
from tercet.training.settings.optimization import OptimizationSettings


def test_clipping_by_hand() -> None:
    trained = {"a": nn.Parameter(torch.zeros(1)), "b": nn.Parameter(torch.zeros(2))}
    for largest, expected in ((1.0, [0.6, 0.8]), (10.0, [3.0, 4.0]), (0.0, [3.0, 4.0])):
        trained["a"].grad, trained["b"].grad = torch.tensor([3.0]), torch.tensor([0.0, 4.0])
        assert clip(trained, largest).item() == pytest.approx(5.0)
        found = [trained["a"].grad.item(), trained["b"].grad[1].item()]
        assert found == pytest.approx(expected, rel=1e-5)


def plain_descent(model: nn.Module, settings: OptimizationSettings) -> torch.optim.Optimizer:
    """The same groups without AdamW's own scaling, which makes the size of a gradient nearly meaningless."""
    groups = make_optimizer(model, settings).param_groups
    kept = ("params", "peak", "first_step")
    return torch.optim.SGD([{key: group[key] for key in kept} for group in groups], lr=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [0.05, 0.0])
def test_a_step_goes_no_further_than_the_clipped_gradient(
    run: Callable[..., Any],
    tmp_path: Path,
    base_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    largest: float,
) -> None:
    monkeypatch.setattr(tercet.training.loop, "make_optimizer", plain_descent)
    states: list[dict[str, torch.Tensor]] = []
    train = tercet.training.loop.train_body

    def watched(trained: dict[str, nn.Parameter], trains: bool) -> None:
        states.append({name: parameter.detach().clone() for name, parameter in trained.items()})
        train(trained, trains)

    monkeypatch.setattr(tercet.training.loop, "train_body", watched)
    source = {"path": "pairs.jsonl", "title": "All", "licence": "CC0 1.0"}
    rates = {"optimization.learning_rate": 0.01, "optimization.warmup": 0.0, "optimization.clip": largest}
    run("out", {"data.sources": [source], "optimization.steps": 2, "optimization.decay": "none", **rates})
    first, second = states
    moved = torch.cat([(second[name] - first[name]).flatten() for name in first]).norm().item()
    step = next(line for line in read_log(tmp_path / "out" / "run") if "losses" in line)
    assert step["gradient_norm"] > 0.1
    assert moved == pytest.approx(0.01 * (largest or step["gradient_norm"]), rel=1e-3)
