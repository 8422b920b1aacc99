// Sixteen values that are worked on together, and the steps of their inner products: what each set of instructions
// does for these is written here alone. The compiler splits what is too wide for the processor.
#pragma once

#include <string.h>

#include "arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINED static inline __attribute__((always_inline))

enum { LANES = 16, LANE_BYTES = 4 };

// They may lie at any place of an array.
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int16_t shorts __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint16_t unsigned_shorts __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef int8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));

INLINED floats to_floats(ints values) { return __builtin_convertvector(values, floats); }

INLINED ints load_ints(const void *from) { return *(const ints *)from; }

// `add_fours` adds to each lane the products of its four bytes, of which one side's have no sign. They are up to
// 127 unless MIXES_SIGNS is set: then two products stay within 16 bits, and bytes with and without sign are alike.
// Where BOTH_SIGNED is set, that side may have bytes with a sign instead.
//
// `add_pairs` adds to each lane the products of its two numbers of 16 bits. No step rounds or saturates, so that
// all sets of instructions give the same sums.
#if defined(__AVX512VNNI__)
#define MIXES_SIGNS

INLINED ints add_fours(ints sums, ints without_sign, ints with_sign) {
    return (ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)without_sign, (__m512i)with_sign);
}

INLINED ints add_pairs(ints sums, ints one, ints other) {
    // LLVM makes two instructions of it where sums wait for each other, as if others did not fill the time.
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(one), "v"(other));
    return sums;
}

#elif defined(__AVX2__)

INLINED ints add_fours(ints sums, ints without_sign, ints with_sign) {
    __m256i halves[2], ones[2], others[2];
    memcpy(halves, &sums, sizeof halves);
    memcpy(ones, &without_sign, sizeof ones);
    memcpy(others, &with_sign, sizeof others);
    for (int half = 0; half < 2; half++) {
        __m256i pairs = _mm256_maddubs_epi16(ones[half], others[half]);
        halves[half] = _mm256_add_epi32(halves[half], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    memcpy(&sums, halves, sizeof sums);
    return sums;
}

INLINED ints add_pairs(ints sums, ints one, ints other) {
    __m256i halves[2], ones[2], others[2];
    memcpy(halves, &sums, sizeof halves);
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    for (int half = 0; half < 2; half++)
        halves[half] = _mm256_add_epi32(halves[half], _mm256_madd_epi16(ones[half], others[half]));
    memcpy(&sums, halves, sizeof sums);
    return sums;
}

#elif defined(__aarch64__)
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define MIXES_SIGNS
#elif defined(__ARM_FEATURE_DOTPROD)
#define BOTH_SIGNED
#endif

INLINED ints add_fours(ints sums, ints without_sign, ints with_sign) {
    int32x4_t quarters[4];
    uint8x16_t ones[4];
    int8x16_t others[4];
    memcpy(quarters, &sums, sizeof quarters);
    memcpy(ones, &without_sign, sizeof ones);
    memcpy(others, &with_sign, sizeof others);
    for (int quarter = 0; quarter < 4; quarter++) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
        quarters[quarter] = vusdotq_s32(quarters[quarter], ones[quarter], others[quarter]);
#elif defined(__ARM_FEATURE_DOTPROD)
        quarters[quarter] = vdotq_s32(quarters[quarter], vreinterpretq_s8_u8(ones[quarter]), others[quarter]);
#else
        int8x16_t one = vreinterpretq_s8_u8(ones[quarter]);
        int16x8_t low = vmull_s8(vget_low_s8(one), vget_low_s8(others[quarter]));
        int16x8_t high = vmull_high_s8(one, others[quarter]);
        quarters[quarter] = vpadalq_s16(quarters[quarter], vpaddq_s16(low, high));
#endif
    }
    memcpy(&sums, quarters, sizeof sums);
    return sums;
}

INLINED ints add_pairs(ints sums, ints one, ints other) {
    int32x4_t quarters[4];
    int16x8_t ones[4], others[4];
    memcpy(quarters, &sums, sizeof quarters);
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    for (int quarter = 0; quarter < 4; quarter++) {
        int32x4_t low = vmull_s16(vget_low_s16(ones[quarter]), vget_low_s16(others[quarter]));
        int32x4_t high = vmull_high_s16(ones[quarter], others[quarter]);
        quarters[quarter] = vaddq_s32(quarters[quarter], vpaddq_s32(low, high));
    }
    memcpy(&sums, quarters, sizeof sums);
    return sums;
}

#else

INLINED ints add_fours(ints sums, ints without_sign, ints with_sign) {
    uint8_t ones[LANES][LANE_BYTES];
    int8_t others[LANES][LANE_BYTES];
    memcpy(ones, &without_sign, sizeof ones);
    memcpy(others, &with_sign, sizeof others);
    for (int lane = 0; lane < LANES; lane++)
        for (int value = 0; value < LANE_BYTES; value++) sums[lane] += ones[lane][value] * others[lane][value];
    return sums;
}

#if defined(__SSE2__)

INLINED ints add_pairs(ints sums, ints one, ints other) {
    __m128i quarters[4], ones[4], others[4];
    memcpy(quarters, &sums, sizeof quarters);
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    for (int quarter = 0; quarter < 4; quarter++)
        quarters[quarter] = _mm_add_epi32(quarters[quarter], _mm_madd_epi16(ones[quarter], others[quarter]));
    memcpy(&sums, quarters, sizeof sums);
    return sums;
}

#else

INLINED ints add_pairs(ints sums, ints one, ints other) {
    int16_t ones[LANES][2], others[LANES][2];
    memcpy(ones, &one, sizeof ones);
    memcpy(others, &other, sizeof others);
    for (int lane = 0; lane < LANES; lane++)
        sums[lane] += ones[lane][0] * others[lane][0] + ones[lane][1] * others[lane][1];
    return sums;
}

#endif
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
// One instruction multiplies eight bytes of two rows with eight of two columns and adds up four sums: here those of
// two rows with all lanes, of lanes 2n and 2n + 1 in the n-th.
typedef struct {
    int32x4_t squares[LANES / 2];
} row_pair;

INLINED void split_rows(const row_pair *sums, ints *first, ints *second) {
    int64x2_t rows[2][4];
    for (int quarter = 0; quarter < 4; quarter++) {
        int64x2_t left = vreinterpretq_s64_s32(sums->squares[2 * quarter]);
        int64x2_t right = vreinterpretq_s64_s32(sums->squares[2 * quarter + 1]);
        rows[0][quarter] = vzip1q_s64(left, right);
        rows[1][quarter] = vzip2q_s64(left, right);
    }
    memcpy(first, rows[0], sizeof *first);
    memcpy(second, rows[1], sizeof *second);
}
#endif
