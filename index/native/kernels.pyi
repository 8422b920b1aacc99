"""The kernels' types. Letters are lengths; an array that is written is said to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
Int8 = npt.NDArray[np.int8]
UInt16 = npt.NDArray[np.uint16]
Int16 = npt.NDArray[np.int16]
UInt32 = npt.NDArray[np.uint32]
Int32 = npt.NDArray[np.int32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]
Float16 = npt.NDArray[np.float16]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

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

# Token vectors of texts, `token_store.c`.

def token_store(
    codes: UInt8 | None, scales: Float32 | None, centroids: UInt16 | None, offsets: Int64
) -> Record:
    """The token vectors of a segment: codes uint8[T, B], of a codebook or the bytes of int8, None where they
    are float16; scales float32[T] of int8; centroids uint16[T] of a codebook; offsets int64[N+1], where those
    of each text begin.
    """

def token_spans(stores: tuple[Record, ...], places: Int64, rows: Int64) -> tuple[Int64, Int64]:
    """Where the tokens of rows int64[K] of the stores at places int64[K] begin and end: int64[K] both."""

def unpack_int8(codes: Int8, scales: Float32, positions: Int64, vectors: Float32) -> None:
    """Writes codes int8[T, C] x scales float32[T] of the tokens at positions int64[K] to float32[K, C]."""

# Late interaction with texts stored as bytes, `maxsim.c`, M3-Embedding (Chen et al. 2024), section 3.2:
# s_mul = (1/N) sum_i max_j <q_i, e_j>, 0 for a text without tokens.
#
# Texts: the tokens of K texts lie in `token_store` records, the store of each at places int64[K], its tokens
# there from starts up to ends, int64[K] both. A codebook: centroids uint8[M, R], tables uint8[P, 256, W];
# None for int8. A query of N vectors in G groups, of S values each: packed int8[G, S/4, 16, 4], sums
# int32[G, 16], 128 times the sum of each token's values, scales float32[G, 16], errors float64[N], vectors
# float64[N, S].

def near_maxsim(
    stores: tuple[Record, ...],
    places: Int64,
    starts: Int64,
    ends: Int64,
    centroids: UInt8 | None,
    tables: UInt8 | None,
    packed: Int8,
    sums: Int32,
    scales: Float32,
    errors: Float64,
    vectors: Float64,
) -> tuple[Float64, Float64]:
    """Scores of texts with the query as bytes, float64[K], and how far each may be from the exact one,
    float64[K].
    """

def exact_maxsim(
    stores: tuple[Record, ...],
    places: Int64,
    starts: Int64,
    ends: Int64,
    centroids: UInt8 | None,
    tables: UInt8 | None,
    packed: Int8,
    sums: Int32,
    scales: Float32,
    errors: Float64,
    vectors: Float64,
) -> Float64:
    """Scores of texts with the query itself, in float64: float64[K].

    Each query token meets those tokens alone that may be its best: no other comes as near to the best so far
    as twice the error of its bytes.
    """

# Late interaction with centroids alone, `centroids.c`.

def centroid_products(packed: Int8, sums: Int32, tiles: UInt8, shift: int, values: Int16) -> None:
    """Writes the products of a query's tokens and centroids, over 2^shift, to int16[8 T, 16 G].

    packed: int8[G, S/4, 16, 4]; sums: int32[G, 16]; tiles: uint8[T, 8, S], centroids with 128 added.
    """

def centroid_maxsim(
    values: Int16, scales: Float64, stores: tuple[Record, ...], places: Int64, starts: Int64, ends: Int64
) -> Float64:
    """The sum of each lane's best product with a text's centroids, int16[X, L], times scales float64[L]:
    float64[K], 0 for a text without tokens. Texts are as in `near_maxsim`.
    """

# Codebooks, `codebook.c`: M centroids of R values, tables of 256 entries for P pieces of W values each.

def nearest_centroids(
    packed: Int8, sums: Int32, scales: Float32, tiles: UInt8, halves: Float32, nearest: UInt16
) -> None:
    """Writes the nearest centroid of each of N vectors as bytes, as `IntegerQuery` has them, to uint16[N].

    tiles: uint8[T, 8, S], centroids with 128 added; halves: float32[8 T], half of each one's squared length.
    """

def encode_pieces(rests: Float32, tables: Float32, codes: UInt8) -> None:
    """Writes the nearest entry, of equal ones the first, of each piece of rests float32[T, R] to uint8[T, P].

    tables: float32[P, W, 256].
    """

def decode_pieces(codes: UInt8, nearest: UInt16, centroids: UInt8, tables: UInt8, values: Float32) -> None:
    """Writes what codes uint8[T, P] with centroids' numbers uint16[T] stand for, in steps, to float32[T, R].

    centroids: uint8[M, R] and tables: uint8[P, 256, W], 64 added.
    """

# Token pooling, `pooling.c`.

def pool_tokens(
    vectors: Float32, offsets: Int64, starts: Int64, factor: int, run: int, found: Float32
) -> None:
    """Writes the means of each text's clusters, one for `factor` tokens or a part of so many, in runs of so
    many tokens.

    vectors: float32[T, C]; offsets: int64[N+1], where the tokens of each text begin; starts: int64[N+1],
    where its means do in float32[P, C], which is written.
    """

# Packed byte strings, `packed.c`: data uint8, offsets int64[N+1] of N strings.

def find_packed(
    data: UInt8, offsets: Int64, order: Int64, wanted: UInt8, wanted_offsets: Int64, likely: Int64
) -> Int64:
    """The place of each of T wanted byte strings among X distinct ones, int64[T]; -1 where it is not there.

    order: int64[X], the places by ascending string; likely: which of the wanted to look for.
    """

def common_packed(few: UInt8, few_offsets: Int64, many: UInt8, many_offsets: Int64) -> tuple[Int64, Int64]:
    """The places of the byte strings that two lists have in common, int64[K] in each, ascending; both ascend
    without repeats.
    """

def sort_packed(data: UInt8, offsets: Int64) -> Int64:
    """The places of N byte strings in ascending order, int64[N]; equal ones stay as they are."""

def new_packed(data: UInt8, offsets: Int64, order: Int64) -> Bool:
    """Which byte strings, in ascending order int64[M] of places, differ from the one before: bool[M]."""

def first_packed(data: UInt8, offsets: Int64, count: int) -> Int64:
    """The places of the `count` smallest of N byte strings, 1 to N, in no order; of equal ones the first."""

def gather_packed(data: UInt8, offsets: Int64, positions: Int64) -> UInt8:
    """The bytes of the strings at some positions, one after the other."""

def hash_packed(data: UInt8, offsets: Int64) -> UInt64:
    """A hash of each of N byte strings, uint64[N]; the same in every process."""

def add_hashes(words: UInt64, hashes: UInt64) -> None:
    """Sets the bits of each hash in its word of uint64[W], which is written; W is a power of 2."""

def passing_hashes(words: UInt64, hashes: UInt64) -> Int64:
    """The places of the hashes all of whose bits are set in uint64[W], ascending."""

# Term statistics, `statistics.c`.

def add_statistics(
    terms: Int32, frequencies: Int32, masses: Int64, total_frequencies: Int64, total_masses: Int64
) -> None:
    """Adds a segment's statistics, of terms int32[X] below V, to those of all, int64[V], written."""
