// The layouts of records; the numbers of their fields are in `layouts.h`.

#include "layouts.h"

const layout_entry layouts_of_records[] = {
    {"dense_vectors", "vectors: float16[N, D]"},
    {"dense_graph", "vectors: float16[N, D], links: uint8[L], offsets: uint8[O], widths: int64[W+1]"},
    {"keyword_column", "strings: uint8[B], offsets: int64[X+1], codes: int32[P], rows: int64[P]"},
    {NULL, NULL},
};
