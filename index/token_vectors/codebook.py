"""Codebooks: token vectors as a centroid and a few bytes, each of which stands for some values of the rest.

A vector x is turned by a rotation R, which may leave out dimensions; its centroid c is the nearest one; the
rest R x - c is cut into pieces, each coded as the nearest of the 256 entries of its table (product
quantization of residuals: Jégou, Douze and Schmid 2011, section 4; R as Ge et al. 2013). What is stored
stands for `R^T (c + entries)`, scaled to length 1, which token vectors have.

Centroids and entries are bytes of one step, so small that their sums fit a byte: what is added up are the
very values that inner products are taken with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from index.errors import DamagedIndexError
from index.files.arrays import frozen
from index.native.kernels import decode_pieces, encode_pieces, nearest_centroids
from index.token_vectors.integer_query import OFFSET, VALUES_AT_ONCE, IntegerQuery
from models.representations import Float32

UInt8 = npt.NDArray[np.uint8]
UInt16 = npt.NDArray[np.uint16]

ENTRIES = 256
TILE = 8  # centroids that are multiplied together
HALF_OFFSET = 64  # added to values of centroids and of entries alike
LARGEST_HALF = HALF_OFFSET - 1
MAX_CENTROIDS = 65_536
VECTORS_AT_ONCE = 4_096
WIDTHS = (2, 4, 8)  # values that are added up as one number


@dataclass(frozen=True, eq=False, repr=False)
class Codebook:
    """M centroids and tables for P pieces, in a space of R dimensions.

    rotation: float32[R, C], rows of length 1 at right angles; centroids: uint8[M, R] and tables:
    uint8[P, 256, R/P], in steps, 64 added, below 128; R/P is 2, 4 or 8; step: above 0, in units of vectors.
    Raises ValueError where these do not fit together.
    """

    rotation: Float32
    centroids: UInt8
    tables: UInt8
    step: float

    def __post_init__(self) -> None:
        fits = (
            (self.rotation.ndim, self.centroids.ndim, self.tables.ndim) == (2, 2, 3)
            and 0 < self.rotation.shape[0] <= self.rotation.shape[1]
            and self.centroids.shape[1] == self.rotation.shape[0] == len(self.tables) * self.tables.shape[2]
            and 0 < len(self.centroids) <= MAX_CENTROIDS
            and self.tables.shape[1] == ENTRIES
            and self.tables.shape[2] in WIDTHS
            and bool(np.isfinite(self.rotation).all())
            and max(int(self.centroids.max()), int(self.tables.max())) < 2 * HALF_OFFSET
            and 0 < self.step < np.inf
        )
        if not fits:
            raise ValueError(
                f"rotation {self.rotation.shape}, centroids {self.centroids.shape}, tables "
                f"{self.tables.shape} and the step {self.step} make no codebook; train it again"
            )

    @property
    def dimension(self) -> int:
        """C, of the vectors that it codes."""
        return int(self.rotation.shape[1])

    @property
    def code_bytes(self) -> int:
        """P, to which 2 bytes for the centroid come where there are several."""
        return len(self.tables)

    @property
    def several(self) -> bool:
        """Whether there is more than one centroid, so that a vector's is stored."""
        return len(self.centroids) > 1

    @cached_property
    def content(self) -> bytes:
        """The bytes of its file."""
        arrays = {
            "rotation": self.rotation,
            "centroids": self.centroids,
            "tables": self.tables,
            "step": np.array([self.step], np.float64),
        }
        return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})

    @cached_property
    def sha256(self) -> str:
        """The checksum of `content`, by which collections name it."""
        return hashlib.sha256(self.content).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codebook) and self.sha256 == other.sha256

    def __repr__(self) -> str:
        return f"Codebook({self.sha256})"

    def __hash__(self) -> int:
        return hash(self.sha256)

    @staticmethod
    def of_content(content: bytes, name: str) -> Codebook:
        """The codebook of a file's bytes. Raises DamagedIndexError that names the file."""
        try:
            arrays = load(content)
            return Codebook(
                arrays["rotation"].astype(np.float32, copy=False),
                arrays["centroids"].astype(np.uint8, copy=False),
                arrays["tables"].astype(np.uint8, copy=False),
                float(arrays["step"][0]),
            )
        except (SafetensorError, LookupError, ValueError) as error:
            raise DamagedIndexError(f"{name} is no codebook ({error}); restore it") from error

    @cached_property
    def longest_centroid(self) -> float:
        """The length of the longest centroid, in steps."""
        return float(np.sqrt(np.square(self._halves[0]).sum(axis=1).max()))

    @cached_property
    def centroid_tiles(self) -> UInt8:
        """Centroids, 128 added, as tiles of `nearest_centroids`: uint8[T, 8, S], zeros behind."""
        centroids, kept = self.centroids.shape
        values = -(-kept // VALUES_AT_ONCE) * VALUES_AT_ONCE
        tiles = np.full((-(-centroids // TILE) * TILE, values), OFFSET, np.uint8)
        tiles[:centroids, :kept] = self.centroids + np.uint8(OFFSET - HALF_OFFSET)
        return frozen(tiles.reshape(-1, TILE, values))

    @cached_property
    def _halves(self) -> tuple[Float32, Float32]:
        """Centroids float32[M, R] and tables float32[P, R/P, 256], in steps."""
        centroids = self.centroids.astype(np.float32) - np.float32(HALF_OFFSET)
        tables = self.tables.astype(np.float32) - np.float32(HALF_OFFSET)
        return centroids, np.ascontiguousarray(tables.transpose(0, 2, 1))

    @cached_property
    def _half_lengths(self) -> tuple[UInt8, Float32]:
        """Centroids as tiles, and half of each one's squared length, without end behind the last."""
        halves = np.full(len(self.centroid_tiles) * TILE, np.inf, np.float32)
        halves[: len(self.centroids)] = np.square(self._halves[0]).sum(axis=1) / 2
        return self.centroid_tiles, frozen(halves)

    def encode(self, vectors: Float32) -> tuple[UInt8, UInt16]:
        """Codes uint8[T, P] and numbers of centroids uint16[T] of vectors float32[T, C].

        Which centroid is nearest is found with the vectors as bytes; of two nearly as near it may be either.
        """
        centroids, tables = self._halves
        codes = np.empty((len(vectors), self.code_bytes), np.uint8)
        nearest = np.empty(len(vectors), np.uint16)
        for first in range(0, len(vectors), VECTORS_AT_ONCE):
            part = slice(first, first + VECTORS_AT_ONCE)
            turned = (vectors[part] @ self.rotation.T) / np.float32(self.step)
            packed, sums, scales, _, _ = IntegerQuery.of(turned).arguments
            nearest_centroids(packed, sums, scales, *self._half_lengths, nearest[part])
            encode_pieces(turned - centroids[nearest[part]], tables, codes[part])
        return codes, nearest

    def decode(self, codes: UInt8, nearest: UInt16) -> Float32:
        """The vectors float32[T, C] that codes uint8[T, P] and numbers of centroids uint16[T] stand for."""
        values = np.empty((len(codes), len(self.rotation)), np.float32)
        decode_pieces(codes, nearest, self.centroids, self.tables, values)
        lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
        vectors: Float32 = values / np.maximum(lengths, np.float32(1)) @ self.rotation
        return vectors
