"""Masked language modelling: which tokens of a padded batch are hidden, and what stands in their place.

Letters in shapes: B texts, L tokens of the longest, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training.pretraining.masking_vocabulary import MaskingVocabulary

IGNORED = -100
"""Label of a token that is not predicted."""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A batch of B texts with tokens hidden.

    ids: int64[B, L]; labels: int64[B, L], the token's own id where it is predicted and `IGNORED` elsewhere;
    mask: int64[B, L], 1 on tokens, padded on the right.
    """

    ids: Tensor
    labels: Tensor
    mask: Tensor

    @property
    def predicted(self) -> int:
        """How many tokens are predicted."""
        return int((self.labels != IGNORED).sum())

    def rows(self, rows: slice) -> MaskedText:
        """Some of the texts, for a sub-batch."""
        return MaskedText(self.ids[rows], self.labels[rows], self.mask[rows])

    def to(self, device: torch.device | str) -> MaskedText:
        """The same batch on a device."""
        return MaskedText(self.ids.to(device), self.labels.to(device), self.mask.to(device))


def mask_tokens(
    token_ids: Tensor,
    mask: Tensor,
    *,
    ratio: float,
    vocabulary: MaskingVocabulary,
    generator: torch.Generator,
    random: float = 0.1,
    kept: float = 0.1,
) -> MaskedText:
    """Hides `ratio` of each text's tokens, whole words at a time.

    token_ids, mask: int64[B, L] on the CPU. random, kept: of the hidden tokens these shares get a random
    token, or stay as they are (Devlin et al. 2019, section 3.1); the others become the mask token.

    The released code of RetroMAE and of Condenser (staoxiao/RetroMAE `src/pretrain/data.py`, luyug/Condenser
    `data.py`) takes words in random order, too, replaces with those same shares, and passes over a word that
    would exceed the ratio, which in a text of one long word leaves nothing hidden. Here that word is cut
    instead. So of n tokens that are not special, exactly round(n·ratio) are hidden, and of two or more at
    least one is and at least one is not.

    Each real token takes the same number of draws, so padding does not change them.
    Raises ValueError for a ratio or shares out of range.
    """
    _require_shares(ratio, random, kept)
    present = mask.bool()
    content = present & ~vocabulary.special[token_ids]
    draws = torch.zeros(*mask.shape, 3, dtype=torch.float64)
    draws[present] = torch.rand(int(present.sum()), 3, dtype=torch.float64, generator=generator)

    hidden = _first_words(draws[..., 0], _word_starts(token_ids, content, vocabulary), content, ratio)
    ids = token_ids.clone()
    ids[hidden & (draws[..., 1] < 1 - kept)] = vocabulary.mask_id
    swapped = hidden & (draws[..., 1] < random)
    ordinary = (~vocabulary.special).nonzero().squeeze(1)
    ids[swapped] = ordinary[(draws[..., 2][swapped] * len(ordinary)).long()]
    return MaskedText(ids, token_ids.masked_fill(~hidden, IGNORED), mask)


def content_labels(token_ids: Tensor, mask: Tensor, vocabulary: MaskingVocabulary) -> Tensor:
    """Labels int64[B, L] by which all tokens are predicted but special ones; arguments as `mask_tokens`."""
    return token_ids.masked_fill(~mask.bool() | vocabulary.special[token_ids], IGNORED)


def _word_starts(token_ids: Tensor, content: Tensor, vocabulary: MaskingVocabulary) -> Tensor:
    """Where words begin, bool[B, L]; after a special token, a piece that continues a word begins one."""
    follows = torch.zeros_like(content)
    follows[:, 1:] = content[:, :-1]
    return content & ~(vocabulary.continues[token_ids] & follows)


def _first_words(keys: Tensor, starts: Tensor, content: Tensor, ratio: float) -> Tensor:
    """The first tokens of each text when its words are ordered by key, bool[B, L].

    keys: float64[B, L], read where a word starts; content: bool[B, L], tokens that may be chosen.
    """
    places = torch.arange(content.shape[1]).expand(content.shape)
    first = places.masked_fill(~starts, 0).cummax(dim=1).values
    order = keys.gather(1, first).masked_fill(~content, 2.0).argsort(dim=1, stable=True)
    rank = torch.zeros_like(order).scatter_(1, order, places)
    tokens = content.sum(dim=1)
    # Fewer than two tokens leave no room between at least one hidden and at least one shown.
    count = (tokens * ratio + 0.5).long().clamp(min=1).minimum(tokens - 1)
    return rank < count.unsqueeze(1)


def _require_shares(ratio: float, random: float, kept: float) -> None:
    if not 0 < ratio < 1:
        raise ValueError(f"the masking ratio is {ratio}; it must lie between 0 and 1, as 0.15 or 0.3")
    if random < 0 or kept < 0 or random + kept > 1:
        raise ValueError(f"shares random={random} and kept={kept} must not be negative, and at most 1 in sum")
