// All kernels, compiled once for each variant of the processor: VARIANT is its name.

#include "dense_scan.c"
#include "facets.c"
#include "float16.c"
#include "graph.c"
#include "packed.c"
#include "rows.c"
#include "statistics.c"

#define NAMED(prefix, name) prefix##name
#define TABLES(name) NAMED(kernels_, name)

extern const kernel_entry *const TABLES(VARIANT)[];
const kernel_entry *const TABLES(VARIANT)[] = {
    dense_scan_kernels,
    facets_kernels,
    float16_kernels,
    graph_kernels,
    packed_kernels,
    rows_kernels,
    statistics_kernels,
    NULL,
};
