"""Gradients that two processes sum, of which one is played here, so that none has to be started."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tercet.training import distributed, gradient_sums
from tercet.training.distributed import Ranks, gather
from tercet.training.gradient_sums import GradientSums

OTHERS = torch.tensor([10.0, 20.0])


def played(others: Callable[[Tensor], Tensor]) -> Any:
    """What a process sees of `torch.distributed`, as the first of two. others: gives what the second one has
    in the place of a tensor.
    """

    def all_reduce(tensor: Tensor, group: object = None, *, async_op: bool = False) -> Any:
        tensor += others(tensor)
        return SimpleNamespace(wait=lambda: None)

    def all_gather(parts: list[Tensor], tensor: Tensor) -> None:
        parts[0].copy_(tensor)
        parts[1].copy_(others(tensor))

    return SimpleNamespace(
        new_group=lambda: None,
        all_reduce=all_reduce,
        all_gather=all_gather,
        get_world_size=lambda: 2,
        get_rank=lambda: 0,
    )


def test_each_gradient_is_the_sum_and_one_that_both_lack_stays_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both, mine, its, none = (nn.Parameter(torch.ones(2)) for _ in range(4))
    theirs = {id(both): OTHERS, id(its): OTHERS}
    order = [none, its, mine, both]  # in which they are sent: backward passes end where forward ones begin

    def others(tensor: Tensor) -> Tensor:
        if tensor.dtype == torch.int32:  # which there are
            return torch.tensor([int(id(each) in theirs) for each in order]).int()
        return torch.cat([theirs.get(id(each), torch.zeros(2)) for each in order])

    monkeypatch.setattr(gradient_sums, "dist", played(others))
    sums = GradientSums([both, mine, its, none], Ranks(0, 2))
    (both * 2 + mine * 3).sum().backward()
    sums.finish()
    assert both.grad is not None
    assert both.grad.tolist() == [12.0, 22.0]
    assert mine.grad is not None
    assert mine.grad.tolist() == [3.0, 3.0]
    assert its.grad is not None
    assert its.grad.tolist() == [10.0, 20.0]
    assert none.grad is None


def test_no_gradient_is_sent_before_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_sums, "dist", played(torch.zeros_like))
    first, last = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    sums = GradientSums([first, last], Ranks(0, 2), bucket_bytes=16)
    first.sum().backward()
    sums.before_last_backward()
    ((first * 2).sum() + (last * 3).sum()).backward()
    sums.finish()
    assert first.grad is not None
    assert first.grad.tolist() == [3.0, 3.0]
    assert last.grad is not None
    assert last.grad.tolist() == [3.0, 3.0]


def test_a_gathered_row_gets_the_gradients_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def others(tensor: Tensor) -> Tensor:
        """The same, and the same weights; its sizes are in the other place."""
        return tensor.flip(0) if tensor.dtype == torch.int64 else tensor.clone()

    monkeypatch.setattr(distributed, "dist", played(others))
    rows = torch.tensor([[1.0, 2.0]], requires_grad=True)
    weights = torch.tensor([[3.0, 4.0], [5.0, 6.0]])
    gathered = gather(rows, Ranks(0, 2))
    (gathered * weights).sum().backward()
    assert rows.grad is not None
    assert rows.grad.tolist() == [[6.0, 8.0]]
