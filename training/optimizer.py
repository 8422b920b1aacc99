"""AdamW over body and heads, and the learning rate of every step."""

from __future__ import annotations

import math

import torch
from torch import nn

from models.torch_encoder import EncoderModel
from training.settings.optimization import FinetuneOptimization, OptimizationSettings

LEAST_DIMENSIONS_DECAYED = 2
# PEFT's name of the scales of (IA)³, which start at 1: decay would draw them, and what they scale, to 0.
SCALES = "ia3_l"


def make_optimizer(model: nn.Module, settings: OptimizationSettings) -> torch.optim.AdamW:
    """AdamW; biases and normalization, which have one dimension, get no weight decay, nor do (IA)³'s scales.

    Each group's `peak` is its largest learning rate.
    """
    heads = set(model.heads.parameters()) if isinstance(model, EncoderModel) else set()
    own = settings.heads_learning_rate if isinstance(settings, FinetuneOptimization) else None
    rates = (settings.learning_rate, own or settings.learning_rate)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decays = parameter.ndim >= LEAST_DIMENSIONS_DECAYED and SCALES not in name
            decay = settings.weight_decay if decays else 0.0
            groups.setdefault((rates[parameter in heads], decay), []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": parameters, "lr": rate, "peak": rate, "weight_decay": decay}
            for (rate, decay), parameters in groups.items()
        ]
    )


def rate_factor(step: int, steps: int, settings: OptimizationSettings) -> float:
    """Share of the largest learning rate at a step, counted from 0."""
    warm = max(1, round(settings.warmup * steps))
    if step < warm:
        return (step + 1) / warm
    if settings.decay == "none":
        return 1.0
    done = (step - warm) / max(1, steps - warm)
    return 1 - done if settings.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
