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

# Layouts of records.

def dense_vectors(vectors: Float16) -> Record:
    """The vectors of a segment: float16[N, D]."""

def keyword_column(strings: UInt8, offsets: Int64, codes: Int32, rows: Int64) -> Record:
    """A keyword field of a segment: X distinct strings in ascending order, codes int32[P] of these, and the
    document of each, int64[P], ascending.
    """

def dense_graph(vectors: Float16, links: UInt8, offsets: UInt8, widths: Int64) -> Record:
    """An HNSW graph over float16[N, D]: links, of each node those of one level after the other, the free ones
    -1 at the end of each; offsets, N + 1, of each node's; widths int64[levels+1], where those of a level
    begin.

    links: the bytes of int32, offsets: the bytes of int64; both may lie anywhere.
    """

# Products with float16 vectors, `dense_scan.c`. Equal rows have equal products to the last bit.

def products_at(vectors: tuple[Record, ...], places: Int64, rows: Int64, query: Float32) -> Float32:
    """Inner products of float32[D] with rows int64[K] of the segments at places int64[K], as a scan has them:
    float32[K]. vectors: records of `dense_vectors`.
    """

def exact_products_at(vectors: tuple[Record, ...], places: Int64, rows: Int64, query: Float32) -> Float64:
    """The same, added up in float64: float64[K]."""

def scan_vectors(
    vectors: tuple[Record, ...],
    stretches: Int64,
    numbers: Int64,
    bits: UInt8,
    query: Float32,
    k: int,
    floor: Float32,
) -> tuple[Int64, Int64, Float32]:
    """The rows of some stretches that may be among the k best, and all that tie with the last: places
    int64[K], rows int64[K], scores float32[K].

    stretches: int64[T, 6], of each the place that is given back, the number of its record of
    `dense_vectors`, from where to where its rows are, whether that is among `numbers` rather than among all,
    and where in `bits` a bit for each row of the segment begins, -1 where all count. floor: float32[1],
    written: of k rows the lowest score, the highest that is known; threads may raise it together.
    """

# Facets, `facets.c`.

def count_facet(
    columns: tuple[Record, ...], documents: Int64, bits: UInt8, begins: Int64, limit: int, seed: int
) -> tuple[Int64, int, int]:
    """The commonest strings of the keyword columns of S segments, of equally common ones the first.

    Returns of each its segment, its place there, and how many documents have it, int64[3 * K]; how many
    strings there are; and how many documents have any. columns: records of `keyword_column`; documents:
    int64[S], how many each segment has. Of these count those whose bits are set: begins int64[S] says where
    the bits of a segment begin in `bits`, -1 where all count. seed: of the hash by which strings are found
    that several segments have; what is returned is the same with any.
    """

# Stored float16, `float16.c`.

def widen_rows(stored: Float16, rows: Int64, values: Float32) -> None:
    """Writes the given rows of float16[N, D] to float32[K, D]."""

# Walks over graphs, `graph.c`.

def walk_graph(
    graph: tuple[Record, ...], query: Float32, entry: int, top: int, effort: int
) -> tuple[Int64, Float32]:
    """The `effort` best vectors that a walk which keeps so many comes by: rows int64[K] and scores
    float32[K], in any order. graph: one record of `dense_graph`; entry, top: the node to begin with, and its
    level.
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

# Rows of values, `rows.c`: codes int32[P] below V, and the row of each, int64[P], ascending.

def set_bits(rows: UInt32, packed: UInt8) -> None:
    """Sets the bit of each of the rows in uint8[⌈N/8⌉], which is written, the first of a byte its lowest."""

def count_rows(codes: Int32, rows: Int64, values: int) -> Int64:
    """How many rows have each of V values, int64[V]; a row that has one twice counts once."""

def group_rows(codes: Int32, rows: Int64, offsets: Int64) -> Int32:
    """The rows of each value, int32[offsets[V]], ascending; offsets: int64[V+1], what `count_rows` counts up
    to each.
    """

# Term statistics, `statistics.c`.

def add_statistics(
    terms: Int32, frequencies: Int32, masses: Int64, total_frequencies: Int64, total_masses: Int64
) -> None:
    """Adds a segment's statistics, of terms int32[X] below V, to those of all, int64[V], written."""
