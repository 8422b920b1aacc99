"""Masked language modelling: which tokens of a padded batch are hidden, and what stands in their place.

Letters in shapes: B texts, L tokens of the longest, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tercet.models.representations import Int64, TokenBatch
from tercet.training.pretraining.draws import Draws, uniform
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.transfer import on_device

IGNORED = -100
"""Label of a token that is not predicted."""


@dataclass(frozen=True, slots=True)
class PaddedTexts:
    """B texts on the device, padded on the right.

    ids: int64[B, L]; mask: int64[B, L], 1 on tokens; content: int64[B] on the host, how many tokens of each
    are not special; numbers: int64[B] on the host, which text of a step each is, by which it draws; lengths:
    int64[B] on the host, tokens of each.
    """

    ids: Tensor
    mask: Tensor
    content: Int64
    numbers: Int64
    lengths: Int64

    @staticmethod
    def of(
        texts: TokenBatch, pad_id: int, vocabulary: MaskingVocabulary, numbers: Int64, device: str
    ) -> PaddedTexts:
        """The texts as they are padded for a pass."""
        ids, mask = texts.padded(pad_id)
        content = (mask.astype(np.bool_) & ~vocabulary.is_special[ids]).sum(axis=1)
        return PaddedTexts(on_device(ids, device), on_device(mask, device), content, numbers, texts.lengths)

    @property
    def device(self) -> torch.device:
        """Where the texts are."""
        return self.ids.device


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A batch of B texts with tokens hidden.

    ids: int64[B, L]; labels: int64[B, L], the token's own id where it is predicted and `IGNORED` elsewhere;
    mask: int64[B, L], 1 on tokens, padded on the right; counts, lengths: int64[B] on the
    host, predicted tokens and all tokens.
    """

    ids: Tensor
    labels: Tensor
    mask: Tensor
    counts: Int64
    lengths: Int64

    @property
    def predicted(self) -> int:
        """How many tokens are predicted."""
        return int(self.counts.sum())

    def rows(self, rows: slice) -> MaskedText:
        """Some of the texts, for a sub-batch."""
        return MaskedText(
            self.ids[rows], self.labels[rows], self.mask[rows], self.counts[rows], self.lengths[rows]
        )


def mask_tokens(
    texts: PaddedTexts,
    *,
    ratio: float,
    vocabulary: MaskingVocabulary,
    seed: int,
    random: float = 0.1,
    kept: float = 0.1,
) -> MaskedText:
    """Hides `ratio` of each text's tokens, whole words at a time.

    seed: of the draws. random, kept: of the hidden tokens these shares get a random token, or stay as they
    are (Devlin et al. 2019, section 3.1); the others become the mask token.

    The released code of RetroMAE and of Condenser (staoxiao/RetroMAE `src/pretrain/data.py`, luyug/Condenser
    `data.py`) takes words in random order, too, replaces with those same shares, and passes over a word that
    would exceed the ratio, which in a text of one long word leaves nothing hidden. Here that word is cut
    instead. So of n tokens that are not special, exactly round(n·ratio) are hidden, and of two or more at
    least one is and at least one is not.

    What a text draws depends on its number and the seed alone, so padding and other texts do not change it.
    Raises ValueError for a ratio or shares out of range.
    """
    _require_shares(ratio, random, kept)
    content = texts.mask.bool() & ~vocabulary.special[texts.ids]
    # Fewer than two tokens leave no room between at least one hidden and at least one shown.
    counts = np.minimum(np.maximum((texts.content * ratio + 0.5).astype(np.int64), 1), texts.content - 1)
    counts = np.maximum(counts, 0)
    draws = Draws.of(seed, texts.numbers, texts.device)
    order, choice, token = (uniform(draws.of_positions(content.shape[1], stream)) for stream in range(3))
    starts = _word_starts(texts.ids, content, vocabulary)
    hidden = _first_words(order, starts, content, on_device(counts, texts.device))
    drawn = vocabulary.ordinary[(token * len(vocabulary.ordinary)).long()]
    replaced = torch.where(choice < random, drawn, vocabulary.mask_id)
    ids = torch.where(hidden & (choice < 1 - kept), replaced, texts.ids)
    return MaskedText(ids, texts.ids.masked_fill(~hidden, IGNORED), texts.mask, counts, texts.lengths)


def content_predicted(texts: PaddedTexts, vocabulary: MaskingVocabulary) -> MaskedText:
    """The texts as they are; all tokens are predicted but special ones."""
    labels = texts.ids.masked_fill(~texts.mask.bool() | vocabulary.special[texts.ids], IGNORED)
    return MaskedText(texts.ids, labels, texts.mask, texts.content, texts.lengths)


def _word_starts(token_ids: Tensor, content: Tensor, vocabulary: MaskingVocabulary) -> Tensor:
    """Where words begin, bool[B, L]; after a special token, a piece that continues a word begins one."""
    follows = torch.zeros_like(content)
    follows[:, 1:] = content[:, :-1]
    return content & ~(vocabulary.continues[token_ids] & follows)


def _first_words(keys: Tensor, starts: Tensor, content: Tensor, counts: Tensor) -> Tensor:
    """The first `counts` int64[B] tokens of each text when its words are ordered by key, bool[B, L].

    keys: float64[B, L], read where a word starts; content: bool[B, L], tokens that may be chosen.
    """
    positions = torch.arange(content.shape[1], device=content.device).expand(content.shape)
    first = positions.masked_fill(~starts, 0).cummax(dim=1).values
    order = keys.gather(1, first).masked_fill(~content, 2.0).argsort(dim=1, stable=True)
    rank = torch.zeros_like(order).scatter_(1, order, positions)
    return rank < counts.unsqueeze(1)


def _require_shares(ratio: float, random: float, kept: float) -> None:
    if not 0 < ratio < 1:
        raise ValueError(f"the masking ratio is {ratio}; it must lie between 0 and 1, as 0.15 or 0.3")
    if random < 0 or kept < 0 or random + kept > 1:
        raise ValueError(f"shares random={random} and kept={kept} must not be negative, and at most 1 in sum")
