// Inner products of 8-bit vectors, many at a time.
//
// A tile of TILE document tokens meets groups of LANES query tokens. Four values of a document token go to all
// lanes at once, so no sum ever crosses lanes: a group costs one instruction for 4 x 16 products where the
// processor multiplies bytes (four on ARM), one for 8 x 64 x 16 where it multiplies matrices of them (AMX), and a
// few where it multiplies 16-bit numbers. All give the same sums: no step rounds or saturates. Document values are
// stored with BYTE_OFFSET added, since most instructions take that side without sign; `less_offset` takes away what
// that adds to products.
#pragma once

#include "lanes.h"

enum { TILE = 8, BYTE_OFFSET = 128, VALUES_AT_ONCE = LANE_BYTES * LANES };
enum { GROUPS_AT_ONCE = 2 }; // groups that share what is read of a tile

#if defined(__AMX_INT8__) || defined(MIXES_SIGNS) || defined(BOTH_SIGNED)
#define MULTIPLIES_BYTES
#endif

// What is multiplied: bytes, or the same values as 16-bit numbers, made once for all that they meet.
#if defined(MULTIPLIES_BYTES)
typedef int8_t group_value;
typedef uint8_t tile_value; // with their sign where BOTH_SIGNED is set
#else
typedef int16_t group_value;
typedef int16_t tile_value;
#endif

// Packed query values as `multiply` takes them, of so many groups of `values` each; NULL where memory is short.
static inline const group_value *widened_groups(call *call, const int8_t *packed, int64_t groups, int64_t values) {
#if defined(MULTIPLIES_BYTES) && !defined(__ARM_FEATURE_MATMUL_INT8)
    (void)call, (void)groups, (void)values;
    return packed;
#else
    int64_t count = groups * values * LANES;
    group_value *widened = space(call, count, sizeof *widened);
    for (int64_t place = 0; widened && place < count; place++) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
        // Eight values of each lane side by side: [S/8, 16, 8].
        int64_t half = place / LANE_BYTES % 2, lane = place / (2 * LANE_BYTES) % LANES;
        int64_t step = place / (2 * VALUES_AT_ONCE) * 2 + half;
        widened[place] = packed[(step * LANES + lane) * LANE_BYTES + place % LANE_BYTES];
#else
        widened[place] = packed[place];
#endif
    }
    return widened;
#endif
}

// A tile uint8[8, S] as `multiply` takes it; `room` for as many values is where it goes unless it is so already.
static inline const tile_value *widened_tile(
    const uint8_t *restrict bytes, int64_t values, tile_value *restrict room
) {
#if defined(MULTIPLIES_BYTES) && !defined(BOTH_SIGNED)
    (void)values, (void)room;
    return bytes;
#else
    for (int64_t place = 0; place < TILE * (values & -VALUES_AT_ONCE); place++)
#if defined(BOTH_SIGNED)
        room[place] = bytes[place] ^ BYTE_OFFSET;
#else
        room[place] = bytes[place];
#endif
    return room;
#endif
}

// Products less what BYTE_OFFSET adds to them. sums: BYTE_OFFSET times the sum of each lane's query token.
INLINED ints less_offset(ints products, ints sums) {
#if defined(BOTH_SIGNED)
    (void)sums;
    return products;
#else
    return products - sums;
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
        .rows = {TILE, TILE, TILE, VALUES_AT_ONCE / LANE_BYTES},
    };
    _tile_loadconfig(&shapes);
}

static inline void end_products(void) { _tile_release(); }

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, ints products[][TILE]
) {
    _tile_zero(SUMS_OF_FIRST);
    _tile_zero(SUMS_OF_SECOND);
    for (int64_t place = 0; place < values; place += VALUES_AT_ONCE) {
        _tile_loadd(OF_TOKENS, tile + place, values);
        _tile_loadd(OF_GROUP, first + place * LANES, AMX_ROW_BYTES);
        _tile_dpbusd(SUMS_OF_FIRST, OF_TOKENS, OF_GROUP);
        if (groups == 1) continue;
        _tile_loadd(OF_GROUP, first + (values + place) * LANES, AMX_ROW_BYTES);
        _tile_dpbusd(SUMS_OF_SECOND, OF_TOKENS, OF_GROUP);
    }
    _tile_stored(SUMS_OF_FIRST, products[0], AMX_ROW_BYTES);
    if (groups > 1) _tile_stored(SUMS_OF_SECOND, products[1], AMX_ROW_BYTES);
}

#else

static inline void begin_products(void) {}
static inline void end_products(void) {}

#if defined(__ARM_FEATURE_MATMUL_INT8)

INLINED void multiply_four(const group_value *group, const tile_value *tile, int64_t values, ints products[TILE]) {
    row_pair sums[2] = {0};
    for (int64_t place = 0; place < values; place += 2 * LANE_BYTES) {
        uint8x16_t tokens[2];
        for (int pair = 0; pair < 2; pair++) {
            const tile_value *from = tile + 2 * pair * values + place;
            tokens[pair] = vcombine_u8(vld1_u8(from), vld1_u8(from + values));
        }
#pragma GCC unroll 8
        for (int lane = 0; lane < LANES / 2; lane++) {
            int8x16_t of_query = vld1q_s8(group + place * LANES + lane * 4 * LANE_BYTES);
            for (int pair = 0; pair < 2; pair++)
                sums[pair].squares[lane] = vusmmlaq_s32(sums[pair].squares[lane], tokens[pair], of_query);
        }
    }
    for (int pair = 0; pair < 2; pair++) split_rows(&sums[pair], &products[2 * pair], &products[2 * pair + 1]);
}

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, ints products[][TILE]
) {
    for (int group = 0; group < groups; group++)
        for (int token = 0; token < TILE; token += 4)
            multiply_four(
                first + group * values * LANES, tile + token * values, values, &products[group][token]
            );
}

#else

// The values of a group for a step take GROUP_PARTS vectors. As many tokens and groups meet as registers have room
// for their sums.
#if defined(MULTIPLIES_BYTES)
typedef int32_t four_values;
typedef ints values_of_lanes;
#if defined(__AVX512F__)
enum { GROUP_PARTS = 1, GROUPS_TOGETHER = GROUPS_AT_ONCE, TOKENS_TOGETHER = TILE };
#else
enum { GROUP_PARTS = 1, GROUPS_TOGETHER = 1, TOKENS_TOGETHER = 4 };
#endif
#define ADD_STEP(sums, document, group) add_fours(sums, document, group)
#else
typedef int64_t four_values;
typedef int64_t values_of_lanes __attribute__((vector_size(4 * LANES)));
#define ADD_STEP(sums, document, group) add_pairs(sums, group, document)
#if defined(__AVX2__) || defined(__aarch64__)
enum { GROUP_PARTS = 2, GROUPS_TOGETHER = 1, TOKENS_TOGETHER = 2 };
#else
enum { GROUP_PARTS = 2, GROUPS_TOGETHER = 1, TOKENS_TOGETHER = 1 };
#endif
#endif

INLINED ints four_to_all(const tile_value *from) {
    four_values four;
    memcpy(&four, from, sizeof four);
    return (ints)(four - (values_of_lanes){0});
}

// A lane's sum, of which the parts of a group may have halves side by side.
INLINED void store_sums(const ints sums[GROUP_PARTS], ints *products) {
    if (GROUP_PARTS == 1) {
        *products = sums[0];
        return;
    }
    int32_t halves[LANES][GROUP_PARTS];
    memcpy(halves, sums, sizeof halves);
    for (int lane = 0; lane < LANES; lane++) (*products)[lane] = halves[lane][0] + halves[lane][GROUP_PARTS - 1];
}

INLINED void multiply_some(
    const group_value *first, int groups, const tile_value *tile, int64_t values, ints products[][TILE]
) {
    ints sums[GROUPS_TOGETHER][TOKENS_TOGETHER][GROUP_PARTS] = {0};
    for (int64_t place = 0; place < values; place += LANE_BYTES) {
        ints of_query[GROUPS_TOGETHER][GROUP_PARTS];
        for (int group = 0; group < groups; group++)
            for (int part = 0; part < GROUP_PARTS; part++)
                of_query[group][part] =
                    load_ints(first + (group * values + place) * LANES + part * (VALUES_AT_ONCE / GROUP_PARTS));
#pragma GCC unroll 8
        for (int token = 0; token < TOKENS_TOGETHER; token++) {
            ints document = four_to_all(tile + token * values + place);
            for (int group = 0; group < groups; group++)
                for (int part = 0; part < GROUP_PARTS; part++)
                    sums[group][token][part] = ADD_STEP(sums[group][token][part], document, of_query[group][part]);
        }
    }
    for (int group = 0; group < groups; group++)
        for (int token = 0; token < TOKENS_TOGETHER; token++)
            store_sums(sums[group][token], &products[group][token]);
}

INLINED void multiply(
    const group_value *first, int groups, const tile_value *tile, int64_t values, ints products[][TILE]
) {
    int together = groups < GROUPS_TOGETHER ? groups : GROUPS_TOGETHER;
    for (int group = 0; group < groups; group += together)
        for (int token = 0; token < TILE; token += TOKENS_TOGETHER)
            multiply_some(
                first + group * values * LANES, together, tile + token * values, values,
                (ints(*)[TILE])&products[group][token]
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

// Writes the sum of the squared values of each token of a tile uint8[8, S], BYTE_OFFSET not counted; S is a multiple of
// VALUES_AT_ONCE.
static inline void square_sums(const uint8_t *tile, int64_t values, int32_t squares[TILE]) {
    for (int token = 0; token < TILE; token++) {
        int32_t total = 0;
        for (int64_t place = 0; place < (values & -VALUES_AT_ONCE); place++) { // so that the compiler knows it
            int16_t value = (int16_t)(tile[token * values + place] - BYTE_OFFSET);
            total += (int32_t)value * value;
        }
        squares[token] = total;
    }
}
