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
SPARSE, COLBERT = ("sparse.weight", "sparse.bias"), ("colbert.weight", "colbert.bias")
QUERIES = "queries.weight"


@dataclass(frozen=True, slots=True)
class LinearHead:
    """weight: float32[rows, d], on hidden states of width d; bias: float32[rows]."""

    weight: Float32
    bias: Float32


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """The linear heads of a checkpoint, None for a side that it lacks: of lexical weights, which has one row,
    and of token vectors, which has as many as these have values.

    queries: float32[V], lexical weights of the tokens of queries that need no model, None where they do.
    """

    sparse: LinearHead | None = None
    colbert: LinearHead | None = None
    queries: Float32 | None = None

    @property
    def colbert_dimension(self) -> int:
        """C, the width of a token vector; 0 without these."""
        return 0 if self.colbert is None else len(self.colbert.bias)

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each head, 0 for one that is not there: heads of equal ones can take each other's place."""
        return int(self.sparse is not None), self.colbert_dimension

    def both(self) -> tuple[LinearHead, LinearHead]:
        """The head of lexical weights and that of token vectors. Raises CheckpointError where one lacks."""
        if self.sparse is None or self.colbert is None:
            lacking = "sparse" if self.sparse is None else "colbert"
            raise CheckpointError(
                f"the checkpoint has no {lacking} head, neither in {HEADS_FILE} nor in {lacking}_linear.pt; "
                "take one that has both"
            )
        return self.sparse, self.colbert

    def require_dimension(self, wanted: int | None, folder: Path) -> None:
        """Raises CheckpointError where the settings of the folder ask for another width of token vectors."""
        if wanted not in (None, self.colbert_dimension):
            raise CheckpointError(
                f"{folder}: tercet.json says colbert_dimension {wanted}, "
                f"but the head gives {self.colbert_dimension}"
            )

    def require_no_sparse(self, folder: Path) -> None:
        """Raises CheckpointError where there is a linear head of lexical weights beside those of SPLADE."""
        if self.sparse is not None:
            raise CheckpointError(
                f"{folder} has splade in its settings and a linear head of lexical weights, too; remove one "
                "of both"
            )

    def arrays(self) -> dict[str, Float32]:
        """The arrays under the names of heads.safetensors."""
        named = ((SPARSE, self.sparse), (COLBERT, self.colbert))
        heads = {
            name: array
            for names, head in named
            if head is not None
            for name, array in zip(names, (head.weight, head.bias), strict=True)
        }
        return heads if self.queries is None else {**heads, QUERIES: self.queries}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Float32], source: str, width: int) -> HeadWeights:
        """Checks names and shapes. Raises CheckpointError naming `source` where one is missing or wrong."""
        queries = arrays.get(QUERIES)
        return HeadWeights(
            _linear_head(arrays, SPARSE, source, width, rows=1),
            _linear_head(arrays, COLBERT, source, width),
            None if queries is None else np.ascontiguousarray(queries, np.float32),
        )


def _linear_head(
    arrays: Mapping[str, Float32], names: tuple[str, str], source: str, width: int, rows: int | None = None
) -> LinearHead | None:
    missing = [name for name in names if name not in arrays]
    if len(missing) == len(names):
        return None
    if missing:
        raise CheckpointError(f"{source} lacks {missing}; a head has {list(names)}")
    weight, bias = (np.ascontiguousarray(arrays[name], np.float32) for name in names)
    rows = len(bias) if rows is None else rows
    for name, value, shape in zip(names, (weight, bias), ((rows, width), (rows,)), strict=True):
        if value.shape != shape:
            raise CheckpointError(f"{source}: {name} has shape {value.shape}; the model needs {shape}")
    return LinearHead(weight, bias)


def read_heads(folder: Path, width: int) -> HeadWeights:
    """Heads from heads.safetensors, none where it is not there. Raises CheckpointError naming the file where
    it is damaged.
    """
    path = folder / HEADS_FILE
    if not path.is_file():
        return HeadWeights()
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
