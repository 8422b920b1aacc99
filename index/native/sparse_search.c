// A search in inverted indexes: bounds of scores, and what may be among the best. See `inverted_index.py`.
//
// S: segments; N: documents of one; T: terms of the query; K: candidates. An entry is one term in one block.

#include <math.h>
#include <stdlib.h>
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
#define LOOKED_UP 96 // documents of a block at most whose deferred impacts are looked up one by one
#define LESS_DEFERRED 0.9 // what the share of the floor is multiplied by where more than half as many may reach it
#define MORE_DEFERRED 1.05 // where less than an eighth may

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

// A term of the query by its number, and the most that it adds in any segment, for each impact.
typedef struct {
    double step;
    int64_t number;
} ranked_term;

static int by_step(const void *one, const void *other) {
    const ranked_term *left = one, *right = other;
    if (left->step != right->step) return left->step < right->step ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int quantize_query(call *call) {
    const view *const *indexes = RECORDS(0);
    int64_t segments = RECORD_COUNT(0), terms = WIDTH(1), *places = ARRAY(int64_t, 4);
    const int32_t *numbers = ARRAY(int32_t, 1);
    const float *weights = ARRAY(float, 2);
    const double *most = ARRAY(double, 3);
    uint16_t *multipliers = ARRAY(uint16_t, 5);
    SPACE(double, steps, segments * terms);
    SPACE(int64_t, found, segments * terms);
    SPACE(ranked_term, ranked, terms);
    for (int64_t number = 0; number < terms; number++) ranked[number].number = number;
    for (int64_t segment = 0; segment < segments; segment++)
        for (int64_t number = 0; number < terms; number++) {
            int64_t place = segment * terms + number;
            found[place] = directory_place(indexes[segment], numbers[place]);
            if (found[place] < 0) continue;
            double weight = OF(indexes[segment], INDEX_LARGEST, float)[found[place]];
            steps[place] = (double)weights[number] * most[segment] * weight / 255;
            if (!(steps[place] >= 0 && steps[place] <= LARGEST_STEP))
                return damaged(call, "a term whose largest weight is wrong,", found[place], 0);
            if (steps[place] > ranked[number].step) ranked[number].step = steps[place];
        }
    int64_t known = 0;
    double total = 0, largest_step = 0;
    for (int64_t number = 0; number < terms; number++) {
        known += ranked[number].step > 0;
        total += ranked[number].step;
        if (ranked[number].step > largest_step) largest_step = ranked[number].step;
    }
    bool narrow = known <= NARROW_TERMS;
    double limit = (double)((narrow ? NARROW_LIMIT : WIDE_LIMIT) - 2 * known);
    double unit = total * 255 / limit, other = largest_step * 255 / LARGEST_MULTIPLE;
    if (other > unit) unit = other;
    if (!(unit > SMALLEST_UNIT)) unit = SMALLEST_UNIT;
    if (known == 0) unit = 1;
    qsort(ranked, (size_t)terms, sizeof *ranked, by_step);
    for (int64_t segment = 0; segment < segments; segment++)
        for (int64_t rank = 0; rank < terms; rank++) {
            int64_t place = segment * terms + rank, from = segment * terms + ranked[rank].number;
            places[place] = found[from];
            multipliers[place] = known ? (uint16_t)ceil(steps[from] * (256 / unit)) : 0;
        }
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

// One term in one block: a column, or postings, whose documents are named.
typedef struct {
    const uint8_t *impacts;
    const uint16_t *documents; // NULL for a column
    int64_t count; // of impacts
    uint16_t multiplier;
    bool deferred; // until a document may reach the floor with it
} block_entry;

// What a search through blocks needs, beside its accumulators.
typedef struct {
    const int64_t *places; // [S, T], of terms in the directories, or -1
    const uint16_t *multipliers; // [S, T]
    int64_t terms, slack, k;
    int64_t former; // documents of the segments before
    double share; // of the segment
    int64_t *progress; // [2], shared by threads: the floor, and how many impacts were read
    int64_t *cursors, *ends; // [T], entries
    block_entry *entries; // [T], of the block
    int64_t entry_count, columns; // of the block
    int64_t most_deferred; // what the block's deferred entries add at most, beside the 1 of columns
    double deferred_share; // of the floor, which they have at most
    int64_t impacts_read;
    found_documents found;
} block_search;

static inline int64_t floor_of(const block_search *search) { return __atomic_load_n(search->progress, __ATOMIC_RELAXED); }

static inline void raise_floor(const block_search *search, int64_t floor) {
    int64_t former = floor_of(search);
    while (floor > former &&
           !__atomic_compare_exchange_n(search->progress, &former, floor, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
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

// The most that an entry adds to a document, beside the 1 of a column.
static inline int64_t most_of(const block_entry *entry) {
    return ((int64_t)UINT8_MAX * entry->multiplier >> 8) + (entry->documents != NULL);
}

// Sets what the query's terms have in a block of so many documents: nothing where all of it together does not reach
// the floor. As terms come in the order of what they add, the least are deferred, as long as they have no more than
// a share of the floor together. An entry that is read as fast as it is looked up in is not; nor is any while so few
// documents came before that too many of these reach the floor, whatever is deferred.
static int gather_block(
    call *call, block_search *search, const view *index, int64_t segment, int64_t block, int64_t documents
) {
    const int32_t *entry_block = OF(index, INDEX_ENTRY_BLOCK, int32_t), *entry_column = OF(index, INDEX_ENTRY_COLUMN, int32_t);
    const int64_t *entry_start = OF(index, INDEX_ENTRY_START, int64_t), width = index[INDEX_COLUMNS].shape[1];
    int64_t floor = floor_of(search), most = 0, deferrable = (int64_t)((double)(floor - 1) * search->deferred_share);
    if (search->k * documents > LOOKED_UP * (search->former + block * BLOCK)) deferrable = 0;
    search->entry_count = search->columns = search->most_deferred = 0;
    for (int64_t number = 0; number < search->terms; number++) {
        int64_t entry = search->cursors[number];
        if (entry == search->ends[number] || entry_block[entry] != block) continue;
        search->cursors[number]++;
        block_entry *here = &search->entries[search->entry_count++];
        *here = (block_entry){.multiplier = search->multipliers[segment * search->terms + number]};
        if (entry_column[entry] >= 0) {
            int64_t column = entry_column[entry], columns = index[INDEX_COLUMNS].shape[0];
            if (column >= columns) return damaged(call, "a column", column, columns);
            here->impacts = OF(index, INDEX_COLUMNS, uint8_t) + column * width;
            here->count = documents;
            search->columns++;
        } else {
            int64_t start = entry_start[entry], end = entry_start[entry + 1], postings = index[INDEX_DOCUMENTS].shape[0];
            if (start < 0 || start > end || end > postings) return damaged(call, "a posting", end, postings + 1);
            here->impacts = OF(index, INDEX_IMPACTS, uint8_t) + start;
            here->documents = OF(index, INDEX_DOCUMENTS, uint16_t) + start;
            here->count = end - start;
        }
        most += most_of(here);
        here->deferred = here->count > LOOKED_UP && search->most_deferred + most_of(here) <= deferrable;
        if (here->deferred) search->most_deferred += most_of(here);
    }
    if (most + search->columns < floor) search->entry_count = 0;
    return DONE;
}

// The impact of a document of the block, 0 where it has none. Postings are sought in both directions from where the
// document's would be if they were evenly spread.
static inline uint8_t impact_at(const block_entry *entry, int64_t document) {
    if (!entry->documents) return entry->impacts[document];
    const uint16_t *documents = entry->documents;
    int64_t guess = document * entry->count / BLOCK, low = 0, high = entry->count, step = 16;
    if (documents[guess] < document) {
        low = guess + 1;
        for (; low + step < high && documents[low + step] < document; step *= 2) low += step + 1;
        high = low + step + 1 < high ? low + step + 1 : high;
    } else {
        high = guess + 1;
        for (; high > step && documents[high - step] > document; step *= 2) high -= step;
        low = high > step ? high - step : 0;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (documents[middle] < document)
            low = middle + 1;
        else
            high = middle;
    }
    return low < entry->count && documents[low] == document ? entry->impacts[low] : 0;
}

// Lowers the bound of a document by what deferred entries do not add, those that may add most first, until it is below
// the floor or exact.
static int64_t lowered_bound(block_search *search, int64_t document, int64_t bound, int64_t floor) {
    for (int64_t number = search->entry_count; number-- > 0 && bound >= floor;) {
        const block_entry *entry = &search->entries[number];
        if (!entry->deferred) continue;
        uint8_t impact = impact_at(entry, document);
        bound -= most_of(entry) - ((int64_t)impact * entry->multiplier >> 8) - (entry->documents && impact);
        search->impacts_read++;
    }
    return bound;
}

// Lets the next blocks defer less where what was left out had to be looked up for many documents, more for few.
static void adapt_share(block_search *search, int64_t passing) {
    if (passing > LOOKED_UP / 2) search->deferred_share *= LESS_DEFERRED;
    if (passing < LOOKED_UP / 8) search->deferred_share *= MORE_DEFERRED;
    if (search->deferred_share > 1) search->deferred_share = 1;
}

// Takes what was found from a place on as a segment's, and raises the floor by it, at least to this one.
static void settle_found(block_search *search, int64_t segment, int64_t before, int64_t floor) {
    found_documents *found = &search->found;
    int64_t after = found->count;
    for (int64_t place = before; place < after; place++) {
        found->segments[place] = segment;
        found->least[place] = (int64_t)((double)(found->bounds[place] - search->slack) * search->share);
    }
    if (after >= search->k && after > before) {
        int64_t reached = kth_bound(found->least, after, search->k);
        floor = reached > floor ? reached : floor;
        keep_from(found, floor);
    }
    raise_floor(search, floor);
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
    SPACE(block_entry, entries, terms);
    void *accumulators = unset_space(call, PLACES, narrow ? sizeof(uint16_t) : sizeof(uint32_t));
    if (!accumulators) return NO_MEMORY;
    block_search search = {
        .places = ARRAY(int64_t, 1),
        .multipliers = ARRAY(uint16_t, 2),
        .terms = terms,
        .slack = INTEGER(3),
        .k = INTEGER(5),
        .progress = ARRAY(int64_t, 9),
        .cursors = cursors,
        .ends = ends,
        .entries = entries,
        .deferred_share = NUMBER(11),
    };
    if (first < 0 || first > last || last > segments) return damaged(call, "a segment", last, segments + 1);
    if (search.k < 1) return damaged(call, "the number of hits", search.k, INT64_MAX);
    if (!(search.deferred_share >= 0 && search.deferred_share <= 1)) return damaged(call, "the share that is deferred", 0, 0);
    int failure = make_room_for(call, &search.found, FIRST_ROOM);
    for (int64_t segment = 0; segment < last && !failure; segment++) {
        if (segment > 0) search.former += indexes[segment - 1][INDEX_INDPTR].shape[0] - 1;
        if (segment < first) continue;
        search.share = shares[segment];
        if (!(search.share >= 0 && search.share <= 1)) return damaged(call, "the share of a segment", segment, 0);
        failure = narrow ? search_segment_narrow(call, &search, indexes[segment], masks[segment], segment, accumulators)
                         : search_segment_wide(call, &search, indexes[segment], masks[segment], segment, accumulators);
    }
    if (failure) return failure;
    __atomic_fetch_add(search.progress + 1, search.impacts_read, __ATOMIC_RELAXED);
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
     "k: int, masks: mask[S], first: int, last: int, progress: int64[2]!, narrow: int, deferred: float -> int64[], int64[], int64[]",
     find_candidates, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
