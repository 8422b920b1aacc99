// All kernels, compiled once for each variant of the processor: VARIANT is its name.

#include "packed.c"
#include "statistics.c"

#define NAMED(prefix, name) prefix##name
#define TABLES(name) NAMED(kernels_, name)

extern const kernel_entry *const TABLES(VARIANT)[];
const kernel_entry *const TABLES(VARIANT)[] = {
    packed_kernels,
    statistics_kernels,
    NULL,
};
