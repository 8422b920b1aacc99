"""Masking: exact counts, whole words, shares of replacements, and draws that padding leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.training.pretraining.masking import (
    IGNORED,
    MaskedText,
    PaddedTexts,
    content_predicted,
    mask_tokens,
)
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary

CLS, SEP, PAD, MASK = 0, 1, 2, 3
FIRST_WORD, FIRST_CONTINUING, SIZE = 4, 20, 40
VOCABULARY = MaskingVocabulary.of_arrays(
    MASK, np.arange(SIZE) < FIRST_WORD, np.arange(SIZE) >= FIRST_CONTINUING
)


def padded(*contents: list[int]) -> tuple[Tensor, Tensor]:
    """Ids and mask of texts given by their content."""
    rows = [[CLS, *content, SEP] for content in contents]
    length = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (length - len(row)) for row in rows])
    return ids, (ids != PAD).long()


def texts_of(ids: Tensor, mask: Tensor, first: int = 0) -> PaddedTexts:
    """The texts, numbered from `first` on."""
    return PaddedTexts(
        ids, mask, (ids >= FIRST_WORD).sum(1).numpy(), first + np.arange(len(ids)), mask.sum(1).numpy()
    )


def masked(
    ids: Tensor, mask: Tensor, seed: int = 1, ratio: float = 0.3, first: int = 0, **shares: float
) -> MaskedText:
    return mask_tokens(texts_of(ids, mask, first), ratio=ratio, vocabulary=VOCABULARY, seed=seed, **shares)


def hidden(text: MaskedText) -> Tensor:
    return text.labels != IGNORED


@pytest.mark.parametrize("ratio", [0.15, 0.3, 0.5, 0.7, 0.99])
def test_the_share_of_hidden_tokens_is_exact(ratio: float) -> None:
    lengths = [1, 2, 3, 10, 20]
    ids, mask = padded(*[[4 + i % 16 for i in range(length)] for length in lengths])
    # round(n · ratio), at least one hidden and one shown; a single token stays.
    expected = [0 if n == 1 else min(max(1, int(n * ratio + 0.5)), n - 1) for n in lengths]
    text = masked(ids, mask, ratio=ratio)
    assert hidden(text).sum(1).tolist() == text.counts.tolist() == expected


def test_special_tokens_and_padding_are_never_hidden_and_labels_are_the_text() -> None:
    ids, mask = padded([5, 6, 7, 8], [9, 25])
    for seed in range(50):
        text = masked(ids, mask, seed)
        assert not hidden(text)[ids < FIRST_WORD].any()
        assert torch.equal(text.labels[hidden(text)], ids[hidden(text)])
        assert torch.equal(text.ids[~hidden(text)], ids[~hidden(text)])


def test_words_are_hidden_whole_but_for_the_last() -> None:
    # Words of 3, 1, 2, 3, 1 and 2 pieces; of 12 tokens 6 are hidden.
    content = [5, 20, 21, 6, 7, 22, 8, 23, 24, 9, 10, 25]
    words = [[1, 2, 3], [4], [5, 6], [7, 8, 9], [10], [11, 12]]
    ids, mask = padded(content)
    cut_in_all = 0
    for seed in range(100):
        chosen = hidden(masked(ids, mask, seed, ratio=0.5))[0]
        counts = [int(chosen[word].sum()) for word in words]
        cut = [count for count, word in zip(counts, words, strict=True) if 0 < count < len(word)]
        assert len(cut) <= 1
        cut_in_all += len(cut)
    assert cut_in_all < 60


def test_one_long_word_is_cut() -> None:
    ids, mask = padded([5, 20, 21, 22, 23, 24, 25, 26, 27, 28])
    assert hidden(masked(ids, mask))[0].nonzero().squeeze(1).tolist() == [1, 2, 3]


def test_a_continuing_piece_after_a_special_token_begins_a_word() -> None:
    ids, mask = padded([20, 5, 21, 6])
    firsts = {int(hidden(masked(ids, mask, seed, ratio=0.25))[0].nonzero()[0, 0]) for seed in range(60)}
    assert firsts == {1, 2, 4}


def test_every_word_has_the_same_chance() -> None:
    ids, mask = padded(*[[4 + i for i in range(10)]] * 2000)
    shares = hidden(masked(ids, mask)).float().mean(0)[1:-1]
    assert shares.sub(0.3).abs().max() < 0.04


def test_replacements_have_their_shares() -> None:
    ids, mask = padded(*[[4] * 20] * 1000)
    text = masked(ids, mask, ratio=0.5)
    new = text.ids[hidden(text)]
    assert (new == MASK).float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (new == 4).float().mean().item() == pytest.approx(0.1 + 0.1 / 36, abs=0.02)
    drawn = new[(new != MASK) & (new != 4)]
    assert set(drawn.tolist()) == set(range(5, SIZE))


def test_all_hidden_tokens_can_become_the_mask_token() -> None:
    ids, mask = padded(*[[5, 6, 7, 8]] * 50)
    text = masked(ids, mask, ratio=0.5, random=0.0, kept=0.0)
    assert (text.ids[hidden(text)] == MASK).all()


def test_padding_does_not_change_what_is_drawn() -> None:
    contents = [[5, 20, 6, 7], [8, 9, 21, 22, 10, 11, 12, 13], [14, 15]]
    ids, mask = padded(*contents)
    together = masked(ids, mask, seed=9)
    for row, content in enumerate(contents):
        alone = masked(*padded(content), seed=9, first=row)
        length = len(content) + 2
        assert torch.equal(together.ids[row, :length], alone.ids[0])
        assert torch.equal(together.labels[row, :length], alone.labels[0])
        assert (together.labels[row, length:] == IGNORED).all()
        assert (together.ids[row, length:] == PAD).all()


def test_the_seed_decides() -> None:
    ids, mask = padded(list(range(4, 20)))
    assert torch.equal(masked(ids, mask, 3).ids, masked(ids, mask, 3).ids)
    assert not torch.equal(masked(ids, mask, 3).ids, masked(ids, mask, 4).ids)


def test_what_is_predicted_of_the_content_are_all_tokens_but_special_ones() -> None:
    ids, mask = padded([5, 6], [7])
    text = content_predicted(texts_of(ids, mask), VOCABULARY)
    assert text.labels.tolist() == [[IGNORED, 5, 6, IGNORED], [IGNORED, 7, IGNORED, IGNORED]]
    assert text.counts.tolist() == [2, 1]
    assert torch.equal(text.ids, ids)


def test_rows_and_the_count_of_predicted_tokens() -> None:
    ids, mask = padded(list(range(4, 14)), list(range(4, 10)))
    text = masked(ids, mask)
    assert text.predicted == 3 + 2
    assert text.rows(slice(1, 2)).predicted == 2


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.1, 30])
def test_a_ratio_out_of_range_is_named(ratio: float) -> None:
    with pytest.raises(ValueError, match="masking ratio"):
        masked(*padded([5, 6]), ratio=ratio)


def test_shares_above_one_are_named() -> None:
    with pytest.raises(ValueError, match="shares"):
        masked(*padded([5, 6]), random=0.8, kept=0.3)
