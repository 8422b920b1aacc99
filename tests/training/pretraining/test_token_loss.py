"""Chunked cross-entropy against the full one, in value and gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tercet.training.pretraining.token_loss import linear_cross_entropy


def tensors(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States of 11 tokens, weight and bias of 40 ids, and labels."""
    torch.manual_seed(3)
    states, weight, bias = (torch.randn(*shape, dtype=dtype) for shape in ((11, 6), (40, 6), (40,)))
    return states, weight, bias, torch.randint(40, (11,))


def gradients(loss: Tensor, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("logits_at_once", [1, 40, 120, 10_000])
def test_chunks_equal_the_whole(logits_at_once: int) -> None:
    states, weight, bias, labels = tensors()
    inputs = [tensor.requires_grad_() for tensor in (states, weight, bias)]
    full = functional.cross_entropy(states @ weight.T + bias, labels, reduction="sum")
    chunked = linear_cross_entropy(states, weight, bias, labels, logits_at_once=logits_at_once)
    torch.testing.assert_close(chunked, full)
    expected = gradients(full / 7, *inputs)
    for ours, theirs in zip(gradients(chunked / 7, *inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.slow
def test_gradients_by_finite_differences() -> None:
    states, weight, bias, labels = tensors(torch.float64)
    inputs = tuple(tensor.requires_grad_() for tensor in (states, weight, bias))
    assert torch.autograd.gradcheck(
        lambda *given: linear_cross_entropy(*given, labels, logits_at_once=80), inputs
    )


def test_without_gradients_only_the_value_is_taken() -> None:
    states, weight, bias, labels = tensors()
    weight.requires_grad_()
    with torch.no_grad():
        loss = linear_cross_entropy(states, weight, bias, labels)
    assert not loss.requires_grad
    torch.testing.assert_close(
        loss, functional.cross_entropy(states @ weight.T + bias, labels, reduction="sum").detach()
    )


def test_autocast_runs_the_products_in_bfloat16() -> None:
    states, weight, bias, labels = tensors()
    inputs = [tensor.requires_grad_() for tensor in (states, weight, bias)]
    full = linear_cross_entropy(states, weight, bias, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = linear_cross_entropy(states, weight, bias, labels, logits_at_once=80)
    assert half.dtype == torch.float32
    assert half.item() != full.item()
    torch.testing.assert_close(half, full, rtol=0.02, atol=0.0)
    for ours, theirs in zip(gradients(half, *inputs), gradients(full, *inputs), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0.05, atol=0.05)


def test_no_tokens_give_zero_with_a_gradient() -> None:
    states, weight, bias, _ = tensors()
    weight.requires_grad_()
    loss = linear_cross_entropy(states[:0], weight, bias, torch.zeros(0, dtype=torch.long))
    assert loss.item() == 0
    assert gradients(loss, weight)[0].abs().sum() == 0
