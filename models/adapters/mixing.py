"""Several adapters at once on the same rows of a batch, each row with weights of its own.

At every layer that adapters change, and at every attention with prefixes, the outputs are added by weight.
For LoRA, (IA)³, biases, sparse changes and heads that equals merging the parameters by these weights, as
`tercet.models.adapters.merging` does; for bottlenecks and prefixes it is the mixture of what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tercet.models.adapters.body import Part, Share, Slot, WeightedPrefix
from tercet.models.adapters.changes import Below, Change, through
from tercet.models.heads import Heads


class MixedChange(Change):
    """Σ_k w_k · y_k, with y_k the output under the changes of the k-th member."""

    def __init__(self, members: Sequence[Sequence[Change]], weights: Tensor) -> None:
        """weights: float[R, K], of the rows and members."""
        super().__init__()
        self._members = members
        self._weights = weights

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """The base is computed once for all members that leave its input as it is."""
        y = below(x)

        def known(given: Tensor) -> Tensor:
            return y if given is x else below(given)

        return weighted_sum([through(changes, x, known) for changes in self._members], self._weights)


@dataclass(frozen=True, slots=True, eq=False)
class MixedShare:
    """Rows of a batch, int64[R], or None for all of them, and the members that act on them together.

    weights: float[R, K], each row's sum 1; a member without parts is the base.
    """

    rows: Tensor | None
    members: tuple[tuple[Part, ...], ...]
    weights: Tensor

    def changes(self, slot: Slot) -> list[Change]:
        """One change that mixes what the members do in a slot; none where none does anything."""
        members = [Share(self.rows, parts).changes(slot) for parts in self.members]
        return [MixedChange(members, self.weights)] if any(members) else []

    def prefixes(self, layer: int, query: Tensor) -> list[WeightedPrefix]:
        """Keys and values of each member in a block, with its weights float[R]. query: of all rows."""
        prefixes = [Share(self.rows, parts).prefix(layer, query) for parts in self.members]
        if all(prefix is None for prefix in prefixes):
            return [(None, None)]
        return [(self.weights[:, k], prefix) for k, prefix in enumerate(prefixes)]


class MixedHeads:
    """The sparse and ColBERT heads of several members, mixed before relu and normalization."""

    def __init__(self, members: Sequence[Heads], weights: Tensor) -> None:
        """weights: float[R, K], of the rows and members."""
        self._members = members
        self._weights = weights

    def token_weights(self, hidden: Tensor) -> Tensor:
        """Lexical weights of tokens, as `Heads.token_weights` gives them."""
        outputs = [heads.lexical_logits(hidden) for heads in self._members]
        return torch.relu(weighted_sum(outputs, self._weights)).squeeze(-1)

    def token_vectors(self, hidden: Tensor) -> Tensor:
        """Token vectors, as `Heads.token_vectors` gives them."""
        outputs = [heads.projected(hidden) for heads in self._members]
        return functional.normalize(weighted_sum(outputs, self._weights), dim=-1)


def weighted_sum(outputs: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Σ_k w_k · y_k with outputs y_k float[R, …] and weights float[R, K]."""
    shape = (-1, *[1] * (outputs[0].dim() - 1))
    return sum(
        (output * weights[:, k].view(shape).to(output.dtype) for k, output in enumerate(outputs)),
        torch.zeros_like(outputs[0]),
    )
