"""A projection of token states under which late interaction ranks as under the states themselves.

A body's last states, taken as they are, often rank better than a projection to fewer dimensions that was
fitted to labels: what tells tokens apart is spread over all directions. So the projection learns, from texts
alone, to give queries the same order of passages, and a query's token the same order of those that hold its
best match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tercet.models.representations import Float32, Int64
from tercet.training.m3.losses import distillation_loss
from tercet.training.m3.max_sim import MaxSim

PAIRS_AT_ONCE = 48
OTHER_PASSAGES = 48
LEARNING_RATE = 3e-3
WARM_UP = 30
# Scores are means over a query's tokens, and so closer together than those of one token. Of the states they
# are closer than of what has fewer dimensions.
OF_QUERIES, OF_TOKENS = (0.02, 0.01), (0.04, 0.02)

States = Sequence[Tensor]
"""Of each text the states float[L, D] of its tokens without the first."""


def distilled_projection(
    queries: States, passages: States, weight: Float32, steps: int, seed: int
) -> tuple[Float32, Float32]:
    """Weight float32[C, D] and bias float32[C] of a projection that starts from `weight`.

    queries and passages: as many; the passage at a query's place is related to it.
    """
    device = passages[0].device
    projection = torch.nn.Linear(weight.shape[1], weight.shape[0], device=device)
    with torch.no_grad():
        projection.weight.copy_(torch.from_numpy(weight))
        mean = torch.cat([states.float() for states in passages[:OTHER_PASSAGES]]).mean(dim=0)
        projection.bias.copy_(-projection.weight @ mean)
    optimizer = torch.optim.AdamW(projection.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    generator = np.random.default_rng(seed)
    for step in range(steps):
        drawn = generator.permutation(len(passages))[: PAIRS_AT_ONCE + OTHER_PASSAGES]
        loss = _loss(
            projection, [queries[row] for row in drawn[:PAIRS_AT_ONCE]], [passages[row] for row in drawn]
        )
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / WARM_UP) * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
    learnt: Float32 = projection.weight.detach().cpu().numpy().copy()
    return learnt, projection.bias.detach().cpu().numpy().copy()


def _loss(projection: torch.nn.Module, queries: States, passages: States) -> Tensor:
    """Cross entropy of the states' rankings and the projection's, by query and by token."""
    lengths = np.array([len(states) for states in passages])
    query_states, passage_states = (
        torch.cat([states.float() for states in texts]) for texts in (queries, passages)
    )
    taught, projected = (
        _best(query_states, passage_states, lengths),
        _best(projection(query_states), projection(passage_states), lengths),
    )
    by_query = _means(projected, queries), _means(taught, queries)
    of_queries = distillation_loss(*by_query, torch.ones_like(by_query[0], dtype=torch.bool), *OF_QUERIES)
    return of_queries + distillation_loss(
        projected, taught, torch.ones_like(projected, dtype=torch.bool), *OF_TOKENS
    )


def _best(tokens: Tensor, vectors: Tensor, lengths: Int64) -> Tensor:
    """The largest cosine float32[T, N] of each token with a vector of each passage."""
    unit = functional.normalize(tokens, dim=-1), functional.normalize(vectors, dim=-1)
    best: Tensor = MaxSim.apply(*unit, lengths)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return best


def _means(scores: Tensor, queries: States) -> Tensor:
    """Means float32[B, N] over the tokens of each query of scores float32[T, N]."""
    parts: list[Tensor] = list(scores.split([len(states) for states in queries]))  # type: ignore[no-untyped-call]  # untyped
    return torch.stack([part.mean(dim=0) for part in parts])
