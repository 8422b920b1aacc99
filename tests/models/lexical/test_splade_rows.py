"""Weights over a vocabulary, joined from parts, by hand."""

import numpy as np
import pytest

from tercet.models.formats.splade import SpladeSettings
from tercet.models.lexical import splade_rows as module
from tercet.models.lexical.splade_rows import splade_rows

# One text of three tokens and one of two, over four terms.
LOGITS = np.array(
    [
        [[1, -2, 0, 3], [2, -1, 0, 0], [0, -5, 0, 1]],
        [[0, 4, -1, 0], [1, 1, -3, 0], [9, 9, 9, 9]],
    ],
    np.float32,
)
LENGTHS = np.array([3, 2])


def weights(settings: SpladeSettings, sizes: list[tuple[int, int]]) -> list[dict[int, float]]:
    """Of each text its terms; sizes: told how many texts and tokens are asked for at a time."""
    mask = np.arange(3) < LENGTHS[:, None]

    def join(texts: slice, tokens: slice) -> np.ndarray:
        positive = np.maximum(LOGITS * mask[..., None], 0)[texts, tokens]
        sizes.append(positive.shape[:2])
        if settings.pooling == "max":
            return positive.max(1)
        activated = np.log1p(positive)
        return (np.log1p(activated) if settings.activation == "log1p_relu" else activated).sum(1)

    rows = splade_rows(LENGTHS, 4, settings, join)
    return [dict(zip(*(part.tolist() for part in rows.row(text)), strict=True)) for text in range(2)]


@pytest.mark.parametrize(("tokens", "parts"), [(64, 1), (2, 3), (1, 5)])
def test_each_way_by_hand(tokens: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of tokens whose logits are made at a time, which is kept to."""
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    monkeypatch.setattr(module, "LEAST_TOKENS", tokens)
    log = np.log1p
    by_hand = {
        ("max", "relu"): [{0: log(2), 3: log(3)}, {0: log(1), 1: log(4)}],
        ("max", "log1p_relu"): [{0: log(log(2)), 3: log(log(3))}, {0: log(log(1)), 1: log(log(4))}],
        ("sum", "relu"): [{0: log(1) + log(2), 3: log(3) + log(1)}, {0: log(1), 1: log(4) + log(1)}],
        ("sum", "log1p_relu"): [
            {0: log(log(1)) + log(log(2)), 3: log(log(3)) + log(log(1))},
            {0: log(log(1)), 1: log(log(4)) + log(log(1))},
        ],
    }
    for (pooling, activation), terms in by_hand.items():
        sizes: list[tuple[int, int]] = []
        found = weights(SpladeSettings(pooling, activation), sizes)  # type: ignore[arg-type]
        assert [list(one) for one in found] == [list(one) for one in terms]
        for one, other in zip(found, terms, strict=True):
            assert one == pytest.approx(other, rel=1e-6)
        assert all(texts * length <= tokens for texts, length in sizes)
        assert len(sizes) == parts


def test_the_largest_alone() -> None:
    found = weights(SpladeSettings(max_terms=1), [])
    assert [list(one) for one in found] == [[3], [1]]
