"""The codebook that some codecs of token vectors have.

It stands for a vector x by a centroid and a few bytes, each for some values of the rest. x is turned
by a rotation R, which may leave out dimensions; its centroid c is the nearest one; the rest R x - c is cut
into pieces, each coded as the nearest of the 256 entries of its table (product quantization of residuals:
Jégou, Douze and Schmid 2011, section 4; R as Ge et al. 2013). What is stored stands for `R^T (c + entries)`,
scaled to length 1, which token vectors have. `tercet.index.token_vectors.coding` codes by it.

Centroids and entries are bytes of one step, so small that their sums fit a byte: what is added up are the
very values that inner products are taken with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from tercet.index.errors import DamagedIndexError
from tercet.index.files.arrays import frozen
from tercet.models.files import UNREADABLE_ARRAYS
from tercet.models.representations import Float32

UInt8 = npt.NDArray[np.uint8]

ENTRIES = 256
HALF_OFFSET = 64  # added to values of centroids and of entries alike
LARGEST_HALF = HALF_OFFSET - 1
MAX_CENTROIDS = 65_536
WIDTHS = (2, 4, 8)  # values that are added up as one number
SIGNS = 8  # of a code's byte

# As `index/native/byte_products.h` has them.
OFFSET = 128  # is added to values of the side that the instructions take without sign
VALUES_AT_ONCE = 64  # vectors have a multiple of these
TILE = 8  # centroids that are multiplied together


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
        except (*UNREADABLE_ARRAYS, LookupError) as error:
            raise DamagedIndexError(f"{name} is no codebook ({error}); restore it") from error

    @cached_property
    def longest_centroid(self) -> float:
        """The length of the longest centroid, in steps."""
        return float(np.sqrt(np.square(self.halves[0]).sum(axis=1).max()))

    @cached_property
    def centroid_tiles(self) -> UInt8:
        """As tiles of kernels uint8[T, 8, S]: 128 added instead of 64, zeros behind."""
        count, kept = self.centroids.shape
        values = -(-kept // VALUES_AT_ONCE) * VALUES_AT_ONCE
        tiles = np.full((-(-count // TILE) * TILE, values), OFFSET, np.uint8)
        tiles[:count, :kept] = self.centroids + np.uint8(OFFSET - HALF_OFFSET)
        return frozen(tiles.reshape(-1, TILE, values))

    @cached_property
    def halves(self) -> tuple[Float32, Float32]:
        """Centroids float32[M, R] and tables float32[P, R/P, 256], in steps."""
        centroids = self.centroids.astype(np.float32) - np.float32(HALF_OFFSET)
        tables = self.tables.astype(np.float32) - np.float32(HALF_OFFSET)
        return centroids, np.ascontiguousarray(tables.transpose(0, 2, 1))


@cache
def sign_codebook(dimension: int) -> Codebook:
    """The codebook of the codec `sign`, of one bit a value, with nothing to learn.

    It has one centroid, which is 0, and one table for all pieces. Raises ValueError for a dimension that is
    no multiple of 8.

    Vectors are turned by a rotation drawn at random, which spreads over all values what some of them would
    hold alone; a byte then holds the signs of eight values (random hyperplanes: Charikar 2002, section 3).
    """
    if dimension <= 0 or dimension % SIGNS:
        raise ValueError(f"vectors of {dimension} values cannot be cut into pieces of {SIGNS}; use int8")
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dimension, dimension)))
    positive = np.unpackbits(np.arange(ENTRIES, dtype=np.uint8)[:, None], axis=1).astype(np.bool_)
    table = np.where(positive, HALF_OFFSET + LARGEST_HALF, HALF_OFFSET - LARGEST_HALF).astype(np.uint8)
    return Codebook(
        np.ascontiguousarray(rotation, np.float32),
        np.full((1, dimension), HALF_OFFSET, np.uint8),
        np.repeat(table[None], dimension // SIGNS, axis=0),
        1 / (LARGEST_HALF * dimension**0.5),
    )
