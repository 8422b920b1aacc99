// The tables of all files, for one variant of the processor.

#include "arrays.h"

// Files with kernels.
#define FILES(EACH) \
    EACH(centroids) \
    EACH(codebook) \
    EACH(dense_scan) \
    EACH(facets) \
    EACH(float16) \
    EACH(graph) \
    EACH(maxsim) \
    EACH(nearest) \
    EACH(packed) \
    EACH(pooling) \
    EACH(rows) \
    EACH(sparse_build) \
    EACH(sparse_scores) \
    EACH(sparse_search) \
    EACH(statistics) \
    EACH(terms) \
    EACH(token_store)

#define DECLARED(name) extern const kernel_entry TABLE(name)[];
FILES(DECLARED)

#define LISTED(name) TABLE(name),
extern const kernel_entry *const OF_VARIANT(kernels, VARIANT)[];
const kernel_entry *const OF_VARIANT(kernels, VARIANT)[] = {FILES(LISTED) NULL};
