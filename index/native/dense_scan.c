// Inner products of a query with float16 rows of many segments: of all rows, or of some that lie anywhere.

#include "arrays.h"
#include "halves.h"
#include "layouts.h"
#include "memory.h"
#include "selection.h"

// Leaves the kernel where a segment's vectors have another dimension than the query.
#define CHECK_DIMENSIONS(table, dimension)                                                                       \
    for (int64_t number = 0; number < RECORD_COUNT(table); number++)                                             \
        if (RECORDS(table)[number][DENSE_VECTORS].shape[1] != (dimension))                                       \
    return damaged(call, "a dimension", RECORDS(table)[number][DENSE_VECTORS].shape[1], (dimension) + 1)

static inline const half *row_of(const view *record, int64_t row) {
    return OF(record, DENSE_VECTORS, half) + row * record[DENSE_VECTORS].shape[1];
}

// A row of one of the segments, as `products_at` is given them.
static inline const half *row_at(const call *call, int64_t number) {
    return row_of(RECORDS(0)[ARRAY(int64_t, 1)[number]], ARRAY(int64_t, 2)[number]);
}

// Whether all rows that a kernel is given by segment and number are there.
static int check_rows(call *call) {
    const int64_t *places = ARRAY(int64_t, 1), *rows = ARRAY(int64_t, 2);
    CHECK_DIMENSIONS(0, LENGTH(3));
    for (int64_t number = 0; number < LENGTH(1); number++) {
        if (outside(places[number], RECORD_COUNT(0)))
            return damaged(call, "the place of a segment", places[number], RECORD_COUNT(0));
        int64_t documents = RECORDS(0)[places[number]][DENSE_VECTORS].shape[0];
        if (outside(rows[number], documents)) return damaged(call, "a row", rows[number], documents);
    }
    return DONE;
}

static int products_at(call *call) {
    const float *query = ARRAY(float, 3);
    int64_t count = LENGTH(1), dimension = LENGTH(3), last = count - 1;
    int failure = check_rows(call);
    if (failure) return failure;
    RESULT(float, products, 0, count);
    for (int64_t number = 0; number < count; number++) {
        int64_t ahead = number + AHEAD < last ? number + AHEAD : last;
        bring_near(row_at(call, ahead), dimension * (int64_t)sizeof(half));
        products[number] = half_product(row_at(call, number), query, dimension);
    }
    return DONE;
}

static int exact_products_at(call *call) {
    const float *asked = ARRAY(float, 3);
    int64_t count = LENGTH(1), dimension = LENGTH(3), last = count - 1;
    int failure = check_rows(call);
    if (failure) return failure;
    SPACE(double, query, dimension);
    for (int64_t place = 0; place < dimension; place++) query[place] = asked[place];
    RESULT(double, products, 0, count);
    for (int64_t number = 0; number < count; number++) {
        int64_t ahead = number + AHEAD < last ? number + AHEAD : last;
        bring_near(row_at(call, ahead), dimension * (int64_t)sizeof(half));
        products[number] = exact_half_product(row_at(call, number), query, dimension);
    }
    return DONE;
}

// The columns of a stretch: the place that is given back, which segment's vectors, and rows from where to where.
// With NUMBERS those are places among the numbers that are given; BITS is where the bits of all rows begin, or -1.
enum { PLACE, SEGMENT, FIRST, LAST, NUMBERS, BITS, COLUMNS };

typedef struct {
    const view *const *segments;
    const int64_t *numbers;
    const uint8_t *bits;
    int64_t number_count, byte_count, segment_count;
} scanned;

static int check_stretch(call *call, const scanned *all, const int64_t *stretch) {
    if (outside(stretch[SEGMENT], all->segment_count))
        return damaged(call, "the segment of a stretch", stretch[SEGMENT], all->segment_count);
    int64_t documents = all->segments[stretch[SEGMENT]][DENSE_VECTORS].shape[0];
    int64_t count = stretch[NUMBERS] ? all->number_count : documents;
    if (outside(stretch[LAST], count + 1)) return damaged(call, "the end of a stretch", stretch[LAST], count + 1);
    if (outside(stretch[FIRST], stretch[LAST] + 1))
        return damaged(call, "the beginning of a stretch", stretch[FIRST], stretch[LAST] + 1);
    int64_t bytes = (documents + 7) / 8;
    if (stretch[BITS] != -1 && outside(stretch[BITS], all->byte_count - bytes + 1))
        return damaged(call, "the beginning of bits", stretch[BITS], all->byte_count - bytes + 1);
    for (int64_t place = stretch[FIRST]; stretch[NUMBERS] && place < stretch[LAST]; place++)
        if (outside(all->numbers[place], documents)) return damaged(call, "a row", all->numbers[place], documents);
    return DONE;
}

// Writes the numbers of the rows of a stretch whose bits are set, and returns how many these are.
static int64_t set_rows(const uint8_t *bits, int64_t first, int64_t last, int64_t *rows) {
    int64_t count = 0;
    for (int64_t row = first; row < last; row++) {
        rows[count] = row;
        count += bits[row >> 3] >> (row & 7) & 1;
    }
    return count;
}

// What was found, with room for more; `scratch` is of the same length, for the selection of the k-th score.
typedef struct {
    int64_t *places, *rows, count, room;
    float *scores, *scratch;
} findings;

static int make_room(call *call, findings *found) {
    int64_t room = 2 * found->room;
    found->places = more_space(call, found->places, room, sizeof *found->places);
    if (!found->places) return NO_MEMORY;
    found->rows = more_space(call, found->rows, room, sizeof *found->rows);
    if (!found->rows) return NO_MEMORY;
    found->scores = more_space(call, found->scores, room, sizeof *found->scores);
    if (!found->scores) return NO_MEMORY;
    found->scratch = more_space(call, found->scratch, room, sizeof *found->scratch);
    if (!found->scratch) return NO_MEMORY;
    found->room = room;
    return DONE;
}

// Drops what is below the k-th of those that were found; returns its score, or the floor where that is higher.
static float drop_worse(findings *found, int64_t k, float floor) {
    memcpy(found->scratch, found->scores, (size_t)found->count * sizeof *found->scores);
    float kth = kth_largest(found->scratch, found->count, k);
    floor = kth > floor ? kth : floor;
    int64_t kept = 0;
    for (int64_t each = 0; each < found->count; each++)
        if (found->scores[each] >= floor) {
            found->places[kept] = found->places[each];
            found->rows[kept] = found->rows[each];
            found->scores[kept++] = found->scores[each];
        }
    found->count = kept;
    return floor;
}

// The floor that threads share: of k rows of any the lowest score. Where two raise it at once one may be lost,
// which costs time alone.
static inline float higher_floor(float *shared, float own) {
    float known;
    __atomic_load(shared, &known, __ATOMIC_RELAXED);
    return known > own ? known : own;
}

static int scan_vectors(call *call) {
    const float *query = ARRAY(float, 4);
    float *shared = ARRAY(float, 6);
    int64_t dimension = LENGTH(4), k = INTEGER(5), size = dimension * (int64_t)sizeof(half), total = 0, widest = 0;
    scanned all = {RECORDS(0), ARRAY(int64_t, 2), ARRAY(uint8_t, 3), LENGTH(2), LENGTH(3), RECORD_COUNT(0)};
    CHECK_DIMENSIONS(0, dimension);
    if (k < 1) return damaged(call, "the number of wanted rows", k, INT64_MAX);
    for (int64_t number = 0; number < LENGTH(1); number++) {
        const int64_t *stretch = ARRAY(int64_t, 1) + number * COLUMNS;
        int failure = check_stretch(call, &all, stretch);
        if (failure) return failure;
        int64_t rows = stretch[LAST] - stretch[FIRST];
        total += rows;
        widest = stretch[BITS] >= 0 && rows > widest ? rows : widest;
    }
    k = k < total + 1 ? k : total + 1;
    findings found = {.room = 4 * k + 64};
    SPACE(int64_t, chosen_by_bits, widest + 1);
    SPACE(int64_t, places, found.room);
    SPACE(int64_t, rows, found.room);
    SPACE(float, scores, found.room);
    SPACE(float, scratch, found.room);
    found.places = places, found.rows = rows, found.scores = scores, found.scratch = scratch;
    int64_t enough = 2 * k;
    float floor = higher_floor(shared, -__builtin_inff());
    for (int64_t number = 0; number < LENGTH(1); number++) {
        const int64_t *stretch = ARRAY(int64_t, 1) + number * COLUMNS, *chosen = NULL;
        const half *vectors = OF(all.segments[stretch[SEGMENT]], DENSE_VECTORS, half);
        int64_t count = stretch[LAST] - stretch[FIRST];
        if (stretch[NUMBERS])
            chosen = all.numbers + stretch[FIRST];
        else if (stretch[BITS] >= 0) {
            count = set_rows(all.bits + stretch[BITS], stretch[FIRST], stretch[LAST], chosen_by_bits);
            chosen = chosen_by_bits;
        }
        floor = higher_floor(shared, floor);
        for (int64_t each = 0; each < count; each++) {
            int64_t row = stretch[FIRST] + each;
            if (chosen) {
                bring_near(vectors + chosen[each + AHEAD < count ? each + AHEAD : count - 1] * dimension, size);
                row = chosen[each];
            }
            float score = half_product(vectors + row * dimension, query, dimension);
            if (score < floor) continue;
            if (found.count == found.room) {
                int failure = make_room(call, &found);
                if (failure) return failure;
            }
            found.places[found.count] = stretch[PLACE];
            found.rows[found.count] = row;
            found.scores[found.count++] = score;
            if (found.count == enough) {
                floor = drop_worse(&found, k, floor);
                enough = 2 * (k > found.count ? k : found.count); // many may tie with the last
                floor = higher_floor(shared, floor);
                __atomic_store(shared, &floor, __ATOMIC_RELAXED);
            }
        }
    }
    give(call, 0, found.places, found.count);
    give(call, 1, found.rows, found.count);
    give(call, 2, found.scores, found.count);
    return DONE;
}

const kernel_entry TABLE(dense_scan)[] = {
    {"products_at",
     "vectors: dense_vectors[S], places: int64[K], rows: int64[K], query: float32[D] -> float32[]", products_at,
     RELEASES_LOCK},
    {"exact_products_at",
     "vectors: dense_vectors[S], places: int64[K], rows: int64[K], query: float32[D] -> float64[]",
     exact_products_at, RELEASES_LOCK},
    {"scan_vectors",
     "vectors: dense_vectors[S], stretches: int64[T, 6], numbers: int64[M], bits: uint8[B], query: float32[D], "
     "k: int, floor: float32[1]! -> int64[], int64[], float32[]",
     scan_vectors, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
