// How many documents have each string of a keyword field, over all segments.
//
// Codes are counted segment by segment; strings are looked at only to find those that several segments have, by a
// hash table, and the commonest. Whoever writes documents may choose strings, so the hash has a secret seed.

#include <string.h>

#include "arrays.h"
#include "layouts.h"
#include "strings.h"

#define STRINGS_AT_ONCE 16 // whose slots are asked of memory before the first is looked at

typedef struct {
    int64_t segments;
    const view *const *columns;
    int64_t *starts; // of each segment's strings among those of all
    int64_t *counts; // of all strings; of those that an earlier segment has, too, 0 once they are merged
} facet;

static inline packed strings_of(const view *column) {
    return (packed){
        OF(column, KEYWORD_STRINGS, uint8_t), OF(column, KEYWORD_OFFSETS, int64_t), column[KEYWORD_STRINGS].shape[0],
        column[KEYWORD_OFFSETS].shape[0] - 1
    };
}

static bool ascends(const int64_t *rows, int64_t count) {
    int64_t others = 0;
    for (int64_t place = 1; place < count; place++) others += rows[place] <= rows[place - 1];
    return others == 0;
}

// Counts the allowed documents of a segment that have each of its strings; `last` has of each string the document
// that had it, numbered through all segments from 1 on. How many have any is added to `having`.
static int count_documents(
    call *call, const view *column, int64_t documents, const uint8_t *bits, int64_t *counts, int64_t *last,
    int64_t before, int64_t *having
) {
    const int32_t *codes = OF(column, KEYWORD_CODES, int32_t);
    const int64_t *rows = OF(column, KEYWORD_ROWS, int64_t);
    int64_t count = column[KEYWORD_CODES].shape[0], strings = column[KEYWORD_OFFSETS].shape[0] - 1, found = 0;
    bool single = ascends(rows, count);
    for (int64_t place = 0, former = -1; place < count; place++) {
        int64_t code = codes[place], row = rows[place], allowed = 1;
        if (outside(code, strings)) return damaged(call, "the code of a string", code, strings);
        if (bits) {
            if (outside(row, documents)) return damaged(call, "a row", row, documents);
            allowed = bits[row >> 3] >> (row & 7) & 1;
        }
        if (single) {
            counts[code] += allowed;
            found += allowed;
        } else if (allowed) {
            counts[code] += last[code] != before + row + 1; // a list may have a string twice
            last[code] = before + row + 1;
            found += row != former;
            former = row;
        }
    }
    *having += found;
    return DONE;
}

static inline uint64_t folded(uint64_t one, uint64_t other) {
    unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(byte_string string, uint64_t seed) {
    uint64_t value = seed ^ (uint64_t)string.length * 0x9E3779B97F4A7C15, part = 0;
    int64_t place = 0;
    for (; place + 8 <= string.length; place += 8) {
        memcpy(&part, string.bytes + place, 8);
        value = folded(value ^ part, seed | 1) + part;
    }
    if (string.length >= 8)
        memcpy(&part, string.bytes + string.length - 8, 8);
    else
        for (; place < string.length; place++) part = part << 8 | string.bytes[place];
    return folded(value ^ part, 0xD6E8FEB86659FD93 ^ seed);
}

// Which segment a string of all is of.
static int64_t segment_of(const facet *all, int64_t number) {
    int64_t low = 0, high = all->segments;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (all->starts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static byte_string string_of(const facet *all, int64_t number) {
    int64_t segment = segment_of(all, number);
    packed strings = strings_of(all->columns[segment]);
    return string_at(&strings, number - all->starts[segment]);
}

// Adds the count of a string to that of the same one of an earlier segment. Slots are empty, or have the upper half of
// a hash and a string's number from 1 on.
static void merge(const facet *all, uint64_t *slots, uint64_t mask, uint64_t hash, int64_t number, byte_string own) {
    const uint64_t upper = UINT64_C(0xFFFFFFFF) << 32;
    for (uint64_t place = hash & mask;; place = (place + 1) & mask) {
        if (!slots[place]) {
            slots[place] = (hash & upper) | (uint64_t)(number + 1);
            return;
        }
        if ((slots[place] ^ hash) & upper) continue;
        int64_t other = (int64_t)(slots[place] & ~upper) - 1;
        if (compare(string_of(all, other), own)) continue;
        all->counts[other] += all->counts[number];
        all->counts[number] = 0;
        return;
    }
}

static int merge_segments(call *call, const facet *all, int64_t used, uint64_t seed) {
    int64_t size = 64;
    while (size < 2 * used) size *= 2;
    SPACE(uint64_t, slots, size);
    uint64_t mask = (uint64_t)size - 1;
    for (int64_t segment = 0; segment < all->segments; segment++) {
        packed strings = strings_of(all->columns[segment]);
        for (int64_t place = 0; place < strings.count;) {
            byte_string some[STRINGS_AT_ONCE];
            int64_t numbers[STRINGS_AT_ONCE], count = 0;
            uint64_t hashes[STRINGS_AT_ONCE];
            for (; place < strings.count && count < STRINGS_AT_ONCE; place++) {
                int64_t number = all->starts[segment] + place;
                if (!all->counts[number]) continue;
                CHECKED_STRING(string, strings, place);
                some[count] = string;
                numbers[count] = number;
                hashes[count] = hash_of(string, seed);
                __builtin_prefetch(&slots[hashes[count++] & mask], 1);
            }
            for (int64_t each = 0; each < count; each++)
                merge(all, slots, mask, hashes[each], numbers[each], some[each]);
        }
    }
    return DONE;
}

// One of the commonest strings.
typedef struct {
    int64_t count, segment, place;
    byte_string string;
} common;

static bool is_rarer(const common *one, const common *other) {
    return one->count != other->count ? one->count < other->count : compare(one->string, other->string) > 0;
}

// Lets the string at a node of a heap whose rarest is first sink below those that are rarer.
static void sink_common(common *heap, int64_t count, int64_t node) {
    while (2 * node + 1 < count) {
        int64_t child = 2 * node + 1;
        child += child + 1 < count && is_rarer(&heap[child + 1], &heap[child]);
        if (!is_rarer(&heap[child], &heap[node])) return;
        common former = heap[node];
        heap[node] = heap[child];
        heap[child] = former;
        node = child;
    }
}

// Writes the `limit` commonest strings, of equally common ones the first, to a heap; how many go to `kept`, and how
// many strings there are to `distinct`.
static int find_commonest(call *call, const facet *all, common *heap, int64_t limit, int64_t *kept, int64_t *distinct) {
    for (int64_t segment = 0; segment < all->segments; segment++) {
        packed strings = strings_of(all->columns[segment]);
        int64_t refused = 0; // a string that is as common comes after one that was refused: it is refused, too
        for (int64_t place = 0; place < strings.count; place++) {
            int64_t count = all->counts[all->starts[segment] + place];
            *distinct += count > 0;
            if (count <= refused) continue;
            if (*kept == limit && count < heap[0].count) continue;
            CHECKED_STRING(string, strings, place);
            common own = {count, segment, place, string};
            if (*kept < limit) {
                heap[(*kept)++] = own;
                for (int64_t node = limit / 2 - 1; *kept == limit && node >= 0; node--) sink_common(heap, limit, node);
            } else if (is_rarer(&heap[0], &own)) {
                heap[0] = own;
                sink_common(heap, limit, 0);
            } else
                refused = count;
        }
    }
    for (int64_t node = *kept / 2 - 1; *kept < limit && node >= 0; node--) sink_common(heap, *kept, node);
    return DONE;
}

static int count_facet(call *call) {
    const int64_t *documents = ARRAY(int64_t, 1), *begins = ARRAY(int64_t, 3);
    int64_t segments = RECORD_COUNT(0), limit = INTEGER(4), widest = 0, before = 0, used = 0, using = 0;
    SPACE(int64_t, starts, segments + 1);
    for (int64_t segment = 0; segment < segments; segment++) {
        int64_t strings = RECORDS(0)[segment][KEYWORD_OFFSETS].shape[0] - 1;
        starts[segment + 1] = starts[segment] + strings;
        widest = strings > widest ? strings : widest;
    }
    if (outside(starts[segments], UINT32_MAX)) return damaged(call, "the number of strings", starts[segments], UINT32_MAX);
    if (limit < 1) return damaged(call, "the number of wanted strings", limit, INT64_MAX);
    SPACE(int64_t, counts, starts[segments]);
    SPACE(int64_t, last, widest);
    facet all = {segments, RECORDS(0), starts, counts};
    for (int64_t segment = 0; segment < segments; segment++) {
        int64_t own = documents[segment], begin = begins[segment], bytes = (own + 7) / 8;
        if (outside(own, INT64_C(1) << 48)) return damaged(call, "the number of documents", own, INT64_C(1) << 48);
        if (begin != -1 && outside(begin, LENGTH(2) - bytes + 1))
            return damaged(call, "the beginning of bits", begin, LENGTH(2) - bytes + 1);
        const uint8_t *bits = begin == -1 ? NULL : ARRAY(uint8_t, 2) + begin;
        int64_t *its = counts + starts[segment], former = used;
        int failure =
            count_documents(call, all.columns[segment], own, bits, its, last, before, &call->results[2].integer);
        if (failure) return failure;
        before += own;
        for (int64_t number = starts[segment]; number < starts[segment + 1]; number++) used += counts[number] > 0;
        using += used > former;
    }
    if (using > 1) {
        int failure = merge_segments(call, &all, used, (uint64_t)INTEGER(5));
        if (failure) return failure;
    }
    limit = limit < used ? limit : used;
    SPACE(common, heap, limit + 1);
    int64_t kept = 0;
    int failure = find_commonest(call, &all, heap, limit, &kept, &call->results[1].integer);
    if (failure) return failure;
    RESULT(int64_t, found, 0, 3 * kept);
    for (int64_t count = kept; count > 0; count--) { // the rarest of what is left goes to the end
        int64_t *written = found + 3 * (count - 1);
        written[0] = heap[0].segment;
        written[1] = heap[0].place;
        written[2] = heap[0].count;
        heap[0] = heap[count - 1];
        sink_common(heap, count - 1, 0);
    }
    return DONE;
}

static const kernel_entry facets_kernels[] = {
    {"count_facet",
     "columns: keyword_column[S], documents: int64[S], bits: uint8[B], begins: int64[S], limit: int, seed: int "
     "-> int64[], int, int",
     count_facet, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
