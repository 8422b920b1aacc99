// Inner products of 8-bit vectors, many at a time.
//
// A tile of TILE document tokens meets groups of QUERY_LANES query tokens. Four values of a document token go to
// all lanes at once, so no sum ever crosses lanes: a group costs one instruction for 4 x 16 products where the
// processor multiplies bytes (AVX-512 VNNI), and a few where it multiplies 16-bit numbers. All give the same sums:
// no step rounds or saturates. Document values are stored with OFFSET added, since the instruction takes that side
// without sign; who calls subtracts OFFSET times the query's sum.
//
// Another unit of multiplication takes another `group_value`, `widened_groups` and `multiply`.
#pragma once

#include "arrays.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { TILE = 8, QUERY_LANES = 16, LANE_VALUES = 4, OFFSET = 128, VALUES_AT_ONCE = LANE_VALUES * QUERY_LANES };

// What a group's values are multiplied as; they are widened once, and meet many tiles.
#if defined(__AVX512VNNI__)
typedef int8_t group_value;
#else
typedef int16_t group_value;
#endif

// Packed query values as `multiply` takes them, of so many groups of `values` each; NULL where memory is short.
static inline const group_value *widened_groups(call *call, const int8_t *packed, int64_t groups, int64_t values) {
#if defined(__AVX512VNNI__)
    (void)call, (void)groups, (void)values;
    return packed;
#else
    int64_t count = groups * values * QUERY_LANES;
    group_value *widened = space(call, count, sizeof *widened);
    for (int64_t place = 0; widened && place < count; place++) widened[place] = packed[place];
    return widened;
#endif
}

// Writes the inner products of a group of query tokens [S/4, 16, 4] and a tile uint8[8, S], S a multiple of 4.
#if defined(__AVX512VNNI__)

static inline void multiply(
    const group_value *group, const uint8_t *tile, int64_t values, int32_t products[TILE][QUERY_LANES]
) {
    __m512i sums[TILE];
    for (int token = 0; token < TILE; token++) sums[token] = _mm512_setzero_si512();
    for (int64_t place = 0; place < values; place += LANE_VALUES) {
        __m512i query = _mm512_loadu_si512(group + place * QUERY_LANES);
#pragma GCC unroll 8
        for (int token = 0; token < TILE; token++) {
            int32_t four;
            __builtin_memcpy(&four, tile + token * values + place, sizeof four);
            sums[token] = _mm512_dpbusd_epi32(sums[token], _mm512_set1_epi32(four), query);
        }
    }
    for (int token = 0; token < TILE; token++) _mm512_storeu_si512(products[token], sums[token]);
}

#elif defined(__AVX2__)

// More rows do not fit the registers; a group's 64 values of 16 bits take 4.
enum { ROWS_AT_ONCE = 2, GROUP_PARTS = 4 };

static inline void multiply(
    const group_value *group, const uint8_t *tile, int64_t values, int32_t products[TILE][QUERY_LANES]
) {
    for (int first = 0; first < TILE; first += ROWS_AT_ONCE) {
        __m256i sums[ROWS_AT_ONCE][GROUP_PARTS];
        for (int row = 0; row < ROWS_AT_ONCE; row++)
            for (int part = 0; part < GROUP_PARTS; part++) sums[row][part] = _mm256_setzero_si256();
        for (int64_t place = 0; place < values; place += LANE_VALUES) {
            __m256i query[GROUP_PARTS];
            for (int part = 0; part < GROUP_PARTS; part++)
                query[part] = _mm256_loadu_si256((const __m256i *)(group + place * QUERY_LANES) + part);
            for (int row = 0; row < ROWS_AT_ONCE; row++) {
                int32_t four;
                __builtin_memcpy(&four, tile + (first + row) * values + place, sizeof four);
                __m256i document = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
                for (int part = 0; part < GROUP_PARTS; part++)
                    sums[row][part] = _mm256_add_epi32(sums[row][part], _mm256_madd_epi16(document, query[part]));
            }
        }
        for (int row = 0; row < ROWS_AT_ONCE; row++)
            for (int part = 0; part < GROUP_PARTS; part += 2) { // each lane's two sums, which lie side by side
                __m256i added = _mm256_hadd_epi32(sums[row][part], sums[row][part + 1]);
                __m256i in_order = _mm256_permute4x64_epi64(added, _MM_SHUFFLE(3, 1, 2, 0));
                _mm256_storeu_si256((__m256i *)products[first + row] + part / 2, in_order);
            }
    }
}

#else

static inline void multiply(
    const group_value *group, const uint8_t *tile, int64_t values, int32_t products[TILE][QUERY_LANES]
) {
    for (int token = 0; token < TILE; token++) {
        int32_t sums[2 * QUERY_LANES] = {0};
        for (int64_t place = 0; place < values; place += LANE_VALUES) {
            const group_value *query = group + place * QUERY_LANES;
            int16_t document[LANE_VALUES];
            for (int value = 0; value < LANE_VALUES; value++)
                document[value] = tile[token * values + place + value];
            for (int half = 0; half < 2 * QUERY_LANES; half++) {
                const int16_t *two = document + half % 2 * 2;
                sums[half] += two[0] * query[2 * half] + two[1] * query[2 * half + 1];
            }
        }
        for (int lane = 0; lane < QUERY_LANES; lane++) products[token][lane] = sums[2 * lane] + sums[2 * lane + 1];
    }
}

#endif

// Writes the sum of the squared values of each token of a tile uint8[8, S], OFFSET not counted.
static inline void square_sums(const uint8_t *tile, int64_t values, int32_t squares[TILE]) {
    for (int token = 0; token < TILE; token++) {
        int32_t total = 0;
        for (int64_t place = 0; place < values; place++) {
            int16_t value = (int16_t)(tile[token * values + place] - OFFSET);
            total += (int32_t)value * value;
        }
        squares[token] = total;
    }
}
