// Arithmetic of sixteen values at once.
//
// Steps are fused where `fused` says so alone, and every sum has one order, so that all variants of the kernels
// give the same numbers.
#pragma once

#include "lanes.h"

typedef double doubles __attribute__((vector_size(8 * LANES)));
typedef int64_t longs __attribute__((vector_size(8 * LANES)));

INLINED floats load_floats(const float *from) { return *(const floats *)from; }
INLINED void store_floats(float *to, floats values) { *(floats *)to = values; }
INLINED floats all_floats(float value) { return value - (floats){0}; }

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

// The larger of some values' size and of former ones: in the order of whole numbers, in which infinity is above
// numbers, and what is no number is above that, so that neither gets lost.
INLINED floats larger_size(floats values, floats former) {
    ints one = (ints)values & INT32_MAX, other = (ints)former;
#if defined(__AVX512F__)
    return (floats)_mm512_max_epi32((__m512i)one, (__m512i)other);
#elif defined(__aarch64__)
    int32x4_t ones[4], others[4];
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    for (int quarter = 0; quarter < 4; quarter++) ones[quarter] = vmaxq_s32(ones[quarter], others[quarter]);
    memcpy(&former, ones, sizeof former);
    return former;
#else
    ints chosen = one > other;
    return (floats)((chosen & one) | (~chosen & other));
#endif
}

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

// Of sizes.
INLINED float largest_size(floats sizes) {
    int32_t lanes[LANES];
    float found;
    memcpy(lanes, &sizes, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            lanes[lane] = lanes[lane] > lanes[lane + half] ? lanes[lane] : lanes[lane + half];
    memcpy(&found, lanes, sizeof found);
    return found;
}

INLINED int32_t sum_of_ints(ints values) {
    int32_t lanes[LANES], total = 0;
    memcpy(lanes, &values, sizeof lanes);
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

// Adding it to a value within 2^22 leaves no room for a fraction: the last bits are the nearest whole number, the
// even one of two.
#define ROUNDING 0x1.8p23f

// To the nearest whole number. For values within 2^22; others, and those that are no numbers, give any.
INLINED ints rounded(floats values) {
#if defined(__AVX512F__)
    return (ints)_mm512_cvtps_epi32((__m512)values);
#else
    return (ints)(values + ROUNDING) - (ints)all_floats(ROUNDING);
#endif
}

// `one` times `other` plus `added`, rounded once.
INLINED floats fused(floats one, floats other, floats added) {
#if defined(__AVX512F__)
    return (floats)_mm512_fmadd_ps((__m512)one, (__m512)other, (__m512)added);
#elif defined(__FMA__)
    __m256 ones[2], others[2], sums[2];
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    memcpy(sums, &added, sizeof sums);
    for (int half = 0; half < 2; half++) sums[half] = _mm256_fmadd_ps(ones[half], others[half], sums[half]);
    memcpy(&added, sums, sizeof sums);
    return added;
#elif defined(__aarch64__)
    float32x4_t ones[4], others[4], sums[4];
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    memcpy(sums, &added, sizeof sums);
    for (int quarter = 0; quarter < 4; quarter++)
        sums[quarter] = vfmaq_f32(sums[quarter], ones[quarter], others[quarter]);
    memcpy(&added, sums, sizeof sums);
    return added;
#else
    // By doubles, which hold a product whole: a sum that loses bits gets an odd last one on the side of what it
    // lost, so that rounding it to a float decides as rounding the whole sum would (Boldo and Melquiond, 2008).
    doubles product = __builtin_convertvector(one, doubles) * __builtin_convertvector(other, doubles);
    doubles rest = __builtin_convertvector(added, doubles), sum = product + rest, part = sum - product;
    doubles lost = (product - (sum - part)) + (rest - part);
    longs bits = (longs)sum, inexact = ((lost < 0) | (lost > 0)) & ~bits & 1;
    longs outwards = 1 - 2 * ((((longs)lost ^ bits) < 0) & 1);
    return __builtin_convertvector((doubles)(bits + inexact * outwards), floats);
#endif
}

// `scale` times 2^x for x from -100 to 100, within 3e-6 of it and exact at 0: a polynomial for what is left of x
// without its nearest whole number, which then goes to where a float has its exponent.
INLINED floats power_of_two(floats exponents, float scale) {
    floats shifted = exponents + ROUNDING, rest = exponents - (shifted - ROUNDING);
    floats found = fused(rest, all_floats(0.00958285f * scale), all_floats(0.05590643f * scale));
    found = fused(found, rest, all_floats(0.24024099f * scale));
    found = fused(found, rest, all_floats(0.69312419f * scale));
    found = fused(found, rest, all_floats(scale));
    return (floats)((ints)found + ((ints)shifted << 23)); // by which the bits of ROUNDING are gone
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
        found = fused(found, place, all_floats(coefficients[each]));
    return values * fused(near, found, all_floats(0.5f));
}
