"""AdamW over the body and what trains beside it, and the learning rate of every step."""

from __future__ import annotations

import math

import torch
from torch import nn

from tercet.training.settings.optimization import HeadsOptimization, OptimizationSettings

LEAST_DIMENSIONS_DECAYED = 2
# PEFT's name of the scales of (IA)³, which start at 1: decay would draw them, and what they scale, to 0.
SCALES = "ia3_l"


def make_optimizer(model: nn.Module, settings: OptimizationSettings) -> torch.optim.AdamW:
    """AdamW; biases and normalization, which have one dimension, get no weight decay, nor do (IA)³'s scales.

    Each group's `peak` is its largest learning rate, `first_step` the step from which it trains.
    """
    own = settings.heads_learning_rate if isinstance(settings, HeadsOptimization) else None
    of_heads = (own or settings.learning_rate, 0)
    of_body = (settings.learning_rate, first_step_of_body(settings))
    groups: dict[tuple[float, int, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decays = parameter.ndim >= LEAST_DIMENSIONS_DECAYED and SCALES not in name
            decay = settings.weight_decay if decays else 0.0
            key = (*(of_body if in_body(name) else of_heads), decay)
            groups.setdefault(key, []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": parameters, "lr": rate, "peak": rate, "first_step": first, "weight_decay": decay}
            for (rate, first, decay), parameters in groups.items()
        ],
        fused=True,  # one pass over all; and float16 need not wait to hear whether a gradient overflowed
    )


def in_body(name: str) -> bool:
    """Whether a model's parameter is the body's; all others, of heads and decoders, begin earlier."""
    return name.startswith("body.")


def first_step_of_body(settings: OptimizationSettings) -> int:
    """The step from which the body trains, counted from 0."""
    return settings.head_warmup_steps if isinstance(settings, HeadsOptimization) else 0


def set_rates(
    optimizer: torch.optim.Optimizer, step: int, steps: int, settings: OptimizationSettings
) -> None:
    """Gives each group its learning rate at a step, counted from 0: it warms up from where it trains on."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * rate_factor(step, group["first_step"], steps, settings)


def rate_factor(step: int, first: int, steps: int, settings: OptimizationSettings) -> float:
    """Share of the largest learning rate at a step of what trains from step `first` to the end."""
    done, length = step - first, steps - first
    if done < 0:
        return 0.0
    warm = max(1, round(settings.warmup * length))
    if done < warm:
        return (done + 1) / warm
    if settings.decay == "none":
        return 1.0
    falling = (done - warm) / max(1, length - warm)
    return 1 - falling if settings.decay == "linear" else (1 + math.cos(math.pi * falling)) / 2
