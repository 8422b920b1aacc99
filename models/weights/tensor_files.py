"""Files of tensors, safetensors or torch's own, as arrays, and those of a body that are for a head."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from tercet.models.errors import CheckpointError, reason
from tercet.models.fingerprint import weight_files
from tercet.models.representations import Float32

# What damaged files of weights lead to in the libraries that read them.
UNREADABLE = (
    SafetensorError,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    OSError,
    AttributeError,
    TypeError,
)


def read_weights(path: Path, names: Collection[str] | None = None) -> dict[str, Float32]:
    """Tensors of a file, which torch's own are read from as plain weights: all, or those of the names that
    are there. Raises CheckpointError.
    """
    try:
        if path.suffix == ".safetensors":
            # torch reads half precision, in which many weights are published, and NumPy bfloat16 not.
            with safe_open(path, "pt") as file:  # a file of tensors is no mapping
                state = {name: file.get_tensor(name) for name in file.keys() if _is_wanted(name, names)}  # noqa: SIM118
        else:
            loaded = torch.load(path, map_location="cpu", weights_only=True)
            state = {name: value for name, value in loaded.items() if _is_wanted(name, names)}
        return {name: value.float().numpy() for name, value in state.items()}
    except UNREADABLE as error:
        raise CheckpointError(f"{path} cannot be read as plain weights: {unreadable(error)}") from error


def read_body(folder: Path, names: Collection[str]) -> dict[str, Float32]:
    """Tensors of these names, as far as they are there, from a checkpoint's weights, in shards or not.

    Raises CheckpointError.
    """
    return {name: array for path in weight_files(folder) for name, array in read_weights(path, names).items()}


def _is_wanted(name: str, names: Collection[str] | None) -> bool:
    return names is None or name in names


def unreadable(error: BaseException) -> str:
    """Why a file of weights cannot be read, in one line."""
    if isinstance(error, pickle.UnpicklingError):  # of many lines, which advise to run what the file holds
        return "it is damaged, or holds what are not plain tensors"
    return reason(error)
