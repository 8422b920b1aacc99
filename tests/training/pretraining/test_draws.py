"""Draws depend on seed, text and place alone, and are spread as random numbers are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.training.pretraining.draws import Draws, reaches, uniform


def draws(texts: list[int], seed: int = 3) -> Draws:
    return Draws.of(seed, np.array(texts), "cpu")


def correlation(one: Tensor, other: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])


def test_neither_other_texts_nor_padding_nor_order_matter() -> None:
    together = draws([4, 9, 2]).of_positions(50, 1)
    assert torch.equal(draws([9]).of_positions(7, 1)[0], together[1, :7])
    assert torch.equal(draws([2, 4]).of_positions(50, 1), together[[2, 0]])
    pairs = draws([4, 9]).of_pairs(20, 0, slice(0, 20))
    assert torch.equal(draws([9]).of_pairs(5, 0, slice(0, 5))[0], pairs[1, :5, :5])
    assert torch.equal(draws([4, 9]).of_pairs(20, 0, slice(7, 11)), pairs[:, 7:11])


def test_numbers_are_spread_evenly() -> None:
    numbers = uniform(draws(list(range(2000))).of_positions(100, 0))
    assert 0 <= float(numbers.min()) < 1e-4
    assert 1 - 1e-4 < float(numbers.max()) < 1
    counts = torch.histc(numbers, bins=50, min=0, max=1)
    # χ² of 49 degrees of freedom: below 100 but in one of 40,000 cases.
    assert float(((counts - 4000) ** 2 / 4000).sum()) < 100


@pytest.mark.parametrize("apart", ["place", "text", "stream", "seed"])
def test_neighbours_do_not_depend_on_one_another(apart: str) -> None:
    texts = list(range(300))
    numbers = uniform(draws(texts).of_positions(300, 0))
    one, other = {
        "place": (numbers[:, :-1], numbers[:, 1:]),
        "text": (numbers[:-1], numbers[1:]),
        "stream": (numbers, uniform(draws(texts).of_positions(300, 1))),
        "seed": (numbers, uniform(draws(texts, 4).of_positions(300, 0))),
    }[apart]
    assert abs(correlation(one, other)) < 0.015  # four standard errors and a half


def test_pairs_of_places_do_not_depend_on_one_another() -> None:
    pairs = uniform(draws([1, 2]).of_pairs(300, 0, slice(0, 300)))
    for one, other in (
        (pairs[:, 1:], pairs[:, :-1]),
        (pairs[:, :, 1:], pairs[:, :, :-1]),
        (pairs[0], pairs[1]),
        (pairs, pairs.transpose(1, 2)),
    ):
        assert abs(correlation(one, other)) < 0.015


@pytest.mark.parametrize("share", [0.01, 0.5, 0.7])
def test_a_share_is_what_it_says(share: float) -> None:
    numbers = draws(list(range(500))).of_positions(500, 2)
    assert torch.equal(reaches(numbers, share), uniform(numbers) >= share)
    assert reaches(numbers, share).float().mean().item() == pytest.approx(1 - share, abs=0.004)
