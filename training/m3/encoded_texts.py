"""The three representations of a batch of texts as padded tensors, with gradients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from training.distributed import Ranks, gather

SIDES = ("dense", "sparse", "colbert")
SCORED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"dense": ("dense",), "sparse": ("lexical", "token_ids"), "colbert": ("vectors", "vector_mask")}
)
"""What each side's score reads of `EncodedTexts`."""


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """B texts, padded on the right.

    dense: float32[B, D]; lexical: weights float32[B, L], exactly 0 for what is no term; token_ids:
    int64[B, L]; is_term: bool[B, L], false for padding, special tokens and instructions; vectors:
    float32[B, L−1, C] and vector_mask: bool[B, L−1], without the first token.
    """

    dense: Tensor
    lexical: Tensor
    token_ids: Tensor
    is_term: Tensor
    vectors: Tensor
    vector_mask: Tensor

    def __len__(self) -> int:
        return len(self.dense)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All, in the order above."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def representations(self) -> tuple[Tensor, Tensor, Tensor]:
        """What gradients flow to: dense, lexical weights and vectors."""
        return self.dense, self.lexical, self.vectors

    def detached(self) -> EncodedTexts:
        """The same values as leaves that take gradients of their own."""
        dense, lexical, vectors = (tensor.detach().requires_grad_() for tensor in self.representations)
        return EncodedTexts(dense, lexical, self.token_ids, self.is_term, vectors, self.vector_mask)

    def of_all(self, ranks: Ranks, sides: Collection[str]) -> EncodedTexts:
        """What these sides read, of the texts of all processes, in order of rank; the rest as it is."""
        names = [name for side in sides for name in SCORED_BY[side]]
        return replace(self, **{name: gather(getattr(self, name), ranks) for name in names})

    @staticmethod
    def concatenate(parts: Sequence[EncodedTexts], order: Tensor | None = None) -> EncodedTexts:
        """The texts of all parts, padded to the longest; `order` int64[B] says which comes at each place."""
        columns = zip(*(part.tensors for part in parts), strict=True)
        joined = [
            torch.cat([_widened(t, max(c.shape[1] for c in column)) for t in column]) for column in columns
        ]
        return EncodedTexts(
            *(joined if order is None else [tensor.index_select(0, order) for tensor in joined])
        )


def _widened(tensor: Tensor, width: int) -> Tensor:
    """The tensor [B, L, …] padded by zeros to `width` in its second dimension."""
    missing = width - tensor.shape[1]
    return tensor if missing == 0 else functional.pad(tensor, (0, 0) * (tensor.ndim - 2) + (0, missing))
