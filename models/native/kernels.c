// The tables of all files, for one variant of the processor.

#include "arrays.h"

// Files with kernels.
#define FILES(EACH) \
    EACH(heads) \
    EACH(layers)

#define DECLARED(name) extern const kernel_entry TABLE(name)[];
FILES(DECLARED)

#define LISTED(name) TABLE(name),
extern const kernel_entry *const OF_VARIANT(kernels, VARIANT)[];
const kernel_entry *const OF_VARIANT(kernels, VARIANT)[] = {FILES(LISTED) NULL};
