// The layouts of records; the numbers of their fields are in `layouts.h`.

#include "layouts.h"

const layout_entry layouts_of_records[] = {
    {"token_store", "codes: uint8[T, B]?, scales: float32[T]?, centroids: uint16[T]?, offsets: int64[N+1]"},
    {NULL, NULL},
};
