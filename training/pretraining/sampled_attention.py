"""Which tokens each position of a text attends to in RetroMAE's enhanced decoding, drawn where it is needed.

Xiao et al. 2022, arXiv 2205.12035, section 3.3. A text of L tokens has L² pairs of positions, so long texts
are drawn some positions at a time. Letters in shapes: B texts, L tokens, N positions of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tercet.training.pretraining.draws import Draws, reaches
from tercet.training.pretraining.masking import PaddedTexts

PAIRS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""Pairs of positions drawn at one time. On a CPU their draws are 32 MiB, and attention weights of 12 heads,
where the kernel holds them, 192 MiB of float32.
"""


@dataclass(frozen=True, slots=True)
class SampledAttention:
    """The sample of B texts. present: bool[B, L], true on tokens; ratio: of the tokens that are hidden from
    each position.
    """

    draws: Draws
    present: Tensor
    ratio: float

    @staticmethod
    def of(texts: PaddedTexts, ratio: float, seed: int) -> SampledAttention:
        """What a text draws depends on its number and the seed alone. Raises ValueError for a ratio out of
        range.
        """
        if not 0 < ratio < 1:
            raise ValueError(
                f"the decoder's masking ratio is {ratio}; it must lie between 0 and 1, as 0.5 or 0.7"
            )
        return SampledAttention(Draws.of(seed, texts.numbers, texts.device), texts.mask.bool(), ratio)

    def rows(self, rows: slice) -> SampledAttention:
        """Some of the texts, for a sub-batch."""
        return SampledAttention(Draws(self.draws.keys[rows]), self.present[rows], self.ratio)

    def blocks(self) -> list[slice]:
        """All positions in as many blocks as bounded memory takes, of at least one position each."""
        texts, length = self.present.shape
        size = max(1, PAIRS_AT_ONCE[self.present.device.type] // (texts * length))
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def visible(self, block: slice) -> Tensor:
        """What the positions of a block attend to, bool[B, N, L] (equation 7 of the paper).

        Position 0, the text's embedding, is visible to all, also to itself and to padding, which keeps every
        softmax finite and gives away nothing, since neither is predicted. Any other position never sees
        itself, and sees each other token with probability 1 − ratio, drawn for each position anew. The paper
        draws single tokens; the released code draws from at most 256 sets of whole words.
        """
        length = self.present.shape[1]
        visible = reaches(self.draws.of_pairs(length, 0, block), self.ratio)
        visible &= self.present[:, block].unsqueeze(2) & self.present.unsqueeze(1)
        visible.diagonal(offset=block.start, dim1=1, dim2=2).fill_(False)
        visible[:, :, 0] = True
        return visible
