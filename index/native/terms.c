// The terms of many segments: where each lies among those of every segment. X: the terms of one.

#include "arrays.h"
#include "layouts.h"
#include "memory.h"
#include "strings.h"

#define STEP 16 // terms, of which the first one's beginning is kept
#define BEGINNING 8 // bytes

// The first bytes of a string as a number; 0 for those that it lacks.
static inline uint64_t beginning_of(byte_string text) {
    uint64_t number = 0;
    for (int64_t position = 0; position < BEGINNING; position++)
        number = number << 8 | (position < text.length ? text.bytes[position] : 0);
    return number;
}

static int find_beginnings(call *call) {
    packed own = STRINGS(0, 1);
    RESULT(uint64_t, found, 0, (own.count + STEP - 1) / STEP);
    for (int64_t place = 0; place * STEP < own.count; place++) {
        CHECKED_STRING(here, own, place * STEP);
        found[place] = beginning_of(here);
    }
    return DONE;
}

// The first of ascending numbers that is not below one.
static inline int64_t first_sample(const uint64_t *numbers, int64_t count, uint64_t sought) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (numbers[middle] < sought)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The place of a string among ascending ones from place `low` up to `high`; -1 where it is not there.
static int find_string(call *call, const packed *own, byte_string sought, int64_t low, int64_t high, int64_t *found) {
    *found = -1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        CHECKED_STRING(here, *own, middle);
        int compared = compare(here, sought);
        if (compared == 0) {
            *found = middle;
            return DONE;
        }
        if (compared < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return DONE;
}

// Each step is taken for all terms of a segment before the next one, and asks memory for what that needs: places of
// a term lie anywhere, and a term alone would wait for one after the other.
static int find_in_segment(
    call *call, const view *segment, const packed *wanted, const uint64_t *beginnings, int64_t *lows, int64_t *highs,
    int32_t *places, int64_t *frequencies
) {
    packed own = {OF(segment, TERM_BYTES, uint8_t), OF(segment, TERM_OFFSETS, int64_t), segment[TERM_BYTES].shape[0],
                  segment[TERM_OFFSETS].shape[0] - 1};
    const uint64_t *samples = OF(segment, TERM_BEGINNINGS, uint64_t);
    const int32_t *counts = OF(segment, TERM_FREQUENCIES, int32_t);
    int64_t sample_count = segment[TERM_BEGINNINGS].shape[0], terms = wanted->count;
    if (sample_count != (own.count + STEP - 1) / STEP)
        return damaged(call, "the number of beginnings", sample_count, (own.count + STEP - 1) / STEP);
    for (int64_t term = 0; term < terms; term++) {
        int64_t first = first_sample(samples, sample_count, beginnings[term]), last = first;
        while (last < sample_count && samples[last] == beginnings[term]) last++;
        lows[term] = first ? STEP * (first - 1) : 0;
        highs[term] = STEP * last < own.count ? STEP * last : own.count;
        bring_near(own.offsets + lows[term], 8 * (highs[term] - lows[term] + 1));
    }
    for (int64_t term = 0; term < terms; term++) {
        int64_t start = own.offsets[lows[term]];
        bring_near((const char *)((uintptr_t)own.data + (uint64_t)start), own.offsets[highs[term]] - start);
    }
    for (int64_t term = 0; term < terms; term++) {
        int64_t place;
        int failure = find_string(call, &own, string_at(wanted, term), lows[term], highs[term], &place);
        if (failure) return failure;
        places[term] = (int32_t)place;
        if (place >= 0) bring_near(counts + place, 4);
    }
    for (int64_t term = 0; term < terms; term++)
        if (places[term] >= 0) frequencies[term] += counts[places[term]];
    return DONE;
}

static int find_terms(call *call) {
    packed wanted = STRINGS(1, 2);
    int64_t terms = wanted.count;
    SPACE(uint64_t, beginnings, terms);
    SPACE(int64_t, lows, terms);
    SPACE(int64_t, highs, terms);
    for (int64_t term = 0; term < terms; term++) {
        CHECKED_STRING(here, wanted, term);
        beginnings[term] = beginning_of(here);
    }
    for (int64_t segment = 0; segment < RECORD_COUNT(0); segment++) {
        int32_t *places = ARRAY(int32_t, 3) + segment * terms;
        int failure =
            find_in_segment(call, RECORDS(0)[segment], &wanted, beginnings, lows, highs, places, ARRAY(int64_t, 4));
        if (failure) return failure;
    }
    return DONE;
}

const kernel_entry TABLE(terms)[] = {
    {"find_beginnings", "data: uint8[B], offsets: int64[X+1] -> uint64[]", find_beginnings, RELEASES_LOCK},
    {"find_terms",
     "segments: terms[S], wanted: uint8[B], offsets: int64[T+1], places: int32[S, T]!, frequencies: int64[T]!",
     find_terms, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
