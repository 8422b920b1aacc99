// Sixteen values that are worked on together; the compiler splits what is too wide for the processor.
//
// No step is fused and every sum has one order, so that all variants of the kernels give the same numbers.
#pragma once

#include <string.h>

#include "arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINED static inline __attribute__((always_inline))

enum { LANES = 16 };

// They may lie at any place of an array.
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int16_t shorts __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef int8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));

INLINED floats load_floats(const float *from) { return *(const floats *)from; }
INLINED void store_floats(float *to, floats values) { *(floats *)to = values; }
INLINED floats all_floats(float value) { return value - (floats){0}; }
INLINED floats to_floats(ints values) { return __builtin_convertvector(values, floats); }

// The first `count` of them, zeros behind.
INLINED floats load_some(const float *from, int64_t count) {
    if (count >= LANES) return load_floats(from);
    float room[LANES] = {0};
    memcpy(room, from, (size_t)count * sizeof *room);
    return load_floats(room);
}

INLINED void store_some(float *to, floats values, int64_t count) {
    if (count >= LANES)
        store_floats(to, values);
    else
        memcpy(to, &values, (size_t)count * sizeof *to);
}

INLINED floats larger(floats one, floats other) {
#if defined(__AVX512F__)
    return (floats)_mm512_max_ps((__m512)one, (__m512)other);
#else
    ints chosen = one > other;
    return (floats)((chosen & (ints)one) | (~chosen & (ints)other));
#endif
}

INLINED floats smaller(floats one, floats other) {
#if defined(__AVX512F__)
    return (floats)_mm512_min_ps((__m512)one, (__m512)other);
#else
    ints chosen = one < other;
    return (floats)((chosen & (ints)one) | (~chosen & (ints)other));
#endif
}

INLINED floats absolute(floats values) { return (floats)((ints)values & INT32_MAX); }

INLINED float sum_of(floats values) {
    float lanes[LANES];
    memcpy(lanes, &values, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

INLINED float largest_of(floats values) {
    float lanes[LANES];
    memcpy(lanes, &values, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            lanes[lane] = lanes[lane] > lanes[lane + half] ? lanes[lane] : lanes[lane + half];
    return lanes[0];
}

INLINED int32_t sum_of_ints(ints values) {
    int32_t lanes[LANES], total = 0;
    memcpy(lanes, &values, sizeof lanes);
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

// To the nearest whole number, to the even one of two: adding ROUNDING leaves no room for a fraction. For values
// within 2^22; others, and those that are no numbers, give any.
INLINED ints rounded(floats values) {
    const float rounding = 0x1.8p23f;
    floats shifted = values + rounding;
    return (ints)shifted - (ints)all_floats(rounding);
}

// 2^x for x from -100 to 100, within 3e-6 of it.
INLINED floats power_of_two(floats exponents) {
    ints whole = rounded(exponents);
    floats rest = exponents - to_floats(whole);
    floats found = rest * 0.0013333558f + 0.0096181291f;
    found = found * rest + 0.0555041087f;
    found = found * rest + 0.2402265070f;
    found = found * rest + 0.6931471806f;
    found = found * rest + 1.0f;
    return (floats)((ints)found + (whole << 23));
}

// x Phi(x), Phi the normal distribution's, within 5e-6 of it: Phi(x) - 1/2 is odd, so x times a polynomial of x^2,
// fitted for the least error of the product; beyond LIMIT Phi is 0 or 1.
INLINED floats gelu(floats values) {
    static const float coefficients[] = {
        0.00144374882802367f,  -0.00419462192803621f, 0.00539232045412064f, -0.00744336936622858f,
        0.0138641204684973f,   -0.0221875421702862f,  0.0307208150625229f,  -0.0405659265816212f,
        0.0529040992259979f,   -0.0729797631502151f,  0.147212788462639f,
    };
    const float limit = 4.8f;
    floats near = smaller(larger(values, all_floats(-limit)), all_floats(limit));
    floats place = near * near * (2 / (limit * limit)) - 1.0f;
    floats found = all_floats(coefficients[0]);
#pragma GCC unroll 16
    for (size_t each = 1; each < sizeof coefficients / sizeof *coefficients; each++)
        found = found * place + coefficients[each];
    return values * (near * found + 0.5f);
}
