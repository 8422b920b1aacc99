"""Learning which adapter a text belongs to, from dense vectors of the base encoder; NumPy, no randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.models.adapters.routers import LearnedSettings, Router, RouterBase, SoftSettings
from tercet.models.representations import Float32
from tercet.training.errors import TrainingDataError

Float64 = npt.NDArray[np.float64]

# Every fifth text is held out, so that a file in any order gives a fair sample.
HELD_OUT_EVERY = 5
STEPS = 500
PENALTY = 1e-4


@dataclass(frozen=True, slots=True)
class RouterReport:
    """How a router does on texts that it was not learned on.

    accuracy: mean over the adapters of `accuracies`, each the share of its held-out texts that it gets;
    texts: learned from and held out, in all.
    """

    accuracy: float
    accuracies: Sequence[float]
    learned: int
    held_out: int


def learn_router(
    settings: LearnedSettings, base: RouterBase, groups: Sequence[Float32]
) -> tuple[Router, RouterReport]:
    """A router and its accuracy on the texts held out.

    groups: float32[N_k, D] for each adapter of the settings, the unit dense vectors of its texts.
    Raises TrainingDataError where an adapter has too few texts.
    """
    for name, group in zip(settings.adapters, groups, strict=True):
        if len(group) < HELD_OUT_EVERY:
            raise TrainingDataError(
                f"{'the base' if name is None else name} has {len(group)} texts; a router needs at least "
                f"{HELD_OUT_EVERY} for each adapter, of which one in {HELD_OUT_EVERY} is held out"
            )
    held_out = [group[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] for group in groups]
    kept = [np.delete(group, np.s_[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY], axis=0) for group in groups]
    scores = settings.scores if isinstance(settings, SoftSettings) else settings.kind
    arrays: Mapping[str, Float32]
    if scores == "centroid":
        arrays = {"centroids": centroids(kept)}
    else:
        weight, bias = fit_gate(kept)
        arrays = {"weight": weight, "bias": bias}
    router = Router(settings, base, arrays)
    accuracies = [_share(router, group, k) for k, group in enumerate(held_out)]
    report = RouterReport(
        float(np.mean(accuracies)), accuracies, sum(map(len, kept)), sum(map(len, held_out))
    )
    return router, report


def centroids(groups: Sequence[Float32]) -> Float32:
    """The normalized mean float32[K, D] of each group float32[N_k, D]."""
    means = np.stack([group.astype(np.float64).mean(0) for group in groups])
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def fit_gate(
    groups: Sequence[Float32], steps: int = STEPS, penalty: float = PENALTY
) -> tuple[Float32, Float32]:
    """Weights float32[K, D] and biases float32[K] of multinomial logistic regression on unit vectors.

    All groups count alike, however many texts they have. The loss is the mean cross-entropy plus
    penalty / 2 · ‖W, b‖², minimized by Nesterov's accelerated gradient over the full batch.
    """
    x = np.concatenate([np.c_[group.astype(np.float64), np.ones(len(group))] for group in groups])
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    shares = np.concatenate([np.full(len(group), 1 / (len(groups) * len(group))) for group in groups])
    # Rows have squared norm 2 and the softmax a curvature of at most 1/2, so the gradient's Lipschitz
    # constant is at most 1 + penalty, and no step size has to be searched for.
    rate = 1 / (1 + penalty)
    momentum = (1 - np.sqrt(penalty * rate)) / (1 + np.sqrt(penalty * rate))
    w = ahead = np.zeros((len(groups), x.shape[1]))
    for _ in range(steps):
        stepped = ahead - rate * _gradient(ahead, x, labels, shares, penalty)
        ahead = stepped + momentum * (stepped - w)
        w = stepped
    return w[:, :-1].astype(np.float32), w[:, -1].astype(np.float32)


def _gradient(w: Float64, x: Float64, labels: npt.NDArray[Any], shares: Float64, penalty: float) -> Float64:
    """float64[K, D + 1] of the weighted cross-entropy of x float64[N, D + 1] and the penalty."""
    scores = x @ w.T
    errors = np.exp(scores - scores.max(1, keepdims=True))
    errors /= errors.sum(1, keepdims=True)
    errors[np.arange(len(x)), labels] -= 1
    return np.asarray((errors * shares[:, None]).T @ x + penalty * w)


def _share(router: Router, group: Float32, adapter: int) -> float:
    """Share of a group's texts for which the router's largest weight is on an adapter."""
    wanted = router.settings.adapters[adapter]
    routes = router.routes(group)
    hits = [route.adapters[int(np.argmax(route.weights))] == wanted for route in routes]
    return sum(hits) / len(hits)
