// Late interaction with the centroids of stored tokens alone: each token costs a row of products.

#include "byte_products.h"
#include "token_store.h"

#define LOWEST_PRODUCT (-INT16_MAX)

typedef struct {
    const group_value *widened;
    const int32_t *sums; // [lanes]
    int64_t size, lanes;
    int32_t shift;
} centroid_query;

// Writes the products of a tile and some groups, of which the first is at a place, over 2^shift.
INLINED void write_products(
    const centroid_query *query, int64_t first, int groups, const tile_value *tile, int16_t *found
) {
    ints products[GROUPS_AT_ONCE][TILE];
    multiply(query->widened + first * query->size * LANES, groups, tile, query->size, products);
    for (int row = 0; row < TILE; row++)
        for (int group = 0; group < groups; group++) {
            int64_t lane = (first + group) * LANES;
            ints over = less_offset(products[group][row], load_ints(query->sums + lane)) >> query->shift;
            *(shorts *)(found + row * query->lanes + lane) = __builtin_convertvector(over, shorts);
        }
}

static int centroid_products_within(call *call) {
    const uint8_t *tiles = ARRAY(uint8_t, 2);
    int64_t groups = LENGTH(0), size = DEPTH(2), shift = INTEGER(3), lanes = groups * LANES;
    if (outside(shift, 32)) return damaged(call, "a shift", shift, 32);
    if (size % VALUES_AT_ONCE || size != LANE_BYTES * WIDTH(0))
        return damaged(call, "the values of a tile", size, LANE_BYTES * WIDTH(0) + 1);
    if (LENGTH(4) != LENGTH(2) * TILE)
        return damaged(call, "the number of products", LENGTH(4), LENGTH(2) * TILE + 1);
    if (WIDTH(4) != lanes) return damaged(call, "the lanes of products", WIDTH(4), lanes + 1);
    centroid_query query = {
        .widened = widened_groups(call, ARRAY(int8_t, 0), groups, size),
        .sums = ARRAY(int32_t, 1),
        .size = size,
        .lanes = lanes,
        .shift = (int32_t)shift,
    };
    if (!query.widened) return NO_MEMORY;
    SPACE(tile_value, room, TILE * size);
    for (int64_t place = 0; place < LENGTH(2); place++) {
        const tile_value *tile = widened_tile(tiles + place * TILE * size, size, room);
        int16_t *found = ARRAY(int16_t, 4) + place * TILE * lanes;
        for (int64_t first = 0; first < groups; first += GROUPS_AT_ONCE)
            if (first + GROUPS_AT_ONCE <= groups)
                write_products(&query, first, GROUPS_AT_ONCE, tile, found);
            else
                write_products(&query, first, 1, tile, found);
    }
    return DONE;
}

MULTIPLYING(centroid_products)

// Writes the best products of `count` lanes, which is LANES or twice that, with a text's centroids; false for
// a centroid there is not. Called with a number that the compiler knows, so that they stay in registers.
static inline bool find_best_of_lanes(
    const int16_t *values, int64_t centroids, int64_t lanes, const stored_text *text, int count, int16_t *best
) {
    int16_t highest[2 * LANES];
    for (int lane = 0; lane < count; lane++) highest[lane] = LOWEST_PRODUCT;
    for (int64_t token = 0; token < text->count; token++) {
        if (text->centroids[token] >= centroids) return false;
        const int16_t *row = values + text->centroids[token] * lanes;
        for (int lane = 0; lane < count; lane++)
            highest[lane] = row[lane] > highest[lane] ? row[lane] : highest[lane];
    }
    for (int lane = 0; lane < count; lane++) best[lane] = highest[lane];
    return true;
}

static int centroid_maxsim(call *call) {
    const int16_t *values = ARRAY(int16_t, 0);
    const double *scales = ARRAY(double, 1);
    stored_texts texts = TEXTS(2);
    int64_t centroids = LENGTH(0), lanes = WIDTH(0);
    if (lanes % LANES) return damaged(call, "the lanes of products", lanes, LANES);
    SPACE(int16_t, best, lanes);
    RESULT(double, scores, 0, texts.count);
    for (int64_t number = 0; number < texts.count; number++) {
        if (number + AHEAD < texts.count) {
            stored_text later = text_at(&texts, number + AHEAD);
            if (later.count > 0 && later.centroids)
                bring_near(later.centroids, later.count * (int64_t)sizeof *later.centroids);
        }
        CHECKED_TEXT(text, texts, number);
        if (text.count == 0) continue;
        if (!text.centroids) return damaged(call, "a text without centroids", number, 0);
        bool found = true;
        for (int64_t lane = 0; found && lane < lanes; lane += 2 * LANES)
            found = lane + LANES == lanes
                        ? find_best_of_lanes(values + lane, centroids, lanes, &text, LANES, best + lane)
                        : find_best_of_lanes(values + lane, centroids, lanes, &text, 2 * LANES, best + lane);
        if (!found) return damaged(call, "a centroid of a text", number, centroids);
        for (int64_t lane = 0; lane < lanes; lane++) scores[number] += best[lane] * scales[lane];
    }
    return DONE;
}

const kernel_entry TABLE(centroids)[] = {
    {"centroid_products",
     "packed: int8[G, V, 16, 4], sums: int32[G, 16], tiles: uint8[T, 8, S], shift: int, values: int16[X, L]!",
     centroid_products, RELEASES_LOCK},
    {"centroid_maxsim",
     "values: int16[X, L], scales: float64[L], stores: token_store[Z], places: int64[K], starts: int64[K], "
     "ends: int64[K] -> float64[]",
     centroid_maxsim, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
