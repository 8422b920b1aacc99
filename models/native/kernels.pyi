"""The kernels' types. Letters are lengths; an array that is written is said to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

UInt8 = npt.NDArray[np.uint8]
Int16 = npt.NDArray[np.int16]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]

INSTRUCTIONS: str
"""Those that the kernels are compiled for, of AVAILABLE_INSTRUCTIONS the first unless TERCET_INSTRUCTIONS has
another.
"""

AVAILABLE_INSTRUCTIONS: tuple[str, ...]
"""What this processor has of what the kernels are compiled for, the best first."""

SOURCES: str
"""A digest of the sources that the module was compiled from."""

class Record:
    """Arrays of one layout, checked once; it keeps them, and kernels take tuples of records."""

def kernels_of(instructions: str) -> dict[str, Callable[..., Any]]:
    """The kernels for one of AVAILABLE_INSTRUCTIONS, by name."""

# Layers, `layers.c`. Matrices are panels of 16 columns, uint8[P, K/4, 16, 4], as
# `tercet.models.native.panels` packs
# them.

def encoder_layer(
    into: UInt8,
    into_scales: Float32,
    into_biases: Float32,
    out: UInt8,
    out_scales: Float32,
    out_biases: Float32,
    out_norm_weights: Float32,
    out_norm_biases: Float32,
    rise: UInt8,
    rise_scales: Float32,
    rise_biases: Float32,
    fall: UInt8,
    fall_scales: Float32,
    fall_biases: Float32,
    fall_norm_weights: Float32,
    fall_norm_biases: Float32,
) -> Record:
    """A layer: the matrix of queries, keys and values, the one after attention, and the two dense layers,
    each with the scales and biases of its columns, float32[P, 16], and the two layer norms,
    float32[W/16, 16] each.
    """

def normalize_states(weights: Float32, biases: Float32, epsilon: float, states: Float32) -> None:
    """Layer norm of float32[T, W], which is written; W is a multiple of 16."""

def run_layers(
    layers: tuple[Record, ...], offsets: Int64, heads: int, epsilon: float, states: Float32
) -> None:
    """The states float32[T, W] after all layers, written over those before. offsets: int64[N+1], where the
    tokens of each text lie, from 0 to T.
    """

# The same in parts, for one text on several threads: `layers` is a tuple of one.

def project_layer(layers: tuple[Record, ...], states: Float32, projected: Float32) -> None:
    """Writes queries, keys and values float32[T, 3 W] of states float32[T, W], row by row."""

def attend_with_heads(projected: Float32, heads: int, first: int, last: int, attended: Float32) -> None:
    """Writes what the tokens of one text attend to, float32[T, W], with the heads from `first` to `last`."""

def finish_layer(layers: tuple[Record, ...], epsilon: float, attended: Float32, states: Float32) -> None:
    """The states float32[T, W] after a layer, written over those before, row by row."""

# Heads, `heads.c`.

def project_tokens(states: Float32, panels: Int16, scales: Float32, biases: Float32, found: Float32) -> None:
    """Writes unit vectors float32[T, C] of states float32[T, W]. panels: int16[P, W/2, 16, 2], with the
    scales and biases of their columns, float32[P, 16], 0 beyond C.
    """

def weigh_tokens(states: Float32, weights: Float32, bias: float, found: Float32) -> None:
    """Writes weights float32[T] of states float32[T, W]: relu(w·h + b)."""
