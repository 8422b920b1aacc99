"""Token vectors of one segment: `token_offsets.npy` int64[N+1], `token_codes.npy` [T, C] and, for the
codec int8, `token_scales.npy` float32[T] (vector = code x scale). T tokens, C ColBERT dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt

from index.files.arrays import ArraySource, ArrayTarget, frozen
from index.files.float16 import rows_as_float32
from index.files.packed_bytes import open_offsets
from models.representations import Float32, Int64, TokenVectors, offsets_of, ragged_positions

TokenCodec = Literal["float16", "int8", "none"]
Int8 = npt.NDArray[np.int8]


def quantize_int8(vectors: Float32) -> tuple[Int8, Float32]:
    """Codes int8[T, C] and scales float32[T]: scale = largest absolute value / 127, code = value / scale."""
    scales = np.abs(vectors).max(axis=1, initial=0.0) / np.float32(127)
    codes = np.rint(vectors / np.where(scales > 0, scales, np.float32(1))[:, None])
    return codes.astype(np.int8), scales.astype(np.float32)


@numba.njit(nogil=True, cache=True)
def _unpack_int8(codes: Int8, scales: Float32, positions: Int64, vectors: Float32) -> None:
    for i in range(positions.shape[0]):
        position = positions[i]
        scale = scales[position]
        for j in range(codes.shape[1]):
            vectors[i, j] = np.float32(codes[position, j]) * scale


@dataclass(frozen=True, slots=True)
class TokenVectorStore:
    """Token vectors. codes: int8 or float16 [T, C]; scales: float32[T] for int8, else None."""

    codes: npt.NDArray[Any]
    scales: Float32 | None
    offsets: Int64

    @staticmethod
    def open(arrays: ArraySource, codec: TokenCodec, documents: int, dimension: int) -> TokenVectorStore:
        """Opens them; the codec is int8 or float16. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(arrays, "token_offsets", documents)
        tokens = int(offsets[-1])
        codes = arrays.open("token_codes", code_dtype(codec), (dimension,), tokens)
        scales = arrays.open("token_scales", np.float32, rows=tokens) if codec == "int8" else None
        return TokenVectorStore(codes, scales, offsets)

    @staticmethod
    def encode(batch: TokenVectors, codec: TokenCodec) -> TokenVectorStore:
        """The stored form of vectors; the codec is int8 or float16."""
        if codec == "int8":
            return TokenVectorStore(*quantize_int8(batch.vectors), batch.offsets)
        return TokenVectorStore(batch.vectors.astype(np.float16), None, batch.offsets)

    def take(self, rows: Int64) -> TokenVectorStore:
        """The vectors of these texts, as they are stored."""
        positions = ragged_positions(self.offsets, rows)
        return TokenVectorStore(
            self.codes[positions],
            None if self.scales is None else self.scales[positions],
            offsets_of(self.offsets[rows + 1] - self.offsets[rows]),
        )

    def vectors(self, positions: Int64) -> Float32:
        """The token vectors at these positions, float32[n, C]; positions come from `offsets`."""
        if self.scales is None:
            return rows_as_float32(self.codes, positions)
        vectors = np.empty((len(positions), self.codes.shape[1]), np.float32)
        _unpack_int8(frozen(self.codes), frozen(self.scales), positions, vectors)
        return vectors

    def of(self, row: int) -> Float32:
        """The token vectors of one text, float32[L, C]."""
        return self.vectors(np.arange(self.offsets[row], self.offsets[row + 1]))


def code_dtype(codec: TokenCodec) -> np.dtype[Any]:
    """What one value of the codec is stored as."""
    return np.dtype(np.int8 if codec == "int8" else np.float16)


class TokenVectorWriter:
    """Streams the token vectors of one segment; the codec is int8 or float16."""

    def __init__(self, arrays: ArrayTarget, codec: TokenCodec, dimension: int) -> None:
        self._codes = arrays.stream("token_codes", code_dtype(codec), (dimension,))
        self._scales = arrays.stream("token_scales", np.float32) if codec == "int8" else None
        self._offsets = arrays.stream("token_offsets", np.int64)
        self._offsets.append(np.zeros(1, np.int64))

    @property
    def tokens(self) -> int:
        """Token vectors so far."""
        return self._codes.rows

    @property
    def total_bytes(self) -> int:
        """Bytes so far."""
        scales = 0 if self._scales is None else self._scales.total_bytes
        return self._codes.total_bytes + scales + self._offsets.total_bytes

    def append(self, batch: TokenVectorStore) -> None:
        """Adds the token vectors of some texts, stored by the same codec."""
        ends = self._codes.rows + batch.offsets[1:] - batch.offsets[0]
        stored = slice(int(batch.offsets[0]), int(batch.offsets[-1]))
        self._codes.append(batch.codes[stored])
        if self._scales is not None and batch.scales is not None:
            self._scales.append(batch.scales[stored])
        self._offsets.append(ends)

    def finish(self) -> None:
        """Completes the arrays."""
        for writer in (self._codes, self._scales, self._offsets):
            if writer is not None:
                writer.finish()

    def close(self) -> None:
        """Abandons the arrays."""
        for writer in (self._codes, self._scales, self._offsets):
            if writer is not None:
                writer.close()
