// The layouts of records; the numbers of their fields are in `layouts.h`.

#include "layouts.h"

const layout_entry layouts_of_records[] = {
    {"inverted_index",
     "terms: int32[T], largest: float32[T], term_entries: int64[T+1], entry_block: int32[E], "
     "entry_start: int64[E+1], entry_column: int32[E], documents: uint16[P], impacts: uint8[P], "
     "columns: uint8[C, L], indptr: int64[N+1], token_ids: int32[W], weights: float32[W], lengths: int32[N]?"},
    {"mask", "allowed: bool[N]?"},
    {"terms", "data: uint8[B], offsets: int64[X+1], beginnings: uint64[Y], frequencies: int32[X]"},
    {"dense_vectors", "vectors: float16[N, D]"},
    {"dense_graph", "vectors: float16[N, D], links: uint8[L], offsets: uint8[O], widths: int64[W+1]"},
    {"keyword_column", "strings: uint8[B], offsets: int64[X+1], codes: int32[P], rows: int64[P]"},
    {"token_store", "codes: uint8[T, B]?, scales: float32[T]?, centroids: uint16[T]?, offsets: int64[N+1]"},
    {NULL, NULL},
};
