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
    {                                                                                                            \
        ARRAY(uint8_t, place), ARRAY(uint8_t, place + 1), LENGTH(place), WIDTH(place), LENGTH(place + 1),        \
            DEPTH(place + 1)                                                                                     \
    }

static inline bool is_whole_codebook(const codebook *book) {
    bool words = book->width == 2 || book->width == 4 || book->width == 8;
    return book->centroid_count > 0 && words && book->kept == book->pieces * book->width;
}

typedef struct {
    uint8_t *bytes; // [TILE, values], BYTE_OFFSET behind those of a token
    tile_value *room; // for them as they are multiplied
    const tile_value *widened; // they as they are multiplied
    int64_t values;
    int32_t squares[TILE]; // the squared lengths of the tokens
    float scales[TILE]; // what their values are multiplied by
    float longest; // the length of the longest vector
} token_tile;

static inline int new_tile(call *call, int64_t values, token_tile *tile) {
    SPACE(uint8_t, bytes, TILE * values);
    SPACE(tile_value, room, TILE * values);
    memset(bytes, BYTE_OFFSET, (size_t)(TILE * values));
    *tile = (token_tile){.bytes = bytes, .room = room, .values = values};
    return DONE;
}

// Whether a text's tokens can be put into tiles.
static inline bool fits_tile(const stored_text *text, const codebook *book, int64_t values) {
    if (text->scales) return text->size <= values;
    return text->centroids && is_whole_codebook(book) && text->size == book->pieces && book->kept <= values;
}

enum { WORD = 8 }; // bytes that are added up and written at once: no sum carries from one to the next

// Writes a centroid's values plus those of each code; called with a width that the compiler knows.
static inline void assemble_pieces(
    uint8_t *restrict token, const uint8_t *restrict codes, const uint8_t *restrict centroid,
    const uint8_t *restrict tables, int64_t pieces, const int width
) {
    int64_t piece = 0;
    for (; piece + WORD / width <= pieces; piece += WORD / width) {
        uint64_t values, entries = 0;
        memcpy(&values, centroid + piece * width, WORD);
        for (int part = 0; part < WORD / width; part++) {
            const uint8_t *entry = tables + ((piece + part) * ENTRIES + codes[piece + part]) * width;
            uint64_t widened;
            if (width == 2) {
                uint16_t read;
                memcpy(&read, entry, sizeof read);
                widened = read;
            } else if (width == 4) {
                uint32_t read;
                memcpy(&read, entry, sizeof read);
                widened = read;
            } else
                memcpy(&widened, entry, sizeof widened);
            entries |= widened << (8 * width * part);
        }
        values += entries;
        memcpy(token + piece * width, &values, WORD);
    }
    for (; piece < pieces; piece++)
        for (int place = 0; place < width; place++)
            token[piece * width + place] = (uint8_t)(centroid[piece * width + place] +
                                                     tables[(piece * ENTRIES + codes[piece]) * width + place]);
}

static inline void assemble_token(
    uint8_t *restrict token, const uint8_t *codes, const uint8_t *centroid, const codebook *book
) {
    if (book->width == 2)
        assemble_pieces(token, codes, centroid, book->tables, book->pieces, 2);
    else if (book->width == 4)
        assemble_pieces(token, codes, centroid, book->tables, book->pieces, 4);
    else
        assemble_pieces(token, codes, centroid, book->tables, book->pieces, 8);
}

typedef uint8_t tile_bytes __attribute__((vector_size(VALUES_AT_ONCE), aligned(1), may_alias));

static inline void copy_token(uint8_t *restrict token, const uint8_t *restrict codes, int64_t count) {
    int64_t place = 0;
    for (; place + VALUES_AT_ONCE <= count; place += VALUES_AT_ONCE)
        *(tile_bytes *)(token + place) = *(const tile_bytes *)(codes + place) ^ BYTE_OFFSET;
    for (; place < count; place++) token[place] = codes[place] ^ BYTE_OFFSET;
}

// What the values of assembled tokens are multiplied by, which gives them length 1.
static inline void set_unit_scales(const int32_t squares[restrict TILE], float scales[restrict TILE]) {
    for (int token = 0; token < TILE; token++) // a vector of zeros has the product 0, whatever its scale
        scales[token] = 1 / __builtin_sqrtf((float)(squares[token] > 1 ? squares[token] : 1));
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
    tile->widened = widened_tile(tile->bytes, tile->values, tile->room);
    square_sums(tile->bytes, tile->values, tile->squares);
    float longest = 0;
    for (int token = 0; text->scales && token < TILE; token++) {
        float scale = tile->scales[token] = text->scales[positions[token]];
        float length = __builtin_sqrtf((float)tile->squares[token]) * scale;
        longest = length > longest ? length : longest;
    }
    tile->longest = text->scales ? longest : 1;
    if (!text->scales) set_unit_scales(tile->squares, tile->scales);
    return true;
}
