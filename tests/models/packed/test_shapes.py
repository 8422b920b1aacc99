"""Sizes of passes, by hand."""

import numpy as np
import pytest

from tercet.models.packed.shapes import Shape, budget_tokens, bytes_per_token


@pytest.mark.parametrize(
    ("tokens", "rounded"), [(1, 64), (64, 64), (65, 72), (128, 128), (129, 144), (1000, 1024), (1025, 1152)]
)
def test_sizes_are_shared_with_an_eighth_of_padding_at_most(tokens: int, rounded: int) -> None:
    assert Shape(tokens, 5, 33).rounded() == Shape(rounded, 8, 64)
    assert tokens <= 64 or rounded < 1.125 * tokens + 1


def test_no_text_is_cut_by_rounding() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, 200)
    for count in range(1, 200):
        exact = Shape.of(lengths[:count])
        shared = exact.rounded()
        assert shared.tokens >= exact.tokens
        assert shared.texts >= exact.texts == count
        assert shared.longest >= exact.longest
        assert shared.rounded() == shared


def test_the_budget_follows_free_memory() -> None:
    # BGE-M3 in bfloat16: 2 · (4 · 1024 + 2 · 4096) + 4 · (1024 + 3 · 1024) bytes
    assert bytes_per_token(1024, 4096, 1024, 2) == 24_576 + 16_384
    assert budget_tokens(80 << 30, 40_960, 32_768) == 32_768
    assert budget_tokens(1 << 30, 40_960, 32_768) == 13_107
    assert budget_tokens(1 << 20, 40_960, 32_768) == 1024
