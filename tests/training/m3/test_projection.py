"""The projection that ranks as the states do: better than where it started, and the same each time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tercet.training.m3.initial_heads import whitened_projection
from tercet.training.m3.projection import distilled_projection

WIDTH, DIMENSION, TEXTS, STEPS = 32, 6, 80, 200


def made() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Texts of 3 to 8 tokens, all with a direction in common, and queries of three of their tokens, moved."""
    generator = torch.Generator().manual_seed(2)
    common, spread = torch.randn(WIDTH, generator=generator), torch.logspace(0, -1, WIDTH)
    lengths: list[int] = torch.randint(3, 9, (TEXTS,), generator=generator).tolist()
    passages = [common + torch.randn(length, WIDTH, generator=generator) * spread for length in lengths]
    queries = [
        passage[:3] + 0.6 * torch.randn(3, WIDTH, generator=generator) * spread for passage in passages
    ]
    return queries, passages


def right(
    queries: list[torch.Tensor], passages: list[torch.Tensor], weight: np.ndarray, bias: np.ndarray
) -> float:
    """Share of the queries whose own passage has the largest late interaction."""
    head = torch.from_numpy(weight), torch.from_numpy(bias)
    project = [
        [torch.nn.functional.normalize(states @ head[0].T + head[1], dim=-1) for states in texts]
        for texts in (queries, passages)
    ]
    best = [
        int(torch.stack([(query @ passage.T).amax(dim=1).mean() for passage in project[1]]).argmax())
        for query in project[0]
    ]
    return float(np.mean([found == place for place, found in enumerate(best)]))


@pytest.mark.slow
def test_it_finds_what_the_states_find() -> None:
    queries, passages = made()
    nothing = np.zeros(DIMENSION, np.float32)
    start = whitened_projection(torch.cat(passages).numpy(), DIMENSION, 0.0, 1)
    weight, bias = distilled_projection(queries, passages, start, STEPS, 7)
    assert weight.shape == (DIMENSION, WIDTH)
    assert weight.dtype == bias.dtype == np.float32
    assert right(queries, passages, np.eye(WIDTH, dtype=np.float32), np.zeros(WIDTH, np.float32)) == 1
    assert right(queries, passages, start, nothing) < 0.8
    assert right(queries, passages, weight, bias) > 0.9
    again = distilled_projection(queries, passages, start, STEPS, 7)
    np.testing.assert_array_equal(weight, again[0])
