"""The weights of the sparse and ColBERT heads as arrays, in the one layout every engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError
from tercet.models.files import replace_file
from tercet.models.representations import Float32
from tercet.models.weights.array_files import read_arrays
from tercet.models.weights.dense_layers import Layers, layer_arrays, layers_from_arrays, require_finite

HEADS_FILE = "heads.safetensors"
# Any of which a folder with heads has.
HEAD_FILES = (HEADS_FILE, "sparse_linear.pt", "colbert_linear.pt")
SPARSE, COLBERT = ("sparse.weight", "sparse.bias"), ("colbert.weight", "colbert.bias")
QUERIES = "queries.weight"
DENSE, TOKENS = "dense", "tokens"


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
    dense: layers from the pooled state to the dense vector, none where it is that; tokens: those to a token
    vector in place of `colbert`, where they are more than one linear map.
    """

    sparse: LinearHead | None = None
    colbert: LinearHead | None = None
    queries: Float32 | None = None
    dense: Layers = ()
    tokens: Layers = ()

    @property
    def colbert_dimension(self) -> int:
        """C, the width of a token vector; 0 without these."""
        if self.tokens:
            return len(self.tokens[-1].weight)
        return 0 if self.colbert is None else len(self.colbert.bias)

    def dense_dimension(self, width: int, pooling: str) -> int:
        """D, the width of a dense vector of states of that width; 0 where nothing is pooled."""
        if pooling == "none":
            return 0
        return len(self.dense[-1].weight) if self.dense else width

    def as_of_bge_m3(self, settings: EncodingSettings) -> bool:
        """Whether a checkpoint has no other heads than BGE-M3, and treats tokens as that does: packed passes
        know nothing else.
        """
        return settings.late_interaction is None and self.are_linear(settings)

    def are_linear(self, settings: EncodingSettings) -> bool:
        """Whether each side comes by linear layers alone, from states where every token sees all others of
        its text: our own kernels know nothing else.
        """
        late = settings.late_interaction
        hides = late is not None and late.expansion_length is not None and not late.attend_to_expansion
        return self.has_linear_layers and not (settings.splade or hides)

    @property
    def has_linear_layers(self) -> bool:
        """Whether layers after the pooling, if any, are linear, and token vectors come by one at most."""
        return not self.tokens and all(layer.is_linear for layer in self.dense)

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each head, 0 for one that is not there: heads of equal ones can take each other's place."""
        return int(self.sparse is not None), self.colbert_dimension

    def both(self) -> tuple[LinearHead, LinearHead]:
        """The head of lexical weights and that of token vectors. Raises CheckpointError where one lacks, or
        where layers that are not linear are there, too.
        """
        if not self.has_linear_layers:
            raise CheckpointError(
                "the checkpoint has layers of Dense modules, which are not trained here; take one that has "
                "heads as BGE-M3's alone"
            )
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
        if self.queries is not None:
            heads[QUERIES] = self.queries
        return {**heads, **layer_arrays(DENSE, self.dense), **layer_arrays(TOKENS, self.tokens)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Float32], source: str, width: int) -> HeadWeights:
        """Checks names and shapes. Raises CheckpointError naming `source` where one is missing or wrong."""
        queries = arrays.get(QUERIES)
        return HeadWeights(
            _linear_head(arrays, SPARSE, source, width, rows=1),
            _linear_head(arrays, COLBERT, source, width),
            None if queries is None else np.ascontiguousarray(queries, np.float32),
            layers_from_arrays(DENSE, arrays, source, width),
            layers_from_arrays(TOKENS, arrays, source, width),
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
        require_finite(value, f"{source}: {name}")
    return LinearHead(weight, bias)


def read_heads(folder: Path, width: int) -> HeadWeights:
    """Heads from heads.safetensors, none where it is not there. Raises CheckpointError naming the file where
    it is damaged.
    """
    path = folder / HEADS_FILE
    if not path.is_file():
        return HeadWeights()
    arrays = read_arrays(path)
    known = (*SPARSE, *COLBERT, QUERIES)
    unknown = [
        name for name in arrays if name not in known and not name.startswith((f"{DENSE}.", f"{TOKENS}."))
    ]
    if unknown:
        raise CheckpointError(f"{path} holds {unknown[:5]}, which is no part of a head; heads have {known}")
    return HeadWeights.from_arrays(arrays, str(path), width)


def write_heads(folder: Path, heads: HeadWeights) -> Path:
    """Writes heads.safetensors and returns its path."""
    path = folder / HEADS_FILE
    replace_file(path, save(heads.arrays()))
    return path
