// A value for each lane of a group of query tokens, worked on together; the compiler splits what is too wide.
#pragma once

#include "arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { QUERY_LANES = 16 };

// They may lie at any place of an array.
typedef int32_t lane_ints __attribute__((vector_size(QUERY_LANES * 4), aligned(4), may_alias));
typedef float lane_floats __attribute__((vector_size(QUERY_LANES * 4), aligned(4), may_alias));

// Products less what OFFSET adds to them, times a document token's scale; raises what is the best so far.
static inline void raise_lanes(
    const lane_ints *products, const lane_ints *sums, float scale, lane_floats *scaled, lane_floats *best
) {
    *scaled = __builtin_convertvector(*products - *sums, lane_floats) * scale;
    lane_ints higher = *scaled > *best;
    *best = (lane_floats)((higher & (lane_ints)*scaled) | (~higher & (lane_ints)*best));
}

// A bit for each lane whose value is at least the one that is needed, the lowest for the first.
static inline uint32_t reaching_lanes(const lane_floats *values, const lane_floats *needed) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(values), _mm512_loadu_ps(needed), _CMP_GE_OQ);
#elif defined(__AVX2__)
    const float *one = (const float *)values, *other = (const float *)needed;
    __m256 low = _mm256_cmp_ps(_mm256_loadu_ps(one), _mm256_loadu_ps(other), _CMP_GE_OQ);
    __m256 high = _mm256_cmp_ps(_mm256_loadu_ps(one + 8), _mm256_loadu_ps(other + 8), _CMP_GE_OQ);
    return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << 8;
#else
    uint32_t found = 0;
    for (int lane = 0; lane < QUERY_LANES; lane++) found |= (uint32_t)((*values)[lane] >= (*needed)[lane]) << lane;
    return found;
#endif
}
