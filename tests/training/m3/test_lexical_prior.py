"""The prior of lexical weights against BM25 written out, and its loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tercet.models.representations import Float32
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.lexical_prior import LexicalPrior

# Token 4 is rare, token 5 common, tokens 0 to 3 are special.
IDF = np.array([0.0, 0.0, 0.0, 0.0, 4.0, 0.25], np.float32)
IDS = np.array([[2, 4, 5, 4, 3], [2, 5, 3, 0, 0]])
TERMS = np.array([[False, True, True, True, False], [False, True, False, False, False]])


def impact(idf: float, frequency: int, length: int) -> float:
    """BM25 with k1 1.2 and b 0.75 for an average length of 2."""
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / 2))


def encoded(weights: Float32) -> EncodedTexts:
    vectors = torch.zeros(2, 4, 3)
    return EncodedTexts(
        torch.zeros(2, 3), torch.from_numpy(weights), IDS, TERMS, vectors, np.ones((2, 4), np.bool_)
    )


def test_targets_of_a_query_are_roots_of_idf_times_the_frequency() -> None:
    targets = LexicalPrior(IDF, 2.0, 1.0).targets(IDS, TERMS, queries=True)
    expected = np.array([[0.0, 2 * 2.0, 0.5, 2 * 2.0, 0.0], [0.0, 0.5, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(targets, expected, rtol=1e-6)


def test_targets_of_query_and_passage_multiply_to_the_impact_of_bm25() -> None:
    prior = LexicalPrior(IDF, 2.0, 1.0)
    queries = prior.targets(IDS[1:], TERMS[1:], queries=True)
    passages = prior.targets(IDS, TERMS, queries=False)
    # The query "5" holds its one token once, so its own target times a passage's is that token's impact.
    assert float(queries[0, 1] * passages[0, 2]) == pytest.approx(impact(0.25, 1, 3))
    repeated, once, alone = impact(4.0, 2, 3) / 2.0, impact(0.25, 1, 3) / 0.5, impact(0.25, 1, 1) / 0.5
    expected = np.array([[0.0, repeated, once, repeated, 0.0], [0.0, alone, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(passages, expected, rtol=1e-6)


def test_without_idf_all_tokens_count_alike_and_queries_saturate() -> None:
    prior = LexicalPrior(None, 2.0, 1.0)
    once, twice = 1.0, 2 * 2.2 / (2 + 1.2)
    expected = np.array([[0.0, twice, once, twice, 0.0], [0.0, once, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(prior.targets(IDS, TERMS, queries=True), expected, rtol=1e-6)
    passages = prior.targets(IDS, TERMS, queries=False)
    repeated, single, alone = (impact(1.0, n, length) for n, length in ((2, 3), (1, 3), (1, 1)))
    expected = np.array([[0.0, repeated, single, repeated, 0.0], [0.0, alone, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(passages, expected, rtol=1e-6)


@pytest.mark.parametrize("queries", [True, False])
def test_the_scale_multiplies_targets(queries: bool) -> None:
    prior, half = LexicalPrior(IDF, 2.0, 1.0), LexicalPrior(IDF, 2.0, 0.5)
    whole = prior.targets(IDS, TERMS, queries=queries)
    np.testing.assert_allclose(half.targets(IDS, TERMS, queries=queries), whole / 2)


@pytest.mark.parametrize("queries", [True, False])
def test_the_same_token_in_another_text_counts_there_alone(queries: bool) -> None:
    prior = LexicalPrior(IDF, 2.0, 1.0)
    together = prior.targets(IDS, TERMS, queries=queries)
    for row in range(2):
        alone = prior.targets(IDS[row : row + 1], TERMS[row : row + 1], queries=queries)
        np.testing.assert_allclose(together[row : row + 1], alone)


def test_the_loss_is_the_mean_square_over_terms() -> None:
    prior = LexicalPrior(IDF, 2.0, 1.0)
    targets = prior.targets(IDS, TERMS, queries=False)
    assert prior.loss(encoded(targets), queries=False).item() == 0
    assert prior.loss(encoded(targets), queries=True).item() > 0
    apart = prior.loss(encoded(targets + np.float32(0.5) * TERMS), queries=False)
    assert apart.item() == pytest.approx(0.25)
    # Weights of what is no term do not count.
    assert prior.loss(encoded(targets + np.float32(7.0) * ~TERMS), queries=False).item() == 0
    assert math.isfinite(apart.item())
