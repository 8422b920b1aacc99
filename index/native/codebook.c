// Token vectors as codes of a codebook, and back.

#include <math.h>

#include "token_tiles.h"

#define HALF_OFFSET 64 // added to values of centroids and of entries alike

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
    {"encode_pieces", "rests: float32[T, R], tables: float32[P, W, 256], codes: uint8[T, P]!", encode_pieces,
     RELEASES_LOCK},
    {"decode_pieces",
     "codes: uint8[T, P], nearest: uint16[T], centroids: uint8[M, R], tables: uint8[P, 256, W], "
     "values: float32[T, R]!",
     decode_pieces, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
