"""Cross-entropy over a large vocabulary in bounded memory.

Letters in shapes: N tokens, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tercet.training.pretraining.vocabulary_gradient import RowProducts, VocabularyGradient

LOGITS_AT_ONCE = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Logits held at one time, on a CPU 64 MiB of float32, and as much again for their softmax."""


def linear_cross_entropy(
    states: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    *,
    logits_at_once: int | None = None,
    gradient: VocabularyGradient | None = None,
) -> Tensor:
    """Σ −log softmax(W·h + b)[label] over N tokens, float32[], without ever holding all N·V logits.

    states: float[N, D]; weight: float[V, D]; bias: float[V]; labels: int64[N]. The products run in the type
    that autocast chooses, the softmax in float32. Not differentiable twice. gradient: gathers that of the
    weight, which then comes with the last of its losses.
    """
    device = states.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
    arguments = (states, weight, bias)
    if not torch.is_grad_enabled():
        arguments = (states.detach(), weight.detach(), bias.detach())
    rows = max(1, (logits_at_once or LOGITS_AT_ONCE[device]) // len(weight))
    with torch.autocast(device, enabled=False):
        total: Tensor = _LinearCrossEntropy.apply(*arguments, labels, rows, dtype, gradient)  # type: ignore[no-untyped-call]
    return total


class _LinearCrossEntropy(torch.autograd.Function):
    """Takes the gradient while the logits are at hand, so they are neither kept nor computed again.

    The sum, not the mean, is taken: softmax values divided by N would vanish in half precision.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        labels: Tensor,
        rows: int,
        dtype: torch.dtype,
        gradient: VocabularyGradient | None,
    ) -> Tensor:
        """rows: tokens at a time; dtype: of the products; gradient: of the weight, over several losses."""
        of_states, of_weight, of_bias = ctx.needs_input_grad[:3]
        precise = torch.promote_types(dtype, torch.float32)
        projection = weight.to(dtype)
        total = torch.zeros((), dtype=precise, device=states.device)
        gradients = [torch.zeros_like(tensor) for tensor in (states, bias)]
        products = RowProducts()
        for start in range(0, max(1, len(states)), rows):
            span = slice(start, start + rows)
            part, wanted = states[span].to(dtype), labels[span].unsqueeze(1)
            logits = (part @ projection.T).to(precise).add_(bias)
            normalizer = logits.logsumexp(dim=1, keepdim=True)
            total += (normalizer - logits.gather(1, wanted)).sum()
            if of_states or of_weight or of_bias:
                error = logits.sub_(normalizer).exp_()  # (n, V): softmax, less 1 at the label
                error.scatter_add_(1, wanted, error.new_full(wanted.shape, -1.0))
                gradients[1] += error.sum(dim=0)
                error = error.to(dtype)
                gradients[0][span] = error @ projection
                if of_weight:
                    products.add(error, part)
        ctx.products, ctx.gradient, ctx.of_weight = products, gradient, of_weight
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        """The kept gradients times that of the sum."""
        of_states, of_bias = (gradient * outer.to(gradient.dtype) for gradient in ctx.saved_tensors)
        gathered = VocabularyGradient(1) if ctx.gradient is None else ctx.gradient
        of_weight = gathered.add(ctx.products, outer) if ctx.of_weight else None
        return of_states, of_weight, of_bias, None, None, None, None
