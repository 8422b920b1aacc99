// Stored tokens as a tile of bytes: copied from int8, or put together from their codes.
#pragma once

#include <string.h>

#include "byte_products.h"
#include "token_store.h"

typedef struct {
    const uint8_t *centroids, *tables; // [centroid_count, kept] and [pieces, ENTRIES, width]
    int64_t centroid_count, kept, pieces, width;
} codebook;

enum { ENTRIES = 256 };

// Of the arguments from `place` on: centroids: uint8[M, R]? and tables: uint8[P, 256, W]?
#define CODEBOOK(place)                                                                                          \
    {ARRAY(uint8_t, place), ARRAY(uint8_t, place + 1), LENGTH(place), WIDTH(place), LENGTH(place + 1), DEPTH(place + 1)}

static inline bool is_whole_codebook(const codebook *book) {
    bool words = book->width == 2 || book->width == 4 || book->width == 8;
    return book->centroid_count > 0 && words && book->kept == book->pieces * book->width;
}

typedef struct {
    uint8_t *bytes; // [TILE, values], OFFSET behind those of a token
    int64_t values;
    int32_t squares[TILE]; // the squared lengths of the tokens
    float scales[TILE]; // what their values are multiplied by
    float longest; // the length of the longest vector
} token_tile;

// Whether a text's tokens can be put into tiles.
static inline bool fits_tile(const stored_text *text, const codebook *book, int64_t values) {
    if (text->scales) return text->size <= values;
    return text->centroids && is_whole_codebook(book) && text->size == book->pieces && book->kept <= values;
}

// Writes a centroid's values plus those of each code, several in a word: no sum carries from one to the next.
#define ASSEMBLE(word, token, codes, centroid, book)                                                             \
    for (int64_t piece = 0; piece < (book)->pieces; piece++) {                                                   \
        word values, entry;                                                                                      \
        memcpy(&values, (centroid) + piece * (int64_t)sizeof(word), sizeof(word));                               \
        memcpy(&entry, (book)->tables + (piece * ENTRIES + (codes)[piece]) * (int64_t)sizeof(word), sizeof(word)); \
        values = (word)(values + entry);                                                                         \
        memcpy((token) + piece * (int64_t)sizeof(word), &values, sizeof(word));                                  \
    }

static inline void assemble_token(
    uint8_t *restrict token, const uint8_t *codes, const uint8_t *centroid, const codebook *book
) {
    if (book->width == 2) {
        ASSEMBLE(uint16_t, token, codes, centroid, book)
    } else if (book->width == 4) {
        ASSEMBLE(uint32_t, token, codes, centroid, book)
    } else {
        ASSEMBLE(uint64_t, token, codes, centroid, book)
    }
}

static inline void copy_token(uint8_t *restrict token, const uint8_t *codes, int64_t count) {
    for (int64_t place = 0; place < count; place++) token[place] = codes[place] ^ OFFSET;
}

// Puts the tokens of a text that fits from `first` on into the tile, and where there are fewer than 8 the last one
// again. False for a token whose centroid there is not.
static inline bool fill_tile(token_tile *tile, const stored_text *text, const codebook *book, int64_t first) {
    int64_t positions[TILE];
    for (int token = 0; token < TILE; token++)
        positions[token] = first + token < text->count ? first + token : text->count - 1;
    for (int token = 0; token < TILE; token++) {
        uint8_t *bytes = tile->bytes + token * tile->values;
        const uint8_t *codes = text->codes + positions[token] * text->size;
        if (text->scales) {
            copy_token(bytes, codes, text->size);
            continue;
        }
        int64_t centroid = text->centroids[positions[token]];
        if (centroid >= book->centroid_count) return false;
        assemble_token(bytes, codes, book->centroids + centroid * book->kept, book);
    }
    square_sums(tile->bytes, tile->values, tile->squares);
    tile->longest = text->scales ? 0 : 1;
    for (int token = 0; token < TILE; token++) {
        int32_t square = tile->squares[token];
        if (text->scales) {
            float length = __builtin_sqrtf((float)square) * text->scales[positions[token]];
            tile->scales[token] = text->scales[positions[token]];
            tile->longest = length > tile->longest ? length : tile->longest;
        } else // a vector of zeros has the product 0, whatever its scale
            tile->scales[token] = 1 / __builtin_sqrtf((float)(square > 1 ? square : 1));
    }
    return true;
}
