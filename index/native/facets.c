// How many documents have each string of a keyword field, over all segments.
//
// Codes are counted segment by segment; strings are looked at only to find those that several segments have, and
// the commonest.

#include "arrays.h"
#include "layouts.h"
#include "meeting.h"
#include "strings.h"

#define STRINGS_AT_ONCE 16384 // of all segments, at most about
#define LEAST_STEP 16
#define STRINGS_NEAR 65536 // whose counts stay in caches

typedef struct {
    int64_t segments;
    const view *const *columns;
    int64_t *starts; // of each segment's strings among those of all
    uint32_t *counts; // of all strings; of those that an earlier segment has, too, 0 once they are merged
} facet;

static inline packed strings_of(const view *column) {
    int64_t bytes = column[KEYWORD_STRINGS].shape[0], count = column[KEYWORD_OFFSETS].shape[0] - 1;
    return (packed){OF(column, KEYWORD_STRINGS, uint8_t), OF(column, KEYWORD_OFFSETS, int64_t), bytes, count};
}

// What goes on from segment to segment: of each string the document that had it last, numbered through all segments
// from 1 on, how many documents are before, and how many of those that are allowed have any string.
typedef struct {
    uint32_t *last;
    int64_t widest, before, having;
} progress;

// Of a segment whose documents have one string at most. Where there are many strings, a document that is not
// allowed had better not touch the count of its string.
static int count_single(call *call, const view *column, const uint8_t *bits, uint32_t *counts, progress *done) {
    const int32_t *codes = OF(column, KEYWORD_CODES, int32_t);
    const int64_t *rows = OF(column, KEYWORD_ROWS, int64_t);
    int64_t count = column[KEYWORD_CODES].shape[0], strings = column[KEYWORD_OFFSETS].shape[0] - 1, having = 0;
    for (int64_t place = 0; place < count; place++) {
        int64_t code = codes[place];
        uint32_t allowed = bits ? bits[rows[place] >> 3] >> (rows[place] & 7) & 1 : 1;
        if (outside(code, strings)) return damaged(call, "the code of a string", code, strings);
        having += allowed;
        if (strings <= STRINGS_NEAR)
            counts[code] += allowed;
        else if (allowed)
            counts[code]++;
    }
    done->having += having;
    return DONE;
}

// Of one whose documents may have several, and one of them twice.
static int count_several(call *call, const view *column, const uint8_t *bits, uint32_t *counts, progress *done) {
    const int32_t *codes = OF(column, KEYWORD_CODES, int32_t);
    const int64_t *rows = OF(column, KEYWORD_ROWS, int64_t);
    int64_t count = column[KEYWORD_CODES].shape[0], strings = column[KEYWORD_OFFSETS].shape[0] - 1;
    if (!done->last) done->last = space(call, done->widest, sizeof *done->last);
    if (!done->last) return NO_MEMORY;
    for (int64_t place = 0, former = -1; place < count; place++) {
        int64_t code = codes[place], row = rows[place];
        uint32_t own = (uint32_t)(done->before + row + 1);
        if (outside(code, strings)) return damaged(call, "the code of a string", code, strings);
        if (bits && !(bits[row >> 3] >> (row & 7) & 1)) continue;
        counts[code] += done->last[code] != own;
        done->last[code] = own;
        done->having += row != former;
        former = row;
    }
    return DONE;
}

// Counts the allowed documents of a segment that have each of its strings.
static int count_segment(
    call *call, const view *column, int64_t documents, int64_t begin, uint32_t *counts, progress *done
) {
    const int64_t *rows = OF(column, KEYWORD_ROWS, int64_t);
    int64_t count = column[KEYWORD_ROWS].shape[0], others = 0, beginnings = LENGTH(2) - (documents + 7) / 8 + 1;
    if (outside(documents, UINT32_MAX - done->before))
        return damaged(call, "the number of documents", documents, UINT32_MAX - done->before);
    if (begin != -1 && outside(begin, beginnings))
        return damaged(call, "the beginning of bits", begin, beginnings);
    for (int64_t place = 1; place < count; place++) others += rows[place] <= rows[place - 1];
    bool single = others == 0;
    if (single && count) { // the first and the last are the least and the largest
        if (outside(rows[0], documents)) return damaged(call, "a row", rows[0], documents);
        if (outside(rows[count - 1], documents)) return damaged(call, "a row", rows[count - 1], documents);
    }
    for (int64_t place = 0; place < count && !single; place++)
        if (outside(rows[place], documents)) return damaged(call, "a row", rows[place], documents);
    const uint8_t *bits = begin == -1 ? NULL : ARRAY(uint8_t, 2) + begin;
    int failure = (single ? count_single : count_several)(call, column, bits, counts, done);
    done->before += documents;
    return failure;
}

// The first place from `low` on whose string is not below another, in steps that double.
static int first_not_below(call *call, const packed *strings, int64_t low, byte_string other, int64_t *found) {
    int64_t high = low;
    for (int64_t step = 1; high < strings->count; step *= 2) {
        CHECKED_STRING(here, *strings, high);
        if (compare(here, other) >= 0) break;
        low = high + 1;
        high += step;
    }
    if (high > strings->count) high = strings->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        CHECKED_STRING(here, *strings, middle);
        if (compare(here, other) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low;
    return DONE;
}

// Writes where a range of strings ends in each segment: before the least of those that lie so many places on. How
// many it has goes to `total`, 0 where all is done.
static int end_range(
    call *call, const facet *all, int64_t step, const int64_t *places, int64_t *ends, int64_t *total
) {
    byte_string end = {NULL, -1};
    for (int64_t segment = 0; segment < all->segments; segment++) {
        packed strings = strings_of(all->columns[segment]);
        if (strings.count - places[segment] <= step) continue;
        CHECKED_STRING(last, strings, places[segment] + step);
        if (end.length < 0 || compare(last, end) < 0) end = last;
    }
    *total = 0;
    for (int64_t segment = 0; segment < all->segments; segment++) {
        packed strings = strings_of(all->columns[segment]);
        ends[segment] = strings.count;
        int failure = end.length < 0 ? DONE : first_not_below(call, &strings, places[segment], end, &ends[segment]);
        if (failure) return failure;
        *total += ends[segment] - places[segment];
    }
    return DONE;
}

// Finds what several segments have, range by range of strings, as a range stays in the processor's caches.
static int merge_segments(call *call, const facet *all, uint64_t seed) {
    int64_t step = STRINGS_AT_ONCE / all->segments, total = 0;
    step = step < LEAST_STEP ? LEAST_STEP : step;
    SPACE(int64_t, places, all->segments);
    SPACE(int64_t, ends, all->segments);
    meeting met = {.seed = seed};
    while (true) {
        int failure = end_range(call, all, step, places, ends, &total);
        if (failure) return failure;
        if (total == 0) return DONE;
        failure = begin_meeting(call, &met, total);
        if (failure) return failure;
        for (int64_t segment = 0; segment < all->segments; segment++) {
            packed strings = strings_of(all->columns[segment]);
            for (int64_t place = places[segment]; place < ends[segment]; place++) {
                int64_t number = all->starts[segment] + place;
                if (!all->counts[number]) continue;
                CHECKED_STRING(string, strings, place);
                meet(&met, all->counts, string, number);
            }
            places[segment] = ends[segment];
        }
    }
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

// The `limit` commonest strings in a heap, and how many strings there are.
typedef struct {
    common *heap;
    int64_t limit, kept, distinct;
} commonest;

static void order_heap(commonest *found) {
    for (int64_t node = found->kept / 2 - 1; node >= 0; node--) sink_common(found->heap, found->kept, node);
}

// Finds them; of equally common ones the first.
static int find_commonest(call *call, const facet *all, commonest *found) {
    common *heap = found->heap;
    for (int64_t segment = 0; segment < all->segments; segment++) {
        packed strings = strings_of(all->columns[segment]);
        int64_t refused = 0; // a string that is as common comes after one that was refused: it is refused, too
        for (int64_t place = 0; place < strings.count; place++) {
            int64_t count = all->counts[all->starts[segment] + place];
            found->distinct += count > 0;
            if (count <= refused || (found->kept == found->limit && count < heap[0].count)) continue;
            CHECKED_STRING(string, strings, place);
            common own = {count, segment, place, string};
            if (found->kept < found->limit) {
                heap[found->kept++] = own;
                if (found->kept == found->limit) order_heap(found);
            } else if (is_rarer(&heap[0], &own)) {
                heap[0] = own;
                sink_common(heap, found->limit, 0);
            } else
                refused = count;
        }
    }
    if (found->kept < found->limit) order_heap(found);
    return DONE;
}

static int count_facet(call *call) {
    const int64_t *documents = ARRAY(int64_t, 1), *begins = ARRAY(int64_t, 3);
    int64_t segments = RECORD_COUNT(0), limit = INTEGER(4), used = 0, using = 0;
    progress done = {0};
    SPACE(int64_t, starts, segments + 1);
    for (int64_t segment = 0; segment < segments; segment++) {
        int64_t strings = RECORDS(0)[segment][KEYWORD_OFFSETS].shape[0] - 1;
        starts[segment + 1] = starts[segment] + strings;
        done.widest = strings > done.widest ? strings : done.widest;
    }
    if (outside(starts[segments], UINT32_MAX))
        return damaged(call, "the number of strings", starts[segments], UINT32_MAX);
    if (limit < 1) return damaged(call, "the number of wanted strings", limit, INT64_MAX);
    SPACE(uint32_t, counts, starts[segments]);
    facet all = {segments, RECORDS(0), starts, counts};
    for (int64_t segment = 0; segment < segments; segment++) {
        int64_t former = used;
        int failure = count_segment(
            call, all.columns[segment], documents[segment], begins[segment], counts + starts[segment], &done
        );
        if (failure) return failure;
        for (int64_t number = starts[segment]; number < starts[segment + 1]; number++) used += counts[number] > 0;
        using += used > former;
    }
    call->results[2].integer = done.having;
    if (using > 1) {
        int failure = merge_segments(call, &all, (uint64_t)INTEGER(5));
        if (failure) return failure;
    }
    limit = limit < used ? limit : used;
    SPACE(common, heap, limit + 1);
    commonest best = {.heap = heap, .limit = limit};
    int failure = find_commonest(call, &all, &best);
    if (failure) return failure;
    call->results[1].integer = best.distinct;
    RESULT(int64_t, found, 0, 3 * best.kept);
    for (int64_t count = best.kept; count > 0; count--) { // the rarest of what is left goes to the end
        int64_t *written = found + 3 * (count - 1);
        written[0] = heap[0].segment;
        written[1] = heap[0].place;
        written[2] = heap[0].count;
        heap[0] = heap[count - 1];
        sink_common(heap, count - 1, 0);
    }
    return DONE;
}

const kernel_entry TABLE(facets)[] = {
    {"count_facet",
     "columns: keyword_column[S], documents: int64[S], bits: uint8[B], begins: int64[S], limit: int, seed: int "
     "-> int64[], int, int",
     count_facet, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
