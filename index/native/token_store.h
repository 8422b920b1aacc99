// Stored token vectors of texts that lie anywhere in the stores of many segments.
#pragma once

#include "layouts.h"
#include "memory.h"

typedef struct {
    const view *const *stores;
    int64_t store_count;
    const int64_t *places, *starts, *ends; // the store of each text, and where its tokens are
    int64_t count;
} stored_texts;

typedef struct {
    const uint8_t *codes; // [count, size]
    const float *scales; // NULL where the codes are of a codebook
    const uint16_t *centroids; // NULL where they are not
    int64_t count, size;
} stored_text;

// Of the arguments from `place` on: stores: token_store[Z], places, starts and ends: int64[K].
#define TEXTS(place)                                                                                             \
    {                                                                                                            \
        RECORDS(place), RECORD_COUNT(place), ARRAY(int64_t, place + 1), ARRAY(int64_t, place + 2),               \
            ARRAY(int64_t, place + 3), LENGTH(place + 1)                                                         \
    }

// How many tokens a store has codes of.
static inline int64_t tokens_of_store(const view *store) { return store[TOKEN_CODES].shape[0]; }

// Where the numbers of a text lead out of its store, or it lies in no store, its count is -1.
static inline stored_text text_at(const stored_texts *texts, int64_t number) {
    int64_t place = texts->places[number], start = texts->starts[number], end = texts->ends[number];
    if (outside(place, texts->store_count)) return (stored_text){.count = -1};
    const view *store = texts->stores[place];
    if (start < 0 || start > end || end > tokens_of_store(store)) return (stored_text){.count = -1};
    int64_t size = store[TOKEN_CODES].shape[1];
    const float *scales = OF(store, TOKEN_SCALES, const float);
    const uint16_t *centroids = OF(store, TOKEN_CENTROIDS, const uint16_t);
    return (stored_text){
        .codes = OF(store, TOKEN_CODES, const uint8_t) + start * size,
        .scales = scales ? scales + start : NULL,
        .centroids = centroids ? centroids + start : NULL,
        .count = end - start,
        .size = size,
    };
}

// A text by its number; leaves the kernel where there is none.
#define CHECKED_TEXT(name, texts, number)                                                                        \
    stored_text name = text_at(&(texts), number);                                                                \
    if (name.count < 0) return damaged(call, "where the tokens of a text lie", number, (texts).count)
