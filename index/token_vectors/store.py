"""Token vectors of one segment: `token_offsets.npy` int64[N+1] and `token_codes.npy`, T tokens, C ColBERT
dimension.

Codes are float16[T, C]; or int8[T, C] with `token_scales.npy` float32[T] (vector = code x scale); or
uint8[T, P] with `token_centroids.npy` uint16[T], by the collection's codebook (`coding.py`), without the
latter where it has a single centroid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.codebook import Codebook
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.files.packed_bytes import open_offsets
from tercet.index.files.pieces import Pieces
from tercet.index.files.streams import Streams
from tercet.index.native.kernels import Record, token_store, unpack_int8, widen_rows
from tercet.index.token_codecs import CODED, TokenCodec
from tercet.index.token_vectors.centroid_groups import UInt16
from tercet.index.token_vectors.coding import decode, encode
from tercet.models.representations import Float32, Int64, TokenVectors, offsets_of, ragged_positions

Int8 = npt.NDArray[np.int8]


def quantize_int8(vectors: Float32) -> tuple[Int8, Float32]:
    """Codes int8[T, C] and scales float32[T]: scale = largest absolute value / 127, code = value / scale."""
    scales = np.abs(vectors).max(axis=1, initial=0.0) / np.float32(127)
    codes = np.rint(vectors / np.where(scales > 0, scales, np.float32(1))[:, None])
    np.clip(codes, -127, 127, out=codes)  # a scale of subnormal values is rounded coarsely
    return codes.astype(np.int8), scales.astype(np.float32)


@dataclass(frozen=True, slots=True)
class TokenVectorStore:
    """Token vectors. codes: float16 or int8 [T, C], or uint8[T, P] of a codebook; scales: float32[T] for
    int8; centroids: uint16[T] for a codebook; those of one with a single centroid need not be given. record:
    the same for compiled loops over many of them, which read no float16.
    """

    codes: npt.NDArray[Any]
    scales: Float32 | None
    offsets: Int64
    centroids: UInt16 | None = None
    codebook: Codebook | None = None
    record: Record = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.codebook is not None and self.centroids is None:
            # Pages of zeros that nothing is written to take no memory.
            object.__setattr__(self, "centroids", np.zeros(len(self.codes), np.uint16))
        codes = None if self.codes.dtype == np.float16 else self.codes.view(np.uint8)
        record = token_store(codes, self.scales, self.centroids, self.offsets)
        object.__setattr__(self, "record", record)

    @staticmethod
    def open(
        arrays: ArraySource,
        codec: TokenCodec,
        documents: int,
        dimension: int,
        codebook: Codebook | None = None,
    ) -> TokenVectorStore:
        """Opens them; the codec is not none. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(arrays, "token_offsets", documents)
        tokens = int(offsets[-1])
        length = dimension if codebook is None else codebook.code_bytes
        codes = arrays.open("token_codes", code_dtype(codec), (length,), tokens)
        scales = arrays.open("token_scales", np.float32, rows=tokens) if codec == "int8" else None
        centroids = None
        if codebook is not None and codebook.several:
            centroids = arrays.open("token_centroids", np.uint16, rows=tokens)
            if centroids.max(initial=0) >= len(codebook.centroids):
                raise damaged(
                    arrays.path("token_centroids"),
                    f"names a centroid outside the {len(codebook.centroids)} of the codebook",
                )
        return TokenVectorStore(codes, scales, offsets, centroids, codebook)

    @staticmethod
    def encode(batch: TokenVectors, codec: TokenCodec, codebook: Codebook | None = None) -> TokenVectorStore:
        """The stored form of vectors; the codec is not none."""
        if codebook is not None:
            codes, centroids = encode(codebook, batch.vectors)
            return TokenVectorStore(codes, None, batch.offsets, centroids, codebook)
        if codec == "int8":
            return TokenVectorStore(*quantize_int8(batch.vectors), batch.offsets)
        return TokenVectorStore(batch.vectors.astype(np.float16), None, batch.offsets)

    @staticmethod
    def concatenate(parts: Sequence[TokenVectorStore]) -> TokenVectorStore:
        """The vectors of all parts, which are of one codec and codebook."""
        scales = [part.scales for part in parts if part.scales is not None]
        centroids = [part.centroids for part in parts if part.centroids is not None]
        return TokenVectorStore(
            np.concatenate([part.codes for part in parts]),
            np.concatenate(scales) if scales else None,
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            np.concatenate(centroids) if centroids else None,
            parts[0].codebook,
        )

    def take(self, rows: Int64) -> TokenVectorStore:
        """The vectors of these texts, as they are stored."""
        positions = ragged_positions(self.offsets, rows)
        return TokenVectorStore(
            self.codes[positions],
            None if self.scales is None else self.scales[positions],
            offsets_of(self.offsets[rows + 1] - self.offsets[rows]),
            None if self.centroids is None else self.centroids[positions],
            self.codebook,
        )

    def vectors(self, positions: Int64) -> Float32:
        """The token vectors at these positions, float32[n, C]; positions come from `offsets`."""
        if self.codebook is not None and self.centroids is not None:
            return decode(self.codebook, self.codes[positions], self.centroids[positions])
        vectors = np.empty((len(positions), self.codes.shape[1]), np.float32)
        if self.scales is None:
            widen_rows(self.codes, positions, vectors)
        else:
            unpack_int8(self.codes, self.scales, positions, vectors)
        return vectors

    def pieces(self, rows: Int64) -> Pieces:
        """Where the codes of these texts lie."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        codes = Pieces.of(self.codes, starts, ends)
        return codes if self.scales is None else codes.joined_with(Pieces.of(self.scales, starts, ends))

    def centroid_pieces(self, rows: Int64) -> Pieces:
        """Where the centroids of these texts lie, which a store with a codebook has."""
        assert self.centroids is not None  # noqa: S101 - asked for only with a codebook of several
        return Pieces.of(self.centroids, self.offsets[rows], self.offsets[rows + 1])

    def of(self, row: int) -> Float32:
        """The token vectors of one text, float32[L, C]."""
        return self.vectors(np.arange(self.offsets[row], self.offsets[row + 1]))


def code_dtype(codec: TokenCodec) -> np.dtype[Any]:
    """What one value of the codec is stored as."""
    if codec in CODED:
        return np.dtype(np.uint8)
    return np.dtype(np.int8 if codec == "int8" else np.float16)


class TokenVectorWriter(Streams):
    """Streams the token vectors of one segment; the codec is not none."""

    def __init__(
        self, arrays: ArrayTarget, codec: TokenCodec, dimension: int, codebook: Codebook | None = None
    ) -> None:
        length = dimension if codebook is None else codebook.code_bytes
        self._codes = arrays.stream("token_codes", code_dtype(codec), (length,))
        self._scales = arrays.stream("token_scales", np.float32) if codec == "int8" else None
        several = codebook is not None and codebook.several
        self._centroids = arrays.stream("token_centroids", np.uint16) if several else None
        self._offsets = arrays.stream("token_offsets", np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        streams = (self._codes, self._scales, self._centroids, self._offsets)
        super().__init__(*(stream for stream in streams if stream is not None))

    @property
    def tokens(self) -> int:
        return self._codes.rows

    def append(self, batch: TokenVectorStore) -> None:
        """Adds the token vectors of some texts, stored by the same codec."""
        ends = self._codes.rows + batch.offsets[1:] - batch.offsets[0]
        stored = slice(int(batch.offsets[0]), int(batch.offsets[-1]))
        self._codes.append(batch.codes[stored])
        if self._scales is not None and batch.scales is not None:
            self._scales.append(batch.scales[stored])
        if self._centroids is not None and batch.centroids is not None:
            self._centroids.append(batch.centroids[stored])
        self._offsets.append(ends)
