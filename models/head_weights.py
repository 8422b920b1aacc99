"""The weights of the sparse and ColBERT heads as arrays, in the one layout every engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from models.errors import CheckpointError
from models.representations import Float32

HEADS_FILE = "heads.safetensors"
NAMES = ("sparse.weight", "sparse.bias", "colbert.weight", "colbert.bias")


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """Two linear heads on hidden states of width d.

    sparse_weight: float32[1, d]; sparse_bias: float32[1]; colbert_weight: float32[C, d];
    colbert_bias: float32[C].
    """

    sparse_weight: Float32
    sparse_bias: Float32
    colbert_weight: Float32
    colbert_bias: Float32

    @property
    def colbert_dimension(self) -> int:
        """C, the width of a token vector."""
        return int(self.colbert_weight.shape[0])

    def require_dimension(self, wanted: int | None, folder: Path) -> None:
        """Raises CheckpointError where the settings of the folder ask for another width of token vectors."""
        if wanted not in (None, self.colbert_dimension):
            raise CheckpointError(
                f"{folder}: tercet.json says colbert_dimension {wanted}, "
                f"but the head gives {self.colbert_dimension}"
            )

    def arrays(self) -> dict[str, Float32]:
        """The arrays under the names of heads.safetensors."""
        values = (self.sparse_weight, self.sparse_bias, self.colbert_weight, self.colbert_bias)
        return dict(zip(NAMES, values, strict=True))

    @staticmethod
    def from_arrays(arrays: Mapping[str, Float32], source: str, width: int) -> HeadWeights:
        """Checks names and shapes. Raises CheckpointError naming `source` where one is missing or wrong."""
        missing = [name for name in NAMES if name not in arrays]
        if missing:
            raise CheckpointError(f"{source} lacks {missing}; it must hold {list(NAMES)}")
        values = [np.ascontiguousarray(arrays[name], np.float32) for name in NAMES]
        dimension = len(values[3])
        expected = [(1, width), (1,), (dimension, width), (dimension,)]
        for name, value, shape in zip(NAMES, values, expected, strict=True):
            if value.shape != shape:
                raise CheckpointError(f"{source}: {name} has shape {value.shape}; the model needs {shape}")
        return HeadWeights(*values)


def read_heads(folder: Path, width: int) -> HeadWeights:
    """Heads from heads.safetensors. Raises CheckpointError naming the file where missing or damaged."""
    path = folder / HEADS_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing; a head is never random, so take it from the checkpoint or train one"
        )
    try:
        arrays = load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    return HeadWeights.from_arrays(arrays, str(path), width)


def write_heads(folder: Path, heads: HeadWeights) -> Path:
    """Writes heads.safetensors and returns its path."""
    path = folder / HEADS_FILE
    save_file(heads.arrays(), path)
    # The library makes files that only their owner may read; a checkpoint is for any user of the machine.
    path.chmod(0o644)
    return path
