"""Which weights a sparse adapter changes: those of the largest Fisher information on the first batches.

Source: Sung et al. 2021, "Training Neural Networks with Fixed Sparse Masks", arXiv 2111.09839.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from tercet.models.adapters.attach import choose_weights, named_tensors, weights_to_choose_from
from tercet.models.adapters.body import Slot
from tercet.models.adapters.settings import INDICES, SparseSettings
from tercet.models.encoder_model import EncoderModel
from tercet.training.distributed import Ranks
from tercet.training.gradient_cache import random_state, set_random_state
from tercet.training.gradient_sums import GradientSums
from tercet.training.runs.adapting import NAME, Attached
from tercet.training.runs.state import read_tensors, write_tensors
from tercet.training.step import Stage

CHOSEN_FILE = "chosen_weights.pt"


def choose_by_fisher(
    stage: Stage, model: EncoderModel, attached: Attached, folder: Path, ranks: Ranks
) -> None:
    """Chooses the weights of an attached sparse adapter once, and keeps the choice in the run's `folder`.

    Adapters of other kinds stay as they are. So do the random numbers that training draws.
    """
    settings = attached.chosen
    if not isinstance(settings, SparseSettings):
        return
    path, body = folder / CHOSEN_FILE, model.body
    indices = dict(named_tensors(body, NAME, settings))[INDICES]
    if path.is_file():
        indices.copy_(read_tensors(path)[INDICES])
        return
    before = random_state()
    model.train()
    weights = weights_to_choose_from(body, settings)
    information = fisher_information(stage, weights, attached.settings.mask_batches, ranks)
    choose_weights(body, NAME, settings, information)
    model.zero_grad()
    set_random_state(before)
    if ranks.rank == 0:
        write_tensors(path, {INDICES: indices})


def fisher_information(
    stage: Stage, weights: Mapping[Slot, nn.Parameter], batches: int, ranks: Ranks
) -> dict[Slot, Tensor]:
    """The empirical Fisher information: the mean over batches of each weight's squared gradient of the loss.

    A batch counts as one sample, since its loss compares its texts with each other.
    """
    information = {slot: torch.zeros_like(weight) for slot, weight in weights.items()}
    for weight in weights.values():
        weight.requires_grad_(True)
    sums = GradientSums(weights.values(), ranks)
    for step in range(batches):
        stage.accumulate(step, lambda loss: loss, sums.before_last_backward)
        sums.finish()
        for slot, weight in weights.items():
            if weight.grad is not None:
                information[slot] += weight.grad.square() / batches
            weight.grad = None
    for weight in weights.values():
        weight.requires_grad_(False)
    return information
