// Loops over packed byte strings; offsets that lead out of their bytes are damage.

#include "arrays.h"
#include "strings.h"

// Whether one comes before another.
static inline bool comes_before(byte_string one, byte_string other) { return compare(one, other) < 0; }

static int find_packed(call *call) {
    packed own = STRINGS(0, 1), wanted = STRINGS(3, 4);
    const int64_t *order = ARRAY(int64_t, 2), *likely = ARRAY(int64_t, 5);
    RESULT(int64_t, places, 0, wanted.count);
    for (int64_t place = 0; place < wanted.count; place++) places[place] = -1;
    for (int64_t number = 0; number < LENGTH(5); number++) {
        CHECKED_STRING(sought, wanted, likely[number]);
        for (int64_t low = 0, high = own.count; low < high;) {
            int64_t middle = low + (high - low) / 2;
            CHECKED_STRING(here, own, order[middle]);
            int compared = compare(here, sought);
            if (compared < 0)
                low = middle + 1;
            else
                high = compared ? middle : low;
            if (!compared) places[likely[number]] = order[middle];
        }
    }
    return DONE;
}

static int common_packed(call *call) {
    packed few = STRINGS(0, 1), many = STRINGS(2, 3);
    RESULT(int64_t, own, 0, few.count);
    RESULT(int64_t, others, 1, few.count);
    int64_t found = 0, low = 0;
    for (int64_t place = 0; place < few.count && low < many.count; place++) {
        CHECKED_STRING(sought, few, place);
        int64_t step = 1, high = low;
        while (high < many.count) { // in steps that double, from where the last one was
            CHECKED_STRING(here, many, high);
            if (!comes_before(here, sought)) break;
            low = high + 1;
            high += step;
            step *= 2;
        }
        if (high > many.count) high = many.count;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            CHECKED_STRING(here, many, middle);
            if (comes_before(here, sought))
                low = middle + 1;
            else
                high = middle;
        }
        if (low == many.count) break;
        CHECKED_STRING(here, many, low);
        if (compare(here, sought) == 0) {
            own[found] = place;
            others[found++] = low;
        }
    }
    call->results[0].array.count = call->results[1].array.count = found;
    return DONE;
}

static int sort_packed(call *call) { // a merge sort
    packed own = STRINGS(0, 1);
    SPACE(int64_t, order, own.count);
    SPACE(int64_t, merged, own.count);
    for (int64_t place = 0; place < own.count; place++) order[place] = place;
    for (int64_t width = 1; width < own.count; width *= 2) {
        for (int64_t start = 0; start < own.count; start += 2 * width) {
            int64_t middle = start + width < own.count ? start + width : own.count;
            int64_t stop = middle + width < own.count ? middle + width : own.count;
            int64_t left = start, right = middle;
            for (int64_t place = start; place < stop; place++) {
                bool take_left = right >= stop;
                if (left < middle && !take_left) {
                    CHECKED_STRING(one, own, order[left]);
                    CHECKED_STRING(other, own, order[right]);
                    take_left = !comes_before(other, one);
                }
                merged[place] = take_left ? order[left++] : order[right++];
            }
        }
        int64_t *former = order;
        order = merged;
        merged = former;
    }
    give(call, 0, order, own.count);
    return DONE;
}

static int new_packed(call *call) {
    packed own = STRINGS(0, 1);
    const int64_t *order = ARRAY(int64_t, 2);
    RESULT(uint8_t, new, 0, LENGTH(2));
    for (int64_t rank = 0; rank < LENGTH(2); rank++) {
        CHECKED_STRING(here, own, order[rank]);
        CHECKED_STRING(former, own, order[rank ? rank - 1 : 0]);
        new[rank] = rank == 0 || compare(former, here) != 0;
    }
    return DONE;
}

// Whether the first of two places has the larger string, or an equal one and lies behind.
static inline bool is_larger(const packed *own, int64_t one, int64_t other) {
    int compared = compare(string_at(own, one), string_at(own, other));
    return compared > 0 || (compared == 0 && one > other);
}

// Lets the string at a node of a heap sink below those that are larger.
static void sink(const packed *own, int64_t *heap, int64_t count, int64_t node) {
    while (2 * node + 1 < count) {
        int64_t larger = node;
        for (int64_t child = 2 * node + 1; child < count && child <= 2 * node + 2; child++)
            if (is_larger(own, heap[child], heap[larger])) larger = child;
        if (larger == node) return;
        int64_t former = heap[node];
        heap[node] = heap[larger];
        heap[larger] = former;
        node = larger;
    }
}

// A heap has the largest of those kept on top, so that most strings are compared once.
static int first_packed(call *call) {
    packed own = STRINGS(0, 1);
    int64_t count = INTEGER(2);
    if (count < 1 || count > own.count) return damaged(call, "the number of wanted strings", count, own.count + 1);
    for (int64_t place = 0; place < own.count; place++) {
        CHECKED_STRING(checked, own, place);
    }
    RESULT(int64_t, heap, 0, count);
    for (int64_t place = 0; place < count; place++) heap[place] = place;
    for (int64_t node = count / 2 - 1; node >= 0; node--) sink(&own, heap, count, node);
    for (int64_t place = count; place < own.count; place++)
        if (comes_before(string_at(&own, place), string_at(&own, heap[0]))) {
            heap[0] = place;
            sink(&own, heap, count, 0);
        }
    return DONE;
}

static int gather_packed(call *call) {
    packed own = STRINGS(0, 1);
    const int64_t *positions = ARRAY(int64_t, 2);
    int64_t bytes = 0;
    for (int64_t place = 0; place < LENGTH(2); place++) {
        CHECKED_STRING(here, own, positions[place]);
        bytes += here.length;
    }
    RESULT(uint8_t, gathered, 0, bytes);
    for (int64_t place = 0; place < LENGTH(2); place++) {
        byte_string here = string_at(&own, positions[place]);
        memcpy(gathered, here.bytes, (size_t)here.length);
        gathered += here.length;
    }
    return DONE;
}

// FNV-1a of 64 bits, mixed so that each bit then tells on all.
static int hash_packed(call *call) {
    packed own = STRINGS(0, 1);
    RESULT(uint64_t, hashes, 0, own.count);
    for (int64_t place = 0; place < own.count; place++) {
        CHECKED_STRING(here, own, place);
        uint64_t value = 0xCBF29CE484222325;
        for (int64_t position = 0; position < here.length; position++)
            value = (value ^ here.bytes[position]) * 0x100000001B3;
        value = (value ^ value >> 32) * 0x9E3779B97F4A7C15;
        hashes[place] = value ^ value >> 32;
    }
    return DONE;
}

// The bits that a hash sets in a word of 64: its upper 24 bits name four of them.
static inline uint64_t bits_of(uint64_t hash) {
    return UINT64_C(1) << (hash >> 40 & 63) | UINT64_C(1) << (hash >> 46 & 63) | UINT64_C(1) << (hash >> 52 & 63) |
           UINT64_C(1) << (hash >> 58 & 63);
}

static int add_hashes(call *call) {
    uint64_t *words = ARRAY(uint64_t, 0), last = (uint64_t)LENGTH(0) - 1;
    const uint64_t *hashes = ARRAY(uint64_t, 1);
    if (LENGTH(0) == 0) return damaged(call, "the number of words", 0, 0);
    for (int64_t place = 0; place < LENGTH(1); place++) words[hashes[place] & last] |= bits_of(hashes[place]);
    return DONE;
}

static int passing_hashes(call *call) {
    const uint64_t *words = ARRAY(uint64_t, 0), *hashes = ARRAY(uint64_t, 1), last = (uint64_t)LENGTH(0) - 1;
    int64_t count = 0;
    if (LENGTH(0) == 0) return damaged(call, "the number of words", 0, 0);
    RESULT(int64_t, places, 0, LENGTH(1));
    for (int64_t place = 0; place < LENGTH(1); place++) {
        uint64_t bits = bits_of(hashes[place]);
        if ((words[hashes[place] & last] & bits) == bits) places[count++] = place;
    }
    call->results[0].array.count = count;
    return DONE;
}

const kernel_entry TABLE(packed)[] = {
    {"find_packed",
     "data: uint8[A], offsets: int64[X+1], order: int64[X], wanted: uint8[B], wanted_offsets: int64[T+1], "
     "likely: int64[L] -> int64[]",
     find_packed, KEEPS_LOCK},
    {"common_packed",
     "few: uint8[A], few_offsets: int64[N+1], many: uint8[B], many_offsets: int64[M+1] -> int64[], int64[]",
     common_packed, KEEPS_LOCK},
    {"sort_packed", "data: uint8[A], offsets: int64[N+1] -> int64[]", sort_packed, RELEASES_LOCK},
    {"new_packed", "data: uint8[A], offsets: int64[N+1], order: int64[M] -> bool[]", new_packed, RELEASES_LOCK},
    {"first_packed", "data: uint8[A], offsets: int64[N+1], count: int -> int64[]", first_packed, RELEASES_LOCK},
    {"gather_packed", "data: uint8[A], offsets: int64[N+1], positions: int64[K] -> uint8[]", gather_packed, RELEASES_LOCK},
    {"hash_packed", "data: uint8[A], offsets: int64[N+1] -> uint64[]", hash_packed, KEEPS_LOCK},
    {"add_hashes", "words: uint64[W]!, hashes: uint64[N]", add_hashes, KEEPS_LOCK},
    {"passing_hashes", "words: uint64[W], hashes: uint64[N] -> int64[]", passing_hashes, KEEPS_LOCK},
    {NULL, NULL, NULL, 0},
};
