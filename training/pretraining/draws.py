"""Random numbers that depend on a seed, a text and a place alone, drawn where they are needed.

There is no state that one draw takes over from another, so it does not matter in what order, on which device
or in how large a batch they are drawn (a counter-based generator, Salmon et al. 2011). Numbers are mixed by
Wellons' 32-bit hash with two multiplications, which is as unbiased as such a hash is known to be.

Letters in shapes: B texts, L tokens, N of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tercet.models.representations import Int64
from tercet.training.transfer import on_device

FIRST, SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)
VALUES = 1 << 32


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws of B texts. keys: int32[B], of each text its own."""

    keys: Tensor

    @staticmethod
    def of(seed: int, numbers: Int64, device: torch.device | str) -> Draws:
        """seed: from 0 below 2^63; numbers: int64[B], which text each is, from 0 below 2^31."""
        (word,) = np.random.SeedSequence(seed).generate_state(1).view(np.int32).tolist()
        return Draws(_mixed(_mixed(on_device(numbers.astype(np.int32), device)) + word))

    def of_positions(self, length: int, stream: int) -> Tensor:
        """One number for each place of each text, int32[B, L], any as likely; each stream has its own."""
        return _mixed(_mixed(self.keys + stream)[:, None] + self._positions(length))

    def of_pairs(self, length: int, stream: int, rows: slice) -> Tensor:
        """One for each pair of places of each text of which the first is among `rows`, int32[B, N, L]."""
        return _mixed(self.of_positions(length, stream)[:, rows, None] + self._positions(length))

    def _positions(self, length: int) -> Tensor:
        return _mixed(torch.arange(length, dtype=torch.int32, device=self.keys.device))


def uniform(draws: Tensor) -> Tensor:
    """Draws as numbers from 0 below 1, float64."""
    return (draws.double() + VALUES // 2) / VALUES


def reaches(draws: Tensor, share: float) -> Tensor:
    """Which draws, as numbers from 0 below 1, are not below the share, which lies between: bool."""
    return draws >= int(share * VALUES) - VALUES // 2


def _mixed(values: Tensor) -> Tensor:
    """Hashes of int32, in place; products wrap around."""
    shifted = torch.empty_like(values)
    for shift, factor in ((16, FIRST), (15, SECOND), (16, None)):
        torch.bitwise_right_shift(values, shift, out=shifted)
        values.bitwise_xor_(shifted.bitwise_and_((1 << (32 - shift)) - 1))  # the sign is not shifted in
        if factor is not None:
            values.mul_(factor)
    return values
