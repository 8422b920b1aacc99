// Exact lexical scores: the sum of query weight times document weight over shared terms, in float64, by ascending
// token id. K: rows; S: segments; T: terms of the query.

#include <string.h>

#include "arrays.h"
#include "layouts.h"
#include "memory.h"
#include "selection.h"
#include "sparse.h"

#define MARKS 8192 // slots of the table that tells most tokens of a row from those of the query; a power of 2
#define LARGEST_SCORE 3.4028234663852886e38 // within float32

// T terms of a query as a segment numbers them, ascending, with their weights; marks: uint8[MARKS], of the terms.
typedef struct {
    int32_t *ids;
    float *weights;
    uint8_t *marks;
    int64_t count;
} marked_query;

static inline void mark(marked_query *query, uint8_t value) {
    for (int64_t place = 0; place < query->count; place++) query->marks[query->ids[place] & (MARKS - 1)] = value;
}

static inline int64_t place_of(const int32_t *ids, int64_t count, int32_t sought) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (ids[middle] < sought)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// norm: what frequencies are compared with; 0 where the row holds the weights themselves.
static inline double sparse_score_of(const rows *forward, row_span span, double norm, const marked_query *query) {
    double score = 0;
    for (int64_t position = span.start; position < span.end; position++) {
        int32_t token = forward->token_ids[position];
        if (!query->marks[token & (MARKS - 1)]) continue;
        int64_t place = place_of(query->ids, query->count, token);
        if (place == query->count || query->ids[place] != token) continue;
        double weight = forward->weights[position];
        if (norm > 0) weight /= weight + norm;
        score += (double)query->weights[place] * weight;
    }
    return score;
}

static inline double norm_of(const int32_t *lengths, double base, double slope, int64_t row) {
    return lengths ? base + slope * lengths[row] : 0;
}

static int score_rows(call *call) {
    rows forward = ROWS(0, 1, 2);
    const int64_t *wanted = ARRAY(int64_t, 3);
    RESULT(double, scores, 0, LENGTH(3));
    SPACE(uint8_t, marks, MARKS);
    marked_query query = {ARRAY(int32_t, 4), ARRAY(float, 5), marks, LENGTH(4)};
    mark(&query, 1);
    for (int64_t place = 0; place < LENGTH(3); place++) {
        CHECKED_ROW(here, forward, wanted[place]);
        scores[place] = sparse_score_of(&forward, here, 0, &query);
    }
    return DONE;
}

// What the scores of rows in many segments are taken from.
typedef struct {
    const view *const *indexes;
    int64_t segment_count, term_count;
    const int32_t *terms; // [S, T], -1 for one that a segment lacks
    const float *weights;
    double base, slope;
    const int64_t *segments, *rows; // [K], the segments ascending
    int64_t count;
} sought_rows;

#define SOUGHT(segments_place)                                                                                   \
    {RECORDS(0), RECORD_COUNT(0), WIDTH(1), ARRAY(int32_t, 1), ARRAY(float, 2), NUMBER(3), NUMBER(4),            \
     ARRAY(int64_t, segments_place), ARRAY(int64_t, segments_place + 1), LENGTH(segments_place)}

static inline rows forward_of(const view *index) {
    return (rows){OF(index, INDEX_INDPTR, int64_t), OF(index, INDEX_TOKEN_IDS, int32_t), OF(index, INDEX_WEIGHTS, float),
                  index[INDEX_INDPTR].shape[0] - 1, index[INDEX_TOKEN_IDS].shape[0]};
}

static int check_places(call *call, const sought_rows *sought) {
    for (int64_t place = 0; place < sought->count; place++) {
        int64_t segment = sought->segments[place];
        if (outside(segment, sought->segment_count)) return damaged(call, "a segment", segment, sought->segment_count);
        int64_t count = sought->indexes[segment][INDEX_INDPTR].shape[0] - 1;
        if (outside(sought->rows[place], count)) return damaged(call, "a row", sought->rows[place], count);
    }
    return DONE;
}

// Asks for the values of a row whose place was checked; its offsets were asked for before.
static inline void bring_row_near(const view *index, int64_t row) {
    const int64_t *indptr = OF(index, INDEX_INDPTR, int64_t);
    int64_t start = indptr[row], size = 4 * (indptr[row + 1] - start);
    bring_near((const char *)((uintptr_t)index[INDEX_TOKEN_IDS].data + 4 * (uint64_t)start), size);
    bring_near((const char *)((uintptr_t)index[INDEX_WEIGHTS].data + 4 * (uint64_t)start), size);
}

// Scores the wanted ones of rows whose places were checked.
static int score_wanted(call *call, const sought_rows *sought, const uint8_t *wanted, double *scores) {
    SPACE(uint8_t, marks, MARKS);
    SPACE(int32_t, ids, sought->term_count);
    SPACE(float, weights, sought->term_count);
    marked_query query = {ids, weights, marks, 0};
    int64_t current = -1, last = sought->count - 1;
    rows forward = {0};
    const int32_t *lengths = NULL;
    for (int64_t place = 0; place <= last; place++) {
        int64_t ahead = place + 2 * AHEAD < last ? place + 2 * AHEAD : last;
        if (wanted[ahead])
            bring_near(&OF(sought->indexes[sought->segments[ahead]], INDEX_INDPTR, int64_t)[sought->rows[ahead]], 8);
        ahead = place + AHEAD < last ? place + AHEAD : last;
        if (wanted[ahead]) bring_row_near(sought->indexes[sought->segments[ahead]], sought->rows[ahead]);
        if (!wanted[place]) continue;
        if (sought->segments[place] != current) {
            current = sought->segments[place];
            forward = forward_of(sought->indexes[current]);
            lengths = OF(sought->indexes[current], INDEX_LENGTHS, int32_t);
            mark(&query, 0);
            query.count = 0;
            for (int64_t number = 0; number < sought->term_count; number++) {
                int32_t term = sought->terms[current * sought->term_count + number];
                if (term < 0) continue;
                ids[query.count] = term;
                weights[query.count++] = sought->weights[number];
            }
            mark(&query, 1);
        }
        CHECKED_ROW(here, forward, sought->rows[place]);
        scores[place] =
            sparse_score_of(&forward, here, norm_of(lengths, sought->base, sought->slope, sought->rows[place]), &query);
    }
    return DONE;
}

static int score_in_segments(call *call) {
    sought_rows sought = SOUGHT(5);
    RESULT(double, scores, 0, sought.count);
    SPACE(uint8_t, wanted, sought.count);
    memset(wanted, 1, (size_t)sought.count);
    int failure = check_places(call, &sought);
    return failure ? failure : score_wanted(call, &sought, wanted, scores);
}

static void narrow(const double *exact, float *scores, int64_t count) {
    for (int64_t place = 0; place < count; place++)
        scores[place] = (float)(exact[place] < LARGEST_SCORE ? exact[place] : LARGEST_SCORE);
}

// Rows whose bound is below the exact k-th score are not scored.
static int score_candidates(call *call) {
    sought_rows sought = SOUGHT(5);
    const int64_t *bounds = ARRAY(int64_t, 7), k = INTEGER(9), count = sought.count;
    double unit = NUMBER(8);
    RESULT(int64_t, kept, 0, count);
    RESULT(float, scores, 1, count);
    SPACE(double, exact, count);
    SPACE(float, ordered, count);
    SPACE(uint8_t, wanted, count);
    int failure = k < 1 ? damaged(call, "the number of hits", k, INT64_MAX) : check_places(call, &sought);
    if (failure) return failure;
    int64_t likely = count > k ? kth_bound(bounds, count, k) : INT64_MIN;
    for (int64_t place = 0; place < count; place++) wanted[place] = bounds[place] >= likely;
    failure = score_wanted(call, &sought, wanted, exact);
    if (failure) return failure;
    narrow(exact, scores, count);
    float threshold = 0;
    if (count > k) {
        memcpy(ordered, scores, (size_t)count * sizeof *scores);
        threshold = kth_largest(ordered, count, k);
        for (int64_t place = 0; place < count; place++)
            wanted[place] = !wanted[place] && (double)bounds[place] * unit * (1 + 1e-6) >= threshold;
        failure = score_wanted(call, &sought, wanted, exact);
        if (failure) return failure;
        narrow(exact, scores, count);
        memcpy(ordered, scores, (size_t)count * sizeof *scores);
        threshold = kth_largest(ordered, count, k);
    }
    int64_t found = 0;
    for (int64_t place = 0; place < count; place++) {
        kept[found] = place;
        found += scores[place] >= threshold && scores[place] > 0;
    }
    call->results[0].array.count = found;
    return DONE;
}

const kernel_entry TABLE(sparse_scores)[] = {
    {"score_rows",
     "indptr: int64[N+1], token_ids: int32[W], weights: float32[W], rows: int64[K], query_ids: int32[T], "
     "query_weights: float32[T] -> float64[]",
     score_rows, RELEASES_LOCK},
    {"score_in_segments",
     "indexes: inverted_index[S], terms: int32[S, T], weights: float32[T], base: float, slope: float, "
     "segments: int64[K], rows: int64[K] -> float64[]",
     score_in_segments, RELEASES_LOCK},
    {"score_candidates",
     "indexes: inverted_index[S], terms: int32[S, T], weights: float32[T], base: float, slope: float, "
     "segments: int64[K], rows: int64[K], bounds: int64[K], unit: float, k: int -> int64[], float32[]",
     score_candidates, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
