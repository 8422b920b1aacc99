// Equal strings of several lists meet in a hash table. Whoever writes documents may choose strings, so the hash has
// a secret seed.
#pragma once

#include <string.h>

#include "arrays.h"
#include "strings.h"

static inline uint64_t eight_bytes(const uint8_t *bytes) {
    uint64_t read;
    memcpy(&read, bytes, sizeof read);
    return read;
}

static inline uint64_t folded(uint64_t one, uint64_t other) {
    unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Eight bytes at a time, of which the last may overlap with those before.
static inline uint64_t hash_of(byte_string string, uint64_t seed) {
    uint64_t value = seed ^ (uint64_t)string.length * 0x9E3779B97F4A7C15, last = 0;
    for (int64_t place = 0; place + 8 < string.length; place += 8) {
        uint64_t part = eight_bytes(string.bytes + place);
        value = folded(value ^ part, seed | 1) + part;
    }
    if (string.length >= 8)
        last = eight_bytes(string.bytes + string.length - 8);
    else
        for (int64_t place = 0; place < string.length; place++) last = last << 8 | string.bytes[place];
    return folded(value ^ last, 0xD6E8FEB86659FD93 ^ seed);
}

static inline bool same(byte_string one, byte_string other) {
    int64_t length = one.length;
    if (length != other.length) return false;
    if (length < 8) {
        for (int64_t place = 0; place < length; place++)
            if (one.bytes[place] != other.bytes[place]) return false;
        return true;
    }
    for (int64_t place = 0; place + 8 < length; place += 8)
        if (eight_bytes(one.bytes + place) != eight_bytes(other.bytes + place)) return false;
    return eight_bytes(one.bytes + length - 8) == eight_bytes(other.bytes + length - 8);
}

// A string that was met, and its number among those of all segments.
typedef struct {
    byte_string string;
    int64_t number;
} entry_of_string;

// Strings of a range that were met, by their hashes: a slot is 0, or has the upper half of a hash and the place of
// an entry from 1 on.
typedef struct {
    uint64_t *slots, seed;
    entry_of_string *entries;
    int64_t size, room, count;
} meeting;

#define UPPER_HALF (UINT64_C(0xFFFFFFFF) << 32)

// Adds the count of a string to that of the same one of an earlier segment.
static inline void meet(meeting *met, uint32_t *counts, byte_string string, int64_t number) {
    uint64_t hash = hash_of(string, met->seed), mask = (uint64_t)met->size - 1, place = hash & mask;
    for (; met->slots[place]; place = (place + 1) & mask) {
        if ((met->slots[place] ^ hash) & UPPER_HALF) continue;
        entry_of_string *other = &met->entries[(met->slots[place] & ~UPPER_HALF) - 1];
        if (!same(other->string, string)) continue;
        counts[other->number] += counts[number];
        counts[number] = 0;
        return;
    }
    met->entries[met->count++] = (entry_of_string){string, number};
    met->slots[place] = (hash & UPPER_HALF) | (uint64_t)met->count;
}

// Makes room for so many strings, none of them met yet.
static int begin_meeting(call *call, meeting *met, int64_t strings) {
    met->size = 64;
    while (met->size < 2 * strings) met->size *= 2;
    if (met->size > met->room) {
        met->room = met->size;
        met->slots = met->slots ? more_space(call, met->slots, met->room, sizeof *met->slots)
                                : space(call, met->room, sizeof *met->slots);
        met->entries = met->entries ? more_space(call, met->entries, met->room / 2, sizeof *met->entries)
                                    : space(call, met->room / 2, sizeof *met->entries);
        if (!met->slots || !met->entries) return NO_MEMORY;
    }
    memset(met->slots, 0, (size_t)met->size * sizeof *met->slots);
    met->count = 0;
    return DONE;
}
