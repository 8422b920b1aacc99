"""What MaxSim launches does not grow with the passages, and what it holds stays within bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.models.representations import Int64
from tercet.training.m3 import max_sim
from tercet.training.m3.max_sim import MaxSim
from tests.training.operations import Operations

TOKENS, WIDTH = 6, 5


def lengths_of(passages: int) -> Int64:
    return np.random.default_rng(1).integers(1, 9, passages)


def watched(passages: int) -> Operations:
    """One pass forward and back over so many passages."""
    lengths = lengths_of(passages)
    tokens = torch.randn(TOKENS, WIDTH, requires_grad=True)
    vectors = torch.randn(int(lengths.sum()), WIDTH, requires_grad=True)
    with Operations() as operations:
        found: Tensor = MaxSim.apply(tokens, vectors, lengths)  # type: ignore[no-untyped-call]
        found.sum().backward()  # type: ignore[no-untyped-call]
    return operations


def test_many_passages_take_as_many_operations_as_few() -> None:
    assert watched(400).count == watched(4).count


@pytest.mark.parametrize("at_once", [200, 2000])
def test_scores_held_at_once_are_bounded(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(max_sim.AT_ONCE, "cpu", at_once)
    passages = 400
    result = max(TOKENS * passages, int(lengths_of(passages).sum()) * WIDTH)
    assert result < TOKENS * int(lengths_of(passages).sum())  # what all scores at once would be
    assert watched(passages).largest <= max(result, at_once)


def test_gradients_by_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(max_sim.AT_ONCE, "cpu", 30)
    torch.manual_seed(2)
    lengths = np.array([3, 1, 4, 2])
    tokens, vectors = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (5, 10))
    assert torch.autograd.gradcheck(lambda *given: MaxSim.apply(*given, lengths), (tokens, vectors))
