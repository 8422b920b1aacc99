// Lexical weights by document: int64[N+1] offsets, token ids int32[W], ascending in a row, and weights float32[W].
#pragma once

#include "arrays.h"

#define BLOCK 32768 // documents of a block, fixed by the format; 64 KiB of accumulators stay in cache

typedef struct {
    const int64_t *indptr;
    const int32_t *token_ids;
    const float *weights;
    int64_t count, values;
} rows;

#define ROWS(indptr_place, token_ids_place, weights_place)                                                       \
    {ARRAY(int64_t, indptr_place), ARRAY(int32_t, token_ids_place), ARRAY(float, weights_place),                 \
     LENGTH(indptr_place) - 1, LENGTH(token_ids_place)}

typedef struct {
    int64_t start, end; // -1 for a row that is not there or does not lie within the values
} row_span;

static inline row_span span_of(const rows *all, int64_t row) {
    if (outside(row, all->count)) return (row_span){-1, -1};
    int64_t start = all->indptr[row], end = all->indptr[row + 1];
    return start < 0 || start > end || end > all->values ? (row_span){-1, -1} : (row_span){start, end};
}

// Where a row's values lie; leaves the kernel where there is none, or its offsets lead out of the values.
#define CHECKED_ROW(name, all, row)                                                                              \
    row_span name = span_of(&(all), row);                                                                        \
    if (name.start < 0) return damaged(call, "a row, or an offset there,", row, (all).count)
