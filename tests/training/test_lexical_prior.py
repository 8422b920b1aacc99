"""The prior of lexical weights against BM25 written out, and its loss."""

from __future__ import annotations

import math

import pytest
import torch

from training.encoded_texts import EncodedTexts
from training.lexical_prior import LexicalPrior

# Token 4 is rare, token 5 common, tokens 0 to 3 are special.
IDF = torch.tensor([0.0, 0.0, 0.0, 0.0, 4.0, 0.25])
IDS = torch.tensor([[2, 4, 5, 4, 3], [2, 5, 3, 0, 0]])
TERMS = torch.tensor([[False, True, True, True, False], [False, True, False, False, False]])


def impact(idf: float, frequency: int, length: int) -> float:
    """BM25 with k1 1.2 and b 0.75 for an average length of 2."""
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / 2))


def encoded(weights: torch.Tensor) -> EncodedTexts:
    vectors = torch.zeros(2, 4, 3)
    return EncodedTexts(torch.zeros(2, 3), weights, IDS, TERMS, vectors, torch.ones(2, 4, dtype=torch.bool))


def test_a_target_times_itself_is_the_impact_of_bm25() -> None:
    targets = LexicalPrior(IDF, 2.0, 1.0).targets(IDS, TERMS)
    repeated, once, alone = impact(4.0, 2, 3), impact(0.25, 1, 3), impact(0.25, 1, 1)
    expected = torch.tensor([[0.0, repeated, once, repeated, 0.0], [0.0, alone, 0.0, 0.0, 0.0]]).sqrt()
    torch.testing.assert_close(targets, expected)


def test_the_scale_multiplies_targets() -> None:
    prior, half = LexicalPrior(IDF, 2.0, 1.0), LexicalPrior(IDF, 2.0, 0.5)
    torch.testing.assert_close(half.targets(IDS, TERMS), prior.targets(IDS, TERMS) / 2)


def test_the_same_token_in_another_text_counts_there_alone() -> None:
    prior = LexicalPrior(IDF, 2.0, 1.0)
    together = prior.targets(IDS, TERMS)
    for row in range(2):
        torch.testing.assert_close(
            together[row : row + 1], prior.targets(IDS[row : row + 1], TERMS[row : row + 1])
        )


def test_the_loss_is_the_mean_square_over_terms() -> None:
    prior = LexicalPrior(IDF, 2.0, 1.0)
    targets = prior.targets(IDS, TERMS)
    assert prior.loss(encoded(targets)).item() == 0
    apart = prior.loss(encoded(targets + 0.5 * TERMS))
    assert apart.item() == pytest.approx(0.25)
    # Weights of what is no term do not count.
    assert prior.loss(encoded(targets + 7.0 * ~TERMS)).item() == 0
    assert math.isfinite(apart.item())
