// Asking memory ahead for what will be read.
#pragma once

#include "arrays.h"

#define LINE_BYTES 64 // of a cache
#define NEAR_BYTES 4096
#define AHEAD 8 // rows that loops ask for before one that lies anywhere is read

// Asks for so many bytes, without waiting for them; of a long piece only for the beginning: the processor sees by
// itself how reading goes on. The address need not be one of an array: nothing is read.
static inline void bring_near(const void *address, int64_t bytes) {
    const char *line = address;
    for (int64_t place = 0; place < bytes && place < NEAR_BYTES; place += LINE_BYTES)
        __builtin_prefetch(line + place, 0, 2);
}
