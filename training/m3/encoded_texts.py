"""The three representations of a batch of texts as padded tensors, with gradients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from tercet.models.representations import Bool, Int64
from tercet.training.distributed import Ranks, gather, gather_array
from tercet.training.transfer import on_device

Value = TypeVar("Value", bound=np.generic)

SIDES = ("dense", "sparse", "colbert")
SCORED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"dense": ("dense",), "sparse": ("lexical", "token_ids"), "colbert": ("vectors", "vector_mask")}
)
"""What each side's score reads of `EncodedTexts`."""


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """B texts, padded on the right. Tensors are what was computed, arrays what the host knows without it.

    dense: float32[B, D]; lexical: weights float32[B, L], exactly 0 for what is no term; token_ids:
    int64[B, L]; is_term: bool[B, L], false for padding, special tokens and instructions; vectors:
    float32[B, L−1, C] and vector_mask: bool[B, L−1], without the first token; module_scores: float32[B, N] of
    the modules that texts are routed among, None without.
    """

    dense: Tensor
    lexical: Tensor
    token_ids: Int64
    is_term: Bool
    vectors: Tensor
    vector_mask: Bool
    module_scores: Tensor | None = None

    def __len__(self) -> int:
        return len(self.dense)

    @property
    def representations(self) -> tuple[Tensor, ...]:
        """What gradients flow to: dense, lexical weights, vectors and, where there are any, module scores."""
        scores = () if self.module_scores is None else (self.module_scores,)
        return self.dense, self.lexical, self.vectors, *scores

    def detached(self) -> EncodedTexts:
        """These values as leaves that take gradients of their own."""
        dense, lexical, vectors, *scores = (
            tensor.detach().requires_grad_() for tensor in self.representations
        )
        return replace(
            self, dense=dense, lexical=lexical, vectors=vectors, module_scores=next(iter(scores), None)
        )

    def of_all(self, ranks: Ranks, sides: Collection[str]) -> EncodedTexts:
        """What these sides read, of the texts of all processes, in order of rank; the rest as it is."""
        gathered: dict[str, Any] = {}
        for name in [name for side in sides for name in SCORED_BY[side]]:
            own = getattr(self, name)
            gathered[name] = gather(own, ranks) if isinstance(own, Tensor) else gather_array(own, ranks)
        return replace(self, **gathered)

    @staticmethod
    def concatenate(parts: Sequence[EncodedTexts], order: Int64 | None = None) -> EncodedTexts:
        """The texts of all parts, padded to the longest; `order` int64[B] says which comes at each place."""
        order = np.arange(sum(map(len, parts))) if order is None else order
        rows = on_device(order, parts[0].dense.device)
        dense, lexical, vectors, *scores = (
            torch.cat(_widened(column)).index_select(0, rows)
            for column in zip(*(part.representations for part in parts), strict=True)
        )
        return EncodedTexts(
            dense,
            lexical,
            _joined([part.token_ids for part in parts])[order],
            _joined([part.is_term for part in parts])[order],
            vectors,
            _joined([part.vector_mask for part in parts])[order],
            next(iter(scores), None),
        )


def _widened(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors [B, L, …] padded by zeros to the widest in their second dimension."""
    width = max(tensor.shape[1] for tensor in tensors)
    return [
        functional.pad(tensor, (0, 0) * (tensor.ndim - 2) + (0, width - tensor.shape[1]))
        if tensor.shape[1] < width
        else tensor
        for tensor in tensors
    ]


def _joined(arrays: Sequence[npt.NDArray[Value]]) -> npt.NDArray[Value]:
    """Arrays [B, L], padded by zeros to the widest, one below the other."""
    width = max(array.shape[1] for array in arrays)
    return np.concatenate([np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays])
