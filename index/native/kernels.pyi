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

# Inverted indexes over lexical weights, `sparse_build.c`, `sparse_search.c` and `sparse_scores.c`: S
# segments, N documents of one, V the vocabulary's size, T terms of the query, K candidates. Forward rows
# are indptr int64[N+1], token ids int32[W] and weights float32[W].

def count_block(
    indptr: Int64, token_ids: Int32, weights: Float32, first: int, last: int, counts: Int64, largest: Float32
) -> int:
    """Counts each term's postings among documents from `first` up to `last` and raises its largest weight.

    counts: int64[V], overwritten; largest: float32[V], raised. Returns the first document that breaks a rule
    of `SparseRows` (token ids ascend within the vocabulary, weights are finite and above 0), or -1.
    """

def add_sizes(counts: Int64, rows: int, entries: Int64, postings: Int64, columns: Int64) -> None:
    """Adds a block of so many documents to what each term needs, int64[V] each, which are written."""

def fill_block(
    indptr: Int64,
    token_ids: Int32,
    weights: Float32,
    block: int,
    counts: Int64,
    largest: Float32,
    next_entry: Int64,
    next_posting: Int64,
    next_column: Int64,
    entry_block: Int32,
    entry_start: Int64,
    entry_column: Int32,
    documents: UInt16,
    impacts: UInt8,
    columns: UInt8,
) -> None:
    """Writes a block's entries, postings and columns at the terms' cursors `next_*`, int64[V], which move.

    An impact is ceil(255 · weight / largest weight of the term), from 1 to 255.
    """

def inverted_index(
    terms: Int32,
    largest: Float32,
    term_entries: Int64,
    entry_block: Int32,
    entry_start: Int64,
    entry_column: Int32,
    documents: UInt16,
    impacts: UInt8,
    columns: UInt8,
    indptr: Int64,
    token_ids: Int32,
    weights: Float32,
    lengths: Int32 | None,
) -> Record:
    """The arrays of `index/sparse/inverted_index.py`, with the forward rows that it was built from; lengths:
    int32[N], where these hold frequencies.
    """

def mask(allowed: Bool | None) -> Record:
    """Which documents of a segment may be found, bool[N]; None for all."""

def quantize_query(
    indexes: tuple[Record, ...],
    terms: Int32,
    weights: Float32,
    most: Float64,
    places: Int64,
    multipliers: UInt16,
) -> tuple[float, int, bool]:
    """Integer multipliers of the query's terms in each segment, such that no sum of bounds can overflow.

    terms: int32[S, T], as each segment numbers them, ascending, -1 for one that it lacks; weights:
    float32[T], above 0; most: float64[S], what weights of a segment are at most of those of its index.
    Written: the terms' places in the directories int64[S, T], -1 for one not there; multipliers uint16[S, T]
    = ⌈256 c / unit⌉, with c = query weight · most · largest weight / 255; both in ascending order of the
    largest c of all segments. Returns the unit, the same for all
    segments; the slack Σ(c / unit + 2), each c the largest of all segments, rounded up; and whether sums fit
    16 bits.
    """

def find_candidates(
    indexes: tuple[Record, ...],
    places: Int64,
    multipliers: UInt16,
    slack: int,
    shares: Float64,
    k: int,
    masks: tuple[Record, ...],
    first: int,
    last: int,
    progress: Int64,
    narrow: bool,
    deferred: float,
) -> tuple[Int64, Int64, Int64]:
    """Every document of some segments whose bound is above 0 and may be that of one of the k best.

    A document's bound is the sum over its terms of floor(impact · multiplier / 256) + 1; for terms with a
    column the 1 is added whether or not the document has the term. Its exact score is at least
    share · (bound - slack) units; of k documents that have so much, the least is the floor, which the bounds
    of all others have to reach.

    places, multipliers, slack and narrow are those of `quantize_query`; shares: float64[S]; masks: of S
    segments; progress: int64[2], the highest floor so far, at least 1, which is raised: later calls begin
    with it, and those of other threads go on with it; and how many impacts were read, which is added to.
    deferred: the share of the floor, from 0 to 1, that terms which are not read have at most together, to
    begin with. Returns segments int64[K], ascending, rows and bounds.
    """

def score_rows(
    indptr: Int64,
    token_ids: Int32,
    weights: Float32,
    rows: Int64,
    query_ids: Int32,
    query_weights: Float32,
) -> Float64:
    """Σ query weight · document weight of rows int64[K], float64[K]; query_ids: int32[T], ascending, with
    weights float32[T].
    """

def score_in_segments(
    indexes: tuple[Record, ...],
    terms: Int32,
    weights: Float32,
    base: float,
    slope: float,
    segments: Int64,
    rows: Int64,
) -> Float64:
    """The same of rows int64[K] of segments int64[K], ascending; terms and weights as in `quantize_query`.

    Where forward rows hold frequencies tf, a weight is tf / (tf + base + slope · length).
    """

def score_candidates(
    indexes: tuple[Record, ...],
    terms: Int32,
    weights: Float32,
    base: float,
    slope: float,
    segments: Int64,
    rows: Int64,
    bounds: Int64,
    unit: float,
    k: int,
) -> tuple[Int64, Float32]:
    """The k best of candidates by exact scores, and all that tie with the k-th, if above 0.

    bounds: int64[K], where bound · unit is at least the exact score. Returns the places of those that are
    kept, int64, ascending, and the scores of all, float32[K], 0 where nothing made it necessary to know one.
    """

# Terms of BM25, `terms.c`.

def terms(data: UInt8, offsets: Int64, beginnings: UInt64, frequencies: Int32) -> Record:
    """X packed terms of a segment, ascending, with their beginnings, and how many documents have each."""

def find_beginnings(data: UInt8, offsets: Int64) -> UInt64:
    """The first 8 bytes of every 16th packed string, as numbers in the same order."""

def find_terms(
    segments: tuple[Record, ...], wanted: UInt8, offsets: Int64, places: Int32, frequencies: Int64
) -> None:
    """Writes the number of each of T packed terms in each segment, int32[S, T], -1 where it is not there, and
    adds how many documents have it in all, int64[T].
    """

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

def encode_pieces(rests: Float32, tables: Float32, codes: UInt8) -> None:
    """Writes the nearest entry, of equal ones the first, of each piece of rests float32[T, R] to uint8[T, P].

    tables: float32[P, W, 256].
    """

def decode_pieces(codes: UInt8, nearest: UInt16, centroids: UInt8, tables: UInt8, values: Float32) -> None:
    """Writes what codes uint8[T, P] with centroids' numbers uint16[T] stand for, in steps, to float32[T, R].

    centroids: uint8[M, R] and tables: uint8[P, 256, W], 64 added.
    """

# The nearest of M centroids, `nearest.c`.

def nearest_centroids(
    vectors: Int8,
    scales: Float32,
    centers: UInt8,
    center_halves: Float32,
    reaches: Float32,
    starts: Int64,
    panels: UInt8,
    halves: Float32,
    numbers: UInt16,
    nearest: UInt16,
) -> None:
    """Writes the nearest centroid of vectors scales[N] x int8[N, S] to uint16[N].

    The others are of `CentroidGroups`. Groups are looked at whose center less the reach is nearer than the
    nearest centroid of the group that has the nearest center.
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
