"""What a run keeps on disk to go on after a kill exactly where it was saved."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tercet.index.wording import reason_of
from tercet.training.distributed import Ranks, gather
from tercet.training.errors import RunStateError
from tercet.training.files import replacing
from tercet.training.gradient_cache import random_state, set_random_state

STATE_FILE = "state.pt"
BEST_FILE = "best.pt"


@dataclass(slots=True)
class Progress:
    """How far a run is. step: steps done; best: the highest development figure so far and its step."""

    step: int = 0
    best_figure: float | None = None
    best_step: int = 0


def save_state(
    folder: Path,
    progress: Progress,
    trained: dict[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    ranks: Ranks,
) -> None:
    """Replaces the state of the run atomically; the first process writes for all of them."""
    cpu, cuda = random_state()
    values = {
        "step": progress.step,
        "best_figure": progress.best_figure,
        "best_step": progress.best_step,
        "weights": {name: parameter.detach() for name, parameter in trained.items()},
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "random": gather(cpu[None], ranks),
        "random_cuda": None if cuda is None else gather(cuda[None], ranks),
    }
    if ranks.rank == 0:
        write_tensors(folder / STATE_FILE, values)


def load_state(
    folder: Path,
    trained: dict[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    ranks: Ranks,
) -> Progress:
    """Puts back what `save_state` wrote, and returns how far the run was: nowhere where nothing is saved.

    Raises RunStateError where the file does not fit this run.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        return Progress()
    values = read_tensors(path)
    try:
        put_weights(trained, values["weights"], path)
        optimizer.load_state_dict(values["optimizer"])
        scaler.load_state_dict(values["scaler"])
        cuda = values["random_cuda"]
        # Copies, since torch reads the state from where the memory begins: at the first process's row.
        own = values["random"][ranks.rank].clone()
        set_random_state((own, None if cuda is None else cuda[ranks.rank].clone()))
        return Progress(values["step"], values["best_figure"], values["best_step"])
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise RunStateError(f"{path}: does not fit this run ({error}); remove it to begin again") from error


def put_weights(trained: dict[str, nn.Parameter], weights: dict[str, Tensor], path: Path) -> None:
    """Copies weights into the parameters of the same names. Raises RunStateError where they differ."""
    if set(trained) != set(weights):
        odd = sorted(set(trained) ^ set(weights))[0]
        raise RunStateError(f"{path}: saved by a run that trained other parameters, such as {odd}")
    with torch.no_grad():
        for name, parameter in trained.items():
            if parameter.shape != weights[name].shape:
                raise RunStateError(
                    f"{path}: {name} has shape {tuple(weights[name].shape)}, not {tuple(parameter.shape)}"
                )
            parameter.copy_(weights[name])


def write_tensors(path: Path, values: dict[str, Any]) -> None:
    """Writes tensors and plain values."""
    with replacing(path) as file:
        torch.save(values, file)


def read_tensors(path: Path) -> dict[str, Any]:
    """What `write_tensors` wrote; tensors and plain values only, no code. Raises RunStateError."""
    try:
        values: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # its message advises to run the code in the file
        raise RunStateError(f"{path}: holds no plain tensors; remove it to begin again") from error
    except (RuntimeError, EOFError, OSError) as error:
        raise RunStateError(
            f"{path}: cannot be read ({reason_of(error)}); remove it to begin again"
        ) from error
    return values
