// Inner products of 8-bit vectors, many at a time.
//
// A tile of TILE document tokens meets groups of QUERY_LANES query tokens. Four values of a document token go to
// all lanes at once, so no sum ever crosses lanes: a group costs one instruction for 4 x 16 products where the
// processor multiplies bytes (AVX-512 VNNI), one for 8 x 64 x 16 where it multiplies matrices of them (AMX), and a
// few where it multiplies 16-bit numbers. All give the same sums: no step rounds or saturates. Document values are
// stored with OFFSET added, since the instructions take that side without sign; who calls subtracts OFFSET times
// the query's sum.
#pragma once

#include "lanes.h"

enum { TILE = 8, LANE_VALUES = 4, OFFSET = 128, VALUES_AT_ONCE = LANE_VALUES * QUERY_LANES };
enum { GROUPS_AT_ONCE = 2 }; // groups that share what is read of a tile

#define INLINED static inline __attribute__((always_inline))

#if defined(__AMX_INT8__) || defined(__AVX512VNNI__)
#define MULTIPLIES_BYTES
#endif

// What is multiplied: bytes, or the same values as 16-bit numbers, made once for all that they meet.
#if defined(MULTIPLIES_BYTES)
typedef int8_t group_value;
typedef uint8_t tile_value;
#else
typedef int16_t group_value;
typedef int16_t tile_value;
#endif

// Packed query values as `multiply` takes them, of so many groups of `values` each; NULL where memory is short.
static inline const group_value *widened_groups(call *call, const int8_t *packed, int64_t groups, int64_t values) {
#if defined(MULTIPLIES_BYTES)
    (void)call, (void)groups, (void)values;
    return packed;
#else
    int64_t count = groups * values * QUERY_LANES;
    group_value *widened = space(call, count, sizeof *widened);
    for (int64_t place = 0; widened && place < count; place++) widened[place] = packed[place];
    return widened;
#endif
}

// A tile uint8[8, S] as `multiply` takes it; `room` for as many values is where it goes unless it is so already.
static inline const tile_value *widened_tile(
    const uint8_t *restrict bytes, int64_t values, tile_value *restrict room
) {
#if defined(MULTIPLIES_BYTES)
    (void)values, (void)room;
    return bytes;
#else
    for (int64_t place = 0; place < TILE * (values & -VALUES_AT_ONCE); place++) room[place] = bytes[place];
    return room;
#endif
}

// `multiply(first, groups, tile, values, products)` writes the inner products of a tile [8, S] and so many groups
// [S/4, 16, 4] from one on, at most GROUPS_AT_ONCE and a constant, so that sums stay in registers; S is a multiple
// of VALUES_AT_ONCE. What calls it is a kernel that is `MULTIPLYING`.
#if defined(__AMX_INT8__)

// Tiles of the processor: what is multiplied of tokens and of a group at once, and the sums of two groups.
#define SUMS_OF_FIRST 0
#define SUMS_OF_SECOND 1
#define OF_TOKENS 2
#define OF_GROUP 3
#define AMX_TILES 8
#define AMX_ROW_BYTES 64

// As the instruction reads it.
typedef struct {
    uint8_t palette, first_row, unused[14];
    uint16_t row_bytes[2 * AMX_TILES];
    uint8_t rows[2 * AMX_TILES];
} amx_shapes;

static inline void begin_products(void) {
    amx_shapes shapes = {
        .palette = 1,
        .row_bytes = {AMX_ROW_BYTES, AMX_ROW_BYTES, AMX_ROW_BYTES, AMX_ROW_BYTES},
        .rows = {TILE, TILE, TILE, VALUES_AT_ONCE / LANE_VALUES},
    };
    _tile_loadconfig(&shapes);
}

static inline void end_products(void) { _tile_release(); }

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, lane_ints products[][TILE]
) {
    _tile_zero(SUMS_OF_FIRST);
    _tile_zero(SUMS_OF_SECOND);
    for (int64_t place = 0; place < values; place += VALUES_AT_ONCE) {
        _tile_loadd(OF_TOKENS, tile + place, values);
        _tile_loadd(OF_GROUP, first + place * QUERY_LANES, AMX_ROW_BYTES);
        _tile_dpbusd(SUMS_OF_FIRST, OF_TOKENS, OF_GROUP);
        if (groups == 1) continue;
        _tile_loadd(OF_GROUP, first + (values + place) * QUERY_LANES, AMX_ROW_BYTES);
        _tile_dpbusd(SUMS_OF_SECOND, OF_TOKENS, OF_GROUP);
    }
    _tile_stored(SUMS_OF_FIRST, products[0], AMX_ROW_BYTES);
    if (groups > 1) _tile_stored(SUMS_OF_SECOND, products[1], AMX_ROW_BYTES);
}

#else

static inline void begin_products(void) {}
static inline void end_products(void) {}

#if defined(__AVX512VNNI__)

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, lane_ints products[][TILE]
) {
    __m512i sums[GROUPS_AT_ONCE][TILE];
    for (int group = 0; group < groups; group++)
        for (int token = 0; token < TILE; token++) sums[group][token] = _mm512_setzero_si512();
    for (int64_t place = 0; place < values; place += LANE_VALUES) {
        __m512i of_query[GROUPS_AT_ONCE];
        for (int group = 0; group < groups; group++)
            of_query[group] = _mm512_loadu_si512(first + (group * values + place) * QUERY_LANES);
#pragma GCC unroll 8
        for (int token = 0; token < TILE; token++) {
            int32_t four;
            __builtin_memcpy(&four, tile + token * values + place, sizeof four);
            __m512i document = _mm512_set1_epi32(four);
            for (int group = 0; group < groups; group++)
                sums[group][token] = _mm512_dpbusd_epi32(sums[group][token], document, of_query[group]);
        }
    }
    for (int group = 0; group < groups; group++)
        for (int token = 0; token < TILE; token++) products[group][token] = (lane_ints)sums[group][token];
}

#else

// Pairs of 16-bit numbers are multiplied and added: the values of a group for a step take GROUP_PARTS vectors.
#if defined(__AVX2__)

typedef __m256i group_shorts;
enum { ROWS_AT_ONCE = 2, GROUP_PARTS = 4 }; // more do not fit the registers
INLINED group_shorts load_group_shorts(const group_value *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}
INLINED group_shorts four_to_all(int64_t four) { return _mm256_set1_epi64x(four); }
INLINED group_shorts add_products(group_shorts sums, group_shorts one, group_shorts other) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(one, other));
}

#elif defined(__SSE2__)

typedef __m128i group_shorts;
enum { ROWS_AT_ONCE = 1, GROUP_PARTS = 8 };
INLINED group_shorts load_group_shorts(const group_value *from) { return _mm_loadu_si128((const __m128i *)from); }
INLINED group_shorts four_to_all(int64_t four) { return _mm_set1_epi64x(four); }
INLINED group_shorts add_products(group_shorts sums, group_shorts one, group_shorts other) {
    return _mm_add_epi32(sums, _mm_madd_epi16(one, other));
}

#endif

#if defined(__SSE2__)
INLINED void multiply_tokens(
    const group_value *group, const tile_value *tile, int64_t values, lane_ints *products
) {
    group_shorts sums[ROWS_AT_ONCE][GROUP_PARTS] = {0};
    for (int64_t place = 0; place < values; place += LANE_VALUES) {
        group_shorts document[ROWS_AT_ONCE];
        for (int token = 0; token < ROWS_AT_ONCE; token++) {
            int64_t four;
            __builtin_memcpy(&four, tile + token * values + place, sizeof four);
            document[token] = four_to_all(four);
        }
        for (int part = 0; part < GROUP_PARTS; part++) {
            const group_value *here = group + place * QUERY_LANES + part * (VALUES_AT_ONCE / GROUP_PARTS);
            group_shorts of_query = load_group_shorts(here);
            for (int token = 0; token < ROWS_AT_ONCE; token++)
                sums[token][part] = add_products(sums[token][part], of_query, document[token]);
        }
    }
    for (int token = 0; token < ROWS_AT_ONCE; token++) {
        int32_t halves[2 * QUERY_LANES]; // of each lane side by side
        __builtin_memcpy(halves, sums[token], sizeof halves);
        for (int lane = 0; lane < QUERY_LANES; lane++)
            products[token][lane] = halves[2 * lane] + halves[2 * lane + 1];
    }
}

#else

enum { ROWS_AT_ONCE = 1 };
INLINED void multiply_tokens(
    const group_value *group, const tile_value *tile, int64_t values, lane_ints *products
) {
    int32_t sums[QUERY_LANES] = {0};
    for (int64_t place = 0; place < values; place += LANE_VALUES)
        for (int lane = 0; lane < QUERY_LANES; lane++)
            for (int value = 0; value < LANE_VALUES; value++)
                sums[lane] += tile[place + value] * group[place * QUERY_LANES + lane * LANE_VALUES + value];
    __builtin_memcpy(products, sums, sizeof sums);
}

#endif

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, lane_ints products[][TILE]
) {
    for (int group = 0; group < groups; group++)
        for (int token = 0; token < TILE; token += ROWS_AT_ONCE)
            multiply_tokens(
                first + group * values * QUERY_LANES, tile + token * values, values, &products[group][token]
            );
}

#endif
#endif

// The kernel that `name##_within` is, for the table of kernels.
#define MULTIPLYING(name)                                                                                        \
    static int name(call *call) {                                                                                \
        begin_products();                                                                                        \
        int failure = name##_within(call);                                                                       \
        end_products();                                                                                          \
        return failure;                                                                                          \
    }

// Writes the sum of the squared values of each token of a tile uint8[8, S], OFFSET not counted; S is a multiple of
// VALUES_AT_ONCE.
static inline void square_sums(const uint8_t *tile, int64_t values, int32_t squares[TILE]) {
    for (int token = 0; token < TILE; token++) {
        int32_t total = 0;
        for (int64_t place = 0; place < (values & -VALUES_AT_ONCE); place++) { // so that the compiler knows it
            int16_t value = (int16_t)(tile[token * values + place] - OFFSET);
            total += (int32_t)value * value;
        }
        squares[token] = total;
    }
}
