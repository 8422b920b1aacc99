"""Gradient caching: the gradients of a whole batch in the memory of one sub-batch.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup",
arXiv 2101.06983.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from tercet.training.step import nothing


class Cacheable(Protocol):
    """What a part is encoded to: a record with tensors that gradients flow to."""

    @property
    def representations(self) -> tuple[Tensor, ...]: ...

    def detached(self) -> Self:
        """These values as leaves that take gradients of their own."""
        ...


Part = TypeVar("Part")
Encoded = TypeVar("Encoded", bound=Cacheable)


def cached_backward(
    parts: Sequence[Part],
    encode: Callable[[Part], Encoded],
    loss: Callable[[list[Encoded]], Tensor],
    again: Callable[[Part], tuple[Encoded, Tensor]] | None = None,
    before_last: Callable[[], None] = nothing,
) -> None:
    """Adds to every parameter the gradient of `loss` over all parts, as one pass over the whole batch would.

    Each part is encoded twice: without a graph for the loss, then with one, into which the cached gradient of
    its representations flows. The second pass repeats the random numbers of the first, dropout's among them.
    again: replaces `encode` in the second pass where a part also has a loss of its own, which it returns.
    before_last: is called before the last backward pass.
    """
    states, leaves = [], []
    with torch.no_grad():
        for part in parts:
            states.append(random_state())
            leaves.append(encode(part).detached())
    after = random_state()
    loss(leaves).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    for part, leaf, state in zip(parts, leaves, states, strict=True):
        set_random_state(state)
        encoded, own = again(part) if again else (encode(part), 0.0)
        pairs = zip(encoded.representations, leaf.representations, strict=True)
        surrogate = torch.stack([(new * old.grad).sum() for new, old in pairs if old.grad is not None]).sum()
        if leaf is leaves[-1]:
            before_last()
        (surrogate + own).backward()  # type: ignore[no-untyped-call]  # untyped library
    set_random_state(after)


def random_state() -> tuple[Tensor, Tensor | None]:
    """State of the generators that dropout draws from: of the CPU and, where there is one, of the GPU."""
    return torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None


def set_random_state(state: tuple[Tensor, Tensor | None]) -> None:
    """Restores what `random_state` gave."""
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1])
