// Inner products of a query with stored float16 rows, at the speed at which memory gives them.
//
// A product is added up in four chains of lanes, which do not wait for each other, then lane by lane, then what is
// left: the same order in every variant and wherever a row lies, so equal rows have equal products to the last bit.
#pragma once

#include "lanes.h"

#define CHAINS 4
#define EXPONENT 0x7C00u // the bits of a float16 that are all set in infinities and what is no number

typedef uint16_t half; // the bits of a float16

typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));
typedef float floats16 __attribute__((vector_size(64)));
typedef double doubles2 __attribute__((vector_size(16)));
typedef double doubles4 __attribute__((vector_size(32)));
typedef double doubles8 __attribute__((vector_size(64)));
typedef uint16_t shorts8 __attribute__((vector_size(16)));
typedef int32_t ints8 __attribute__((vector_size(32)));
typedef uint32_t words8 __attribute__((vector_size(32)));

// The values of 8 float16 numbers. Where the processor does not convert them, their bits are moved to their places,
// where they are too small by the difference of the exponents' biases; infinities and what is no number keep the
// largest exponent.
static inline void widen_8(const half *stored, floats8 *values) {
#if defined(__F16C__)
    __m256 converted = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)stored));
    memcpy(values, &converted, sizeof *values);
#elif defined(__aarch64__)
    float16x8_t loaded = vreinterpretq_f16_u16(vld1q_u16(stored));
    float32x4_t converted[2] = {vcvt_f32_f16(vget_low_f16(loaded)), vcvt_high_f32_f16(loaded)};
    memcpy(values, converted, sizeof *values);
#else
    shorts8 loaded;
    memcpy(&loaded, stored, sizeof loaded);
    words8 bits = __builtin_convertvector(loaded, words8) << 16;
    words8 unbounded = (words8)((bits & EXPONENT << 16) == EXPONENT << 16) & 0x7F800000;
    floats8 scaled = (floats8)((words8)((ints8)bits >> 3) & 0x8FFFE000) * 0x1p112f;
    *values = (floats8)((words8)scaled | unbounded);
#endif
}

static inline void widen_16(const half *stored, floats16 *values) {
#if defined(__AVX512F__)
    __m512 converted = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)stored));
    memcpy(values, &converted, sizeof *values);
#else
    floats8 parts[2];
    widen_8(stored, &parts[0]);
    widen_8(stored + 8, &parts[1]);
    memcpy(values, parts, sizeof parts);
#endif
}

static inline float widen(half stored) {
    half padded[8] = {stored};
    floats8 values;
    widen_8(padded, &values);
    return values[0];
}

static inline float sum_16(const floats16 *values) {
    floats8 eight[2];
    memcpy(eight, values, sizeof eight);
    eight[0] += eight[1];
    floats4 four[2];
    memcpy(four, eight, sizeof four);
    four[0] += four[1];
    return (four[0][0] + four[0][2]) + (four[0][1] + four[0][3]);
}

static inline double sum_8(const doubles8 *values) {
    doubles4 four[2];
    memcpy(four, values, sizeof four);
    four[0] += four[1];
    return (four[0][0] + four[0][2]) + (four[0][1] + four[0][3]);
}

// Of a row and a query of so many values.
static inline float half_product(const half *row, const float *query, int64_t dimension) {
    floats16 sums[CHAINS] = {{0}};
    int64_t place = 0;
    for (; place + CHAINS * LANES <= dimension; place += CHAINS * LANES)
        for (int chain = 0; chain < CHAINS; chain++) {
            floats16 values, asked;
            widen_16(row + place + chain * LANES, &values);
            memcpy(&asked, query + place + chain * LANES, sizeof asked);
            sums[chain] += values * asked;
        }
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float total = sum_16(&sums[0]);
    for (; place < dimension; place++) total += widen(row[place]) * query[place];
    return total;
}

// The same with a query of float64, added up in float64.
static inline double exact_half_product(const half *row, const double *query, int64_t dimension) {
    enum { DOUBLES = 8 };
    doubles8 sums[CHAINS] = {{0}};
    int64_t place = 0;
    for (; place + CHAINS * DOUBLES <= dimension; place += CHAINS * DOUBLES)
        for (int chain = 0; chain < CHAINS; chain++) {
            floats8 values;
            doubles8 asked;
            widen_8(row + place + chain * DOUBLES, &values);
            memcpy(&asked, query + place + chain * DOUBLES, sizeof asked);
            sums[chain] += __builtin_convertvector(values, doubles8) * asked;
        }
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double total = sum_8(&sums[0]);
    for (; place < dimension; place++) total += (double)widen(row[place]) * query[place];
    return total;
}
