// Token vectors as codes of a codebook, and back.

#include <math.h>

#include "lanes.h"
#include "token_tiles.h"

#define HALF_OFFSET 64 // added to values of centroids and of entries alike

// The nearest centroid is that of the largest product less half its squared length.
static int nearest_centroids(call *call) {
    const int32_t *sums = ARRAY(int32_t, 1);
    const float *scales = ARRAY(float, 2), *halves = ARRAY(float, 4);
    const uint8_t *tiles = ARRAY(uint8_t, 3);
    uint16_t *nearest = ARRAY(uint16_t, 5);
    int64_t groups = LENGTH(0), size = DEPTH(3), count = LENGTH(5);
    if (size % VALUES_AT_ONCE || size != LANE_VALUES * WIDTH(0))
        return damaged(call, "the values of a tile", size, LANE_VALUES * WIDTH(0) + 1);
    if (LENGTH(4) != LENGTH(3) * TILE)
        return damaged(call, "the number of half lengths", LENGTH(4), LENGTH(3) * TILE + 1);
    if (count > groups * QUERY_LANES)
        return damaged(call, "the number of vectors", count, groups * QUERY_LANES + 1);
    const group_value *widened = widened_groups(call, ARRAY(int8_t, 0), groups, size);
    if (!widened) return NO_MEMORY;
    for (int64_t group = 0; group < groups; group++) {
        const int32_t *own_sums = sums + group * QUERY_LANES;
        const lane_floats own_scales = *(const lane_floats *)(scales + group * QUERY_LANES);
        lane_floats best;
        lane_ints number = {0};
        for (int lane = 0; lane < QUERY_LANES; lane++) best[lane] = -INFINITY;
        for (int64_t place = 0; place < LENGTH(3); place++) {
            int32_t products[TILE][QUERY_LANES];
            multiply(widened + group * size * QUERY_LANES, tiles + place * TILE * size, size, products);
            for (int row = 0; row < TILE; row++) {
                lane_ints whole = *(const lane_ints *)products[row] - *(const lane_ints *)own_sums;
                lane_floats product =
                    __builtin_convertvector(whole, lane_floats) * own_scales - halves[place * TILE + row];
                lane_ints higher = product > best;
                number = (higher & (int32_t)(place * TILE + row)) | (~higher & number);
                best = (lane_floats)((higher & (lane_ints)product) | (~higher & (lane_ints)best));
            }
        }
        for (int lane = 0; lane < QUERY_LANES && group * QUERY_LANES + lane < count; lane++)
            nearest[group * QUERY_LANES + lane] = (uint16_t)number[lane];
    }
    return DONE;
}

// The place of the entry nearest to a piece, of equal ones the first; entries: float[width, ENTRIES].
static inline uint8_t nearest_entry(const float *piece, const float *entries, int64_t width) {
    lane_floats best;
    lane_ints number = {0};
    for (int lane = 0; lane < QUERY_LANES; lane++) best[lane] = INFINITY;
    for (int32_t first = 0; first < ENTRIES; first += QUERY_LANES) {
        lane_floats distances = {0};
        for (int64_t place = 0; place < width; place++) {
            lane_floats difference = piece[place] - *(const lane_floats *)(entries + place * ENTRIES + first);
            distances += difference * difference;
        }
        lane_ints lower = distances < best;
        number = (lower & first) | (~lower & number);
        best = (lane_floats)((lower & (lane_ints)distances) | (~lower & (lane_ints)best));
    }
    int32_t found = 0;
    float least = INFINITY;
    for (int lane = 0; lane < QUERY_LANES; lane++)
        if (best[lane] < least || (best[lane] == least && number[lane] + lane < found)) {
            least = best[lane];
            found = number[lane] + lane;
        }
    return (uint8_t)found;
}

static int encode_pieces(call *call) {
    const float *rests = ARRAY(float, 0), *tables = ARRAY(float, 1);
    uint8_t *codes = ARRAY(uint8_t, 2);
    int64_t pieces = LENGTH(1), width = WIDTH(1), size = WIDTH(0);
    if (size != pieces * width) return damaged(call, "the values of a vector", size, pieces * width + 1);
    for (int64_t token = 0; token < LENGTH(0); token++)
        for (int64_t piece = 0; piece < pieces; piece++)
            codes[token * pieces + piece] = nearest_entry(
                rests + token * size + piece * width, tables + piece * width * ENTRIES, width
            );
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
