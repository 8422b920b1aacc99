// Packed byte strings, whose stored offsets are checked where they are read.
#pragma once

#include <string.h>

#include "arrays.h"

typedef struct {
    const uint8_t *data;
    const int64_t *offsets;
    int64_t bytes, count;
} packed;

typedef struct {
    const uint8_t *bytes;
    int64_t length; // -1 for one that does not lie within the data
} byte_string;

#define STRINGS(data_place, offsets_place)                                                                       \
    {ARRAY(uint8_t, data_place), ARRAY(int64_t, offsets_place), LENGTH(data_place), LENGTH(offsets_place) - 1}

static inline byte_string string_at(const packed *all, int64_t place) {
    if (outside(place, all->count)) return (byte_string){all->data, -1};
    int64_t start = all->offsets[place], end = all->offsets[place + 1];
    bool whole = start >= 0 && start <= end && end <= all->bytes;
    return (byte_string){all->data + (whole ? start : 0), whole ? end - start : -1};
}

// A string at a place; leaves the kernel where there is none, or where its offsets lead out of the data.
#define CHECKED_STRING(name, all, place)                                                                         \
    byte_string name = string_at(&(all), place);                                                                 \
    if (name.length < 0) return damaged(call, "the place of a string, or an offset there,", place, (all).count)

// Below 0, 0 or above 0, as one comes before, equals or comes after another.
static inline int compare(byte_string one, byte_string other) {
    int64_t shorter = one.length < other.length ? one.length : other.length;
    int compared = shorter > 0 ? memcmp(one.bytes, other.bytes, (size_t)shorter) : 0;
    return compared ? compared : (one.length > other.length) - (one.length < other.length);
}
