// All kernels, compiled once for each variant of the processor: VARIANT is its name.

#include "packed.c"
#include "sparse_build.c"
#include "sparse_scores.c"
#include "sparse_search.c"
#include "statistics.c"
#include "terms.c"

#define NAMED(prefix, name) prefix##name
#define TABLES(name) NAMED(kernels_, name)

extern const kernel_entry *const TABLES(VARIANT)[];
const kernel_entry *const TABLES(VARIANT)[] = {
    packed_kernels,
    sparse_build_kernels,
    sparse_score_kernels,
    sparse_search_kernels,
    statistics_kernels,
    term_kernels,
    NULL,
};
