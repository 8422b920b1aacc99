// Token vectors as codes of a codebook, and back.

#include <math.h>

#include "token_tiles.h"

#define HALF_OFFSET 64 // added to values of centroids and of entries alike

enum { GROUPS_OF_TILE = 8 }; // that each tile of centroids meets while it is in the nearest cache

// The best product of each lane of a group so far, and the number of its centroid.
typedef struct {
    floats best;
    ints number;
} nearest_so_far;

// Vectors as bytes, and what is found of them.
typedef struct {
    const group_value *widened;
    const int32_t *sums; // [groups, LANES]
    const float *scales; // [groups, LANES]
    int64_t size;
    nearest_so_far *found; // [groups]
} coded_vectors;

// Raises the best of some groups by a tile's centroids, of which the first has a number: products less half of
// their squared lengths.
INLINED void raise_nearest(
    const coded_vectors *all, int64_t first, int groups, const tile_value *tile, int64_t number, const float *halves
) {
    ints products[GROUPS_AT_ONCE][TILE];
    multiply(all->widened + first * all->size * LANES, groups, tile, all->size, products);
    for (int group = 0; group < groups; group++) {
        int64_t lane = (first + group) * LANES;
        const ints sums = *(const ints *)(all->sums + lane);
        const floats scales = *(const floats *)(all->scales + lane);
        nearest_so_far own = all->found[first + group];
        for (int row = 0; row < TILE; row++) {
            floats whole = to_floats(less_offset(products[group][row], sums));
            floats product = whole * scales - halves[row];
            ints higher = product > own.best;
            own.number = (higher & ((int32_t)number + row)) | (~higher & own.number);
            own.best = (floats)((higher & (ints)product) | (~higher & (ints)own.best));
        }
        all->found[first + group] = own;
    }
}

static int nearest_centroids_within(call *call) {
    const float *halves = ARRAY(float, 4);
    const uint8_t *tiles = ARRAY(uint8_t, 3);
    uint16_t *nearest = ARRAY(uint16_t, 5);
    int64_t groups = LENGTH(0), size = DEPTH(3), count = LENGTH(5);
    if (size % VALUES_AT_ONCE || size != LANE_BYTES * WIDTH(0))
        return damaged(call, "the values of a tile", size, LANE_BYTES * WIDTH(0) + 1);
    if (LENGTH(4) != LENGTH(3) * TILE)
        return damaged(call, "the number of half lengths", LENGTH(4), LENGTH(3) * TILE + 1);
    if (count > groups * LANES)
        return damaged(call, "the number of vectors", count, groups * LANES + 1);
    SPACE(tile_value, room, TILE * size);
    SPACE(nearest_so_far, found, groups);
    coded_vectors all = {
        .widened = widened_groups(call, ARRAY(int8_t, 0), groups, size),
        .sums = ARRAY(int32_t, 1),
        .scales = ARRAY(float, 2),
        .size = size,
        .found = found,
    };
    if (!all.widened) return NO_MEMORY;
    for (int64_t group = 0; group < groups; group++)
        for (int lane = 0; lane < LANES; lane++) found[group].best[lane] = -INFINITY;
    for (int64_t start = 0; start < groups; start += GROUPS_OF_TILE)
        for (int64_t place = 0; place < LENGTH(3); place++) {
            const tile_value *tile = widened_tile(tiles + place * TILE * size, size, room);
            int64_t number = place * TILE, end = start + GROUPS_OF_TILE < groups ? start + GROUPS_OF_TILE : groups;
            for (int64_t first = start; first < end; first += GROUPS_AT_ONCE)
                if (first + GROUPS_AT_ONCE <= end)
                    raise_nearest(&all, first, GROUPS_AT_ONCE, tile, number, halves + number);
                else
                    raise_nearest(&all, first, 1, tile, number, halves + number);
        }
    for (int64_t vector = 0; vector < count; vector++)
        nearest[vector] = (uint16_t)found[vector / LANES].number[vector % LANES];
    return DONE;
}

MULTIPLYING(nearest_centroids)

enum { TOKENS_OF_TABLE = 64 }; // that each table meets while it is in the nearest cache

// The codes of some tokens' piece, each the place of the nearest entry, of equal ones the first: rests of `size`
// values, entries: float[width, ENTRIES], codes of `pieces` bytes a token. A lane has a token, whose product with an
// entry less half of that one's squared length is highest where the distance is least. The width is a constant.
INLINED void encode_piece(
    const float *rests, int64_t size, const float *entries, int width, uint8_t *codes, int64_t pieces,
    int64_t tokens
) {
    float halves[ENTRIES] = {0};
    for (int place = 0; place < width; place++)
        for (int entry = 0; entry < ENTRIES; entry++) {
            float value = entries[place * ENTRIES + entry];
            halves[entry] += value * value / 2;
        }
    for (int64_t first = 0; first < tokens; first += LANES) {
        int64_t lanes = tokens - first < LANES ? tokens - first : LANES;
        floats values[8] = {0}, best;
        ints number = {0};
        for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
        for (int64_t lane = 0; lane < lanes; lane++)
            for (int place = 0; place < width; place++) values[place][lane] = rests[(first + lane) * size + place];
        for (int32_t entry = 0; entry < ENTRIES; entry++) {
            floats product = values[0] * entries[entry] - halves[entry];
            for (int place = 1; place < width; place++) product += values[place] * entries[place * ENTRIES + entry];
            ints higher = product > best;
            number = (higher & entry) | (~higher & number);
            best = (floats)((higher & (ints)product) | (~higher & (ints)best));
        }
        for (int64_t lane = 0; lane < lanes; lane++) codes[(first + lane) * pieces] = (uint8_t)number[lane];
    }
}

static int encode_pieces(call *call) {
    const float *tables = ARRAY(float, 1);
    int64_t pieces = LENGTH(1), width = WIDTH(1), size = WIDTH(0);
    if (size != pieces * width) return damaged(call, "the values of a vector", size, pieces * width + 1);
    if (width != 2 && width != 4 && width != 8) return damaged(call, "the values of a piece", width, 9);
    for (int64_t first = 0; first < LENGTH(0); first += TOKENS_OF_TABLE) {
        int64_t tokens = LENGTH(0) - first < TOKENS_OF_TABLE ? LENGTH(0) - first : TOKENS_OF_TABLE;
        for (int64_t piece = 0; piece < pieces; piece++) {
            const float *rests = ARRAY(float, 0) + first * size + piece * width;
            const float *entries = tables + piece * width * ENTRIES;
            uint8_t *codes = ARRAY(uint8_t, 2) + first * pieces + piece;
            if (width == 2)
                encode_piece(rests, size, entries, 2, codes, pieces, tokens);
            else if (width == 4)
                encode_piece(rests, size, entries, 4, codes, pieces, tokens);
            else
                encode_piece(rests, size, entries, 8, codes, pieces, tokens);
        }
    }
    return DONE;
}

static int decode_pieces(call *call) {
    const uint8_t *codes = ARRAY(uint8_t, 0);
    const uint16_t *nearest = ARRAY(uint16_t, 1);
    codebook book = CODEBOOK(2);
    float *restrict values = ARRAY(float, 4);
    if (!is_whole_codebook(&book))
        return damaged(call, "the values of a centroid", book.kept, book.pieces * book.width + 1);
    SPACE(uint8_t, assembled, book.kept);
    for (int64_t token = 0; token < LENGTH(0); token++) {
        if (nearest[token] >= book.centroid_count)
            return damaged(call, "a centroid of a token", nearest[token], book.centroid_count);
        assemble_token(assembled, codes + token * book.pieces, book.centroids + nearest[token] * book.kept, &book);
        for (int64_t place = 0; place < book.kept; place++)
            values[token * book.kept + place] = (float)(assembled[place] - 2 * HALF_OFFSET);
    }
    return DONE;
}

const kernel_entry TABLE(codebook)[] = {
    {"nearest_centroids",
     "packed: int8[G, V, 16, 4], sums: int32[G, 16], scales: float32[G, 16], tiles: uint8[T, 8, S], "
     "halves: float32[X], nearest: uint16[N]!",
     nearest_centroids, RELEASES_LOCK},
    {"encode_pieces", "rests: float32[T, R], tables: float32[P, W, 256], codes: uint8[T, P]!", encode_pieces,
     RELEASES_LOCK},
    {"decode_pieces",
     "codes: uint8[T, P], nearest: uint16[T], centroids: uint8[M, R], tables: uint8[P, 256, W], "
     "values: float32[T, R]!",
     decode_pieces, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
