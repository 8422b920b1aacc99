// Loops over term statistics.

#include "arrays.h"

// Adds a segment's statistics to those of all V terms.
static int add_statistics(call *call) {
    const int32_t *terms = ARRAY(int32_t, 0), *frequencies = ARRAY(int32_t, 1);
    const int64_t *masses = ARRAY(int64_t, 2);
    int64_t *total_frequencies = ARRAY(int64_t, 3), *total_masses = ARRAY(int64_t, 4);
    for (int64_t place = 0; place < LENGTH(0); place++) {
        int32_t term = terms[place];
        if (outside(term, LENGTH(3))) return damaged(call, "a term", term, LENGTH(3));
        total_frequencies[term] += frequencies[place];
        total_masses[term] += masses[place];
    }
    return DONE;
}

const kernel_entry TABLE(statistics)[] = {
    {"add_statistics",
     "terms: int32[X], frequencies: int32[X], masses: int64[X], total_frequencies: int64[V]!, "
     "total_masses: int64[V]!",
     add_statistics, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
