// A search in inverted indexes: bounds of scores, and what may be among the best. See `inverted_index.py`.
//
// S: segments; N: documents of one; T: terms of the query; K: candidates. An entry is one term in one block.

#include <math.h>
#include <string.h>

#include "arrays.h"
#include "layouts.h"
#include "selection.h"
#include "sparse.h"

#define PLACES 65536 // in a block that a posting's 16 bits can name
#define STRIDE 2048 // of a block's accumulators so far apart the maximum is looked at before any single one is
#define CHUNK 4096 // accumulators to which all columns are added while they stay in the first-level cache
#define NARROW_TERMS 64 // more known terms than these get 32-bit accumulators, where rounding weighs as little
#define NARROW_LIMIT 65535
#define WIDE_LIMIT 4294967295
#define LARGEST_MULTIPLE 65000 // largest 255 c / unit of one term, so that its multiplier fits 16 bits
#define SMALLEST_UNIT 1e-290 // or quotients would be endless
#define LARGEST_STEP 1e300 // or sums would be
#define FIRST_ROOM 4096

// The place of a term in a segment's directory, or -1. Words are numbered by their places, and then nothing has to
// be searched for.
static int64_t directory_place(const view *index, int32_t term) {
    const int32_t *terms = OF(index, INDEX_TERMS, int32_t);
    int64_t low = 0, high = index[INDEX_TERMS].shape[0];
    if (term < 0) return -1;
    if (term < high && terms[term] == term) return term;
    int64_t count = high;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (terms[middle] < term)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && terms[low] == term ? low : -1;
}

static int quantize_query(call *call) {
    const view *const *indexes = RECORDS(0);
    int64_t segments = RECORD_COUNT(0), terms = WIDTH(1), *places = ARRAY(int64_t, 4);
    const int32_t *numbers = ARRAY(int32_t, 1);
    const float *weights = ARRAY(float, 2);
    const double *most = ARRAY(double, 3);
    uint16_t *multipliers = ARRAY(uint16_t, 5);
    SPACE(double, steps, segments * terms);
    SPACE(double, largest, terms);
    for (int64_t segment = 0; segment < segments; segment++)
        for (int64_t number = 0; number < terms; number++) {
            int64_t place = segment * terms + number;
            places[place] = directory_place(indexes[segment], numbers[place]);
            if (places[place] < 0) continue;
            double weight = OF(indexes[segment], INDEX_LARGEST, float)[places[place]];
            steps[place] = (double)weights[number] * most[segment] * weight / 255;
            if (!(steps[place] >= 0 && steps[place] <= LARGEST_STEP))
                return damaged(call, "a term whose largest weight is wrong,", places[place], 0);
            if (steps[place] > largest[number]) largest[number] = steps[place];
        }
    int64_t known = 0;
    double total = 0, largest_step = 0;
    for (int64_t number = 0; number < terms; number++) {
        known += largest[number] > 0;
        total += largest[number];
        if (largest[number] > largest_step) largest_step = largest[number];
    }
    bool narrow = known <= NARROW_TERMS;
    double limit = (double)((narrow ? NARROW_LIMIT : WIDE_LIMIT) - 2 * known);
    double unit = total * 255 / limit, other = largest_step * 255 / LARGEST_MULTIPLE;
    if (other > unit) unit = other;
    if (!(unit > SMALLEST_UNIT)) unit = SMALLEST_UNIT;
    if (known == 0) unit = 1;
    for (int64_t place = 0; place < segments * terms; place++)
        multipliers[place] = known ? (uint16_t)ceil(steps[place] * (256 / unit)) : 0;
    call->results[0].number = unit;
    call->results[1].integer = known ? (int64_t)ceil(total / unit) + 2 * known + 1 : 0;
    call->results[2].integer = narrow;
    return DONE;
}

// Documents that were found: the segment of each, its row, its bound, and the least that this says of its score.
typedef struct {
    int64_t *segments, *rows, *bounds, *least, count, room;
} found_documents;

static int make_room_for(call *call, found_documents *found, int64_t more) {
    int64_t **arrays[] = {&found->segments, &found->rows, &found->bounds, &found->least};
    if (found->count + more < found->room) return DONE; // one is written behind the last
    int64_t room = 2 * found->room + more;
    for (int place = 0; place < 4; place++) {
        *arrays[place] = found->room ? more_space(call, *arrays[place], room, 8) : unset_space(call, room, 8);
        if (!*arrays[place]) return NO_MEMORY;
    }
    found->room = room;
    return DONE;
}

// Keeps what has a bound so high.
static void keep_from(found_documents *found, int64_t floor) {
    int64_t kept = 0;
    for (int64_t place = 0; place < found->count; place++) {
        found->segments[kept] = found->segments[place];
        found->rows[kept] = found->rows[place];
        found->bounds[kept] = found->bounds[place];
        found->least[kept] = found->least[place];
        kept += found->bounds[place] >= floor;
    }
    found->count = kept;
}

// What a search through blocks needs, beside its accumulators.
typedef struct {
    const int64_t *places; // [S, T], of terms in the directories, or -1
    const uint16_t *multipliers; // [S, T]
    int64_t terms, slack, k;
    double share; // of the segment
    int64_t *floors; // [1], shared by threads
    int64_t *cursors, *ends; // [T], entries
    const uint8_t **added; // [T], columns of the block
    uint16_t *added_multipliers;
    found_documents found;
} block_search;

static inline int64_t floor_of(const block_search *search) { return __atomic_load_n(search->floors, __ATOMIC_RELAXED); }

static inline void raise_floor(const block_search *search, int64_t floor) {
    int64_t former = floor_of(search);
    while (floor > former &&
           !__atomic_compare_exchange_n(search->floors, &former, floor, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

// Where the entries of the query's terms begin and end; how many terms the segment has.
static int begin_segment(call *call, block_search *search, const view *index, int64_t segment, int64_t *known) {
    const int64_t *term_entries = OF(index, INDEX_TERM_ENTRIES, int64_t);
    int64_t terms = index[INDEX_TERMS].shape[0], entries = index[INDEX_ENTRY_BLOCK].shape[0];
    *known = 0;
    for (int64_t number = 0; number < search->terms; number++) {
        int64_t place = search->places[segment * search->terms + number];
        search->cursors[number] = search->ends[number] = 0;
        if (place < 0) continue;
        if (outside(place, terms)) return damaged(call, "a term", place, terms);
        int64_t first = term_entries[place], last = term_entries[place + 1];
        if (first < 0 || first > last || last > entries) return damaged(call, "an entry of a term", last, entries + 1);
        search->cursors[number] = first;
        search->ends[number] = last;
        ++*known;
    }
    return DONE;
}

#define ACCUMULATOR uint16_t
#define OF_WIDTH(name) name##_narrow
#include "sparse_blocks.h"
#undef ACCUMULATOR
#undef OF_WIDTH
#define ACCUMULATOR uint32_t
#define OF_WIDTH(name) name##_wide
#include "sparse_blocks.h"
#undef ACCUMULATOR
#undef OF_WIDTH

static int find_candidates(call *call) {
    const view *const *indexes = RECORDS(0), *const *masks = RECORDS(6);
    const double *shares = ARRAY(double, 4);
    int64_t segments = RECORD_COUNT(0), first = INTEGER(7), last = INTEGER(8), terms = WIDTH(1);
    bool narrow = INTEGER(10);
    SPACE(int64_t, cursors, terms);
    SPACE(int64_t, ends, terms);
    SPACE(const uint8_t *, added, terms);
    SPACE(uint16_t, added_multipliers, terms);
    void *accumulators = unset_space(call, PLACES, narrow ? sizeof(uint16_t) : sizeof(uint32_t));
    if (!accumulators) return NO_MEMORY;
    block_search search = {
        ARRAY(int64_t, 1), ARRAY(uint16_t, 2), terms,   INTEGER(3),        INTEGER(5), 0,
        ARRAY(int64_t, 9), cursors,            ends,    added,             added_multipliers,
        {0},
    };
    if (first < 0 || first > last || last > segments) return damaged(call, "a segment", last, segments + 1);
    if (search.k < 1) return damaged(call, "the number of hits", search.k, INT64_MAX);
    int failure = make_room_for(call, &search.found, FIRST_ROOM);
    for (int64_t segment = first; segment < last && !failure; segment++) {
        search.share = shares[segment];
        if (!(search.share >= 0 && search.share <= 1)) return damaged(call, "the share of a segment", segment, 0);
        failure = narrow ? search_segment_narrow(call, &search, indexes[segment], masks[segment], segment, accumulators)
                         : search_segment_wide(call, &search, indexes[segment], masks[segment], segment, accumulators);
    }
    if (failure) return failure;
    give(call, 0, search.found.segments, search.found.count);
    give(call, 1, search.found.rows, search.found.count);
    give(call, 2, search.found.bounds, search.found.count);
    return DONE;
}

const kernel_entry TABLE(sparse_search)[] = {
    {"quantize_query",
     "indexes: inverted_index[S], terms: int32[S, T], weights: float32[T], most: float64[S], places: int64[S, T]!, "
     "multipliers: uint16[S, T]! -> float, int, bool",
     quantize_query, RELEASES_LOCK},
    {"find_candidates",
     "indexes: inverted_index[S], places: int64[S, T], multipliers: uint16[S, T], slack: int, shares: float64[S], "
     "k: int, masks: mask[S], first: int, last: int, floors: int64[1]!, narrow: int -> int64[], int64[], int64[]",
     find_candidates, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
