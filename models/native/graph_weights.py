"""The weights of a graph as layers take them, each held against the shape that the others ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.models.errors import CheckpointError
from tercet.models.graphs.onnx_file import Array
from tercet.models.int8.four_bits import BLOCK, FourBitTable
from tercet.models.representations import Float32, Int32

Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Linear:
    """x·W as integers times the scales of columns, plus biases: int8[K, N], float32[N], float32[N]."""

    numbers: Int8
    scales: Float32
    biases: Float32


@dataclass(frozen=True, slots=True)
class Norm:
    """Weights and biases of a layer norm, float32[D] each."""

    weights: Float32
    biases: Float32


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of an embedding: int8[R, D] and float32[R, 1], or 4-bit blocks."""

    numbers: Array
    scales: Array

    def rows(self, at: Int32) -> Float32:
        """Some rows, float32[K, D]."""
        if self.numbers.dtype == np.uint8:
            return FourBitTable(self.numbers[at], self.scales[at]).values()
        values: Float32 = self.numbers[at].astype(np.float32)
        values *= self.scales[at]
        return values


@dataclass(frozen=True, slots=True)
class GraphWeights:
    """The weights of one file. A CheckpointError of theirs names the weight, its shape, and the one that it
    should have.
    """

    arrays: Mapping[str, Array]
    path: Path

    def of(self, name: str, dtype: type, *shape: int | None) -> Array:
        """A weight by its name. shape: None where any length above 0 will do. Raises KeyError, too."""
        array = self.arrays[name]
        fits = array.dtype == dtype and array.ndim == len(shape)
        lengths = zip(array.shape, shape, strict=fits)
        if fits and all(found > 0 if length is None else found == length for found, length in lengths):
            return array
        needed = ", ".join("any" if length is None else str(length) for length in shape)
        raise CheckpointError(
            f"{self.path}: {name} is {array.dtype}{list(array.shape)}, but the others need "
            f"{np.dtype(dtype)}[{needed}]; take another copy of the graph"
        )

    def table_width(self, name: str) -> int:
        """D, of the rows of a table."""
        if f"{name}/int4" in self.arrays:
            return 2 * int(self.of(f"{name}/int4", np.uint8, None, None).shape[1])
        return int(self.of(f"{name}/int8", np.int8, None, None).shape[1])

    def table(self, name: str, width: int) -> Table:
        """A table of rows of that width."""
        if f"{name}/int4" in self.arrays:
            numbers = self.of(f"{name}/int4", np.uint8, None, width // 2)
            return Table(numbers, self.of(f"{name}/scales", np.float16, len(numbers), width // BLOCK))
        numbers = self.of(f"{name}/int8", np.int8, None, width)
        return Table(numbers, self.of(f"{name}/scales", np.float32, len(numbers), 1))

    def norm(self, names: Sequence[str], width: int) -> Norm:
        """A layer norm of states of that width."""
        # Kernels take them as they lie, and in the file they may lie anywhere.
        return Norm(*(np.require(self.of(name, np.float32, width), None, "A") for name in names))

    def linear(self, numbers: str, scales: str, biases: str) -> Linear:
        """A linear part by the names of what it is made of."""
        matrix = self.of(numbers, np.int8, None, None)
        columns = matrix.shape[1]
        return Linear(matrix, *(self.of(name, np.float32, columns) for name in (scales, biases)))
