// All kernels, compiled once for each variant of the processor: VARIANT is its name.

#include "centroids.c"
#include "codebook.c"
#include "maxsim.c"
#include "packed.c"
#include "pooling.c"
#include "statistics.c"
#include "token_store.c"

#define NAMED(prefix, name) prefix##name
#define TABLES(name) NAMED(kernels_, name)

extern const kernel_entry *const TABLES(VARIANT)[];
const kernel_entry *const TABLES(VARIANT)[] = {
    centroids_kernels,
    codebook_kernels,
    maxsim_kernels,
    packed_kernels,
    pooling_kernels,
    statistics_kernels,
    token_store_kernels,
    NULL,
};
