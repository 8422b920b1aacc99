"""Soft prompts in a transformers body: trained vectors that go through its blocks before those of a text.

Source: Lester et al. 2021, "The Power of Scale for Parameter-Efficient Prompt Tuning", arXiv 2104.08691. They
come in behind the embeddings and have no positions, so that those of a text's tokens stay as they are. Their
own states are left out at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# What acts now: float[P, hidden], or None.
Prompt = Callable[[], Tensor | None]


def install_prompts(encoder: nn.Module, prompt: Prompt) -> None:
    """Makes the blocks of a body take a prompt before every text of a batch."""

    def before(
        _: nn.Module, inputs: tuple[Tensor, ...], options: dict[str, Any]
    ) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
        vectors = prompt()
        if vectors is None:
            return inputs, options
        states, *rest = inputs
        joined = torch.cat([vectors.to(states.dtype).expand(states.shape[0], -1, -1), states], dim=1)
        return (joined, *rest), {
            **options,
            "attention_mask": _seen_too(options["attention_mask"], len(vectors)),
        }

    def after(_: nn.Module, __: tuple[Tensor, ...], output: Any) -> Any:
        vectors = prompt()
        if vectors is not None:
            output.last_hidden_state = output.last_hidden_state[:, len(vectors) :]
        return output

    encoder.register_forward_pre_hook(before, with_kwargs=True)
    encoder.register_forward_hook(after)


def _seen_too(mask: Any, count: int) -> Any:
    """A mask of padding, in which so many keys before those of a text are seen as well.

    mask: bool[B, 1, 1 or L, L], one that an export makes, with `keys` int32[B, L], or None.
    """
    if mask is None:
        return None
    if isinstance(mask, Tensor):  # all its rows are alike
        return functional.pad(mask[:, :, :1], (count, 0), value=True)
    return mask._replace(keys=functional.pad(mask.keys, (count, 0), value=1))
