// Late interaction with vectors stored as bytes, first nearly, then exactly.
//
// A document's tokens go through one tile, eight at a time; those put together from codes have length 1. Nothing
// larger is made of them, and integer sums have no order, so that equal documents get equal scores wherever they
// lie.

#include <float.h>
#include <math.h>

#include "token_tiles.h"

#define MAXSIM_ROUNDING 1e-6 // what a score in float32 may be off, relative to the vectors' lengths

typedef double token_doubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef int32_t token_ints __attribute__((vector_size(32)));
typedef uint8_t token_bytes __attribute__((vector_size(8), aligned(1), may_alias));

enum { CHAINS_OF_DOUBLES = 4, DOUBLES = 8, AT_ONCE_DOUBLES = CHAINS_OF_DOUBLES * DOUBLES };

// A query as bytes, of `groups` groups, and its `tokens` vectors themselves.
typedef struct {
    const group_value *widened;
    const int32_t *sums; // [groups, LANES]
    const float *scales; // [groups, LANES]
    const double *errors, *vectors; // [tokens] and [tokens, values]
    int64_t groups, tokens, values;
} byte_query;

// Sums in chains of lanes, which are added together in one order.
static inline double sum_of_chains(token_doubles chains[CHAINS_OF_DOUBLES]) {
    chains[0] = (chains[0] + chains[1]) + (chains[2] + chains[3]);
    for (int half = DOUBLES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) chains[0][lane] += chains[0][lane + half];
    return chains[0][0];
}

static double square_length(const double *vector, int64_t values) {
    token_doubles chains[CHAINS_OF_DOUBLES] = {0};
    for (int64_t place = 0; place < values; place += AT_ONCE_DOUBLES)
        for (int chain = 0; chain < CHAINS_OF_DOUBLES; chain++) {
            token_doubles some = *(const token_doubles *)(vector + place + chain * DOUBLES);
            chains[chain] += some * some;
        }
    return sum_of_chains(chains);
}

// The product of a query token itself with a token of a tile.
static double exact_product(const double *vector, const uint8_t *token, int64_t values) {
    token_doubles chains[CHAINS_OF_DOUBLES] = {0};
    for (int64_t place = 0; place < values; place += AT_ONCE_DOUBLES)
        for (int chain = 0; chain < CHAINS_OF_DOUBLES; chain++) {
            int64_t here = place + chain * DOUBLES;
            token_ints whole = __builtin_convertvector(*(const token_bytes *)(token + here), token_ints) - BYTE_OFFSET;
            token_doubles values_of_token = __builtin_convertvector(whole, token_doubles);
            chains[chain] += *(const token_doubles *)(vector + here) * values_of_token;
        }
    return sum_of_chains(chains);
}

static int open_query(call *call, int place, byte_query *query) {
    query->groups = LENGTH(place);
    query->tokens = LENGTH(place + 3);
    query->values = WIDTH(place + 4);
    query->sums = ARRAY(int32_t, place + 1);
    query->scales = ARRAY(float, place + 2);
    query->errors = ARRAY(double, place + 3);
    query->vectors = ARRAY(double, place + 4);
    if (query->values % VALUES_AT_ONCE || query->values != LANE_BYTES * WIDTH(place))
        return damaged(call, "the values of a query's token", query->values, LANE_BYTES * WIDTH(place) + 1);
    if (query->tokens < 1 || query->groups != (query->tokens + LANES - 1) / LANES)
        return damaged(call, "the number of a query's tokens", query->tokens, query->groups * LANES + 1);
    query->widened = widened_groups(call, ARRAY(int8_t, place), query->groups, query->values);
    return query->widened ? DONE : NO_MEMORY;
}

static void lower_all(float *values, int64_t count) {
    for (int64_t place = 0; place < count; place++) values[place] = -FLT_MAX;
}

// Products with a query's tokens, times a document token's scale; raises what is the best so far.
static inline void raise_lanes(
    const ints *products, const ints *sums, float scale, floats *scaled, floats *best
) {
    *scaled = to_floats(less_offset(*products, *sums)) * scale;
    ints higher = *scaled > *best;
    *best = (floats)((higher & (ints)*scaled) | (~higher & (ints)*best));
}

// A bit for each lane whose value is at least the one that is needed, the lowest for the first.
static inline uint32_t reaching_lanes(const floats *values, const floats *needed) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(values), _mm512_loadu_ps(needed), _CMP_GE_OQ);
#elif defined(__AVX2__)
    const float *one = (const float *)values, *other = (const float *)needed;
    __m256 low = _mm256_cmp_ps(_mm256_loadu_ps(one), _mm256_loadu_ps(other), _CMP_GE_OQ);
    __m256 high = _mm256_cmp_ps(_mm256_loadu_ps(one + 8), _mm256_loadu_ps(other + 8), _CMP_GE_OQ);
    return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << 8;
#elif defined(__aarch64__)
    const ints bits = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    ints reached = (*values >= *needed) & bits;
    int32x4_t quarters[4];
    memcpy(quarters, &reached, sizeof quarters);
    return (uint32_t)vaddvq_s32((quarters[0] | quarters[1]) | (quarters[2] | quarters[3]));
#else
    uint32_t found = 0;
    for (int lane = 0; lane < LANES; lane++) found |= (uint32_t)((*values)[lane] >= (*needed)[lane]) << lane;
    return found;
#endif
}

// Raises the best product of each query token of some groups by those with a tile, float[groups, LANES], in
// units of the query's scales.
INLINED void raise_best(const byte_query *query, int64_t first, int groups, const token_tile *tile, float *best) {
    ints products[GROUPS_AT_ONCE][TILE];
    multiply(query->widened + first * query->values * LANES, groups, tile->widened, tile->values, products);
    for (int group = 0; group < groups; group++) {
        int64_t lane = (first + group) * LANES;
        ints sums = *(const ints *)(query->sums + lane);
        floats scaled, own_best = *(floats *)(best + lane);
        for (int token = 0; token < TILE; token++)
            raise_lanes(&products[group][token], &sums, tile->scales[token], &scaled, &own_best);
        *(floats *)(best + lane) = own_best;
    }
}

// A text's best product with each query token, float[groups, LANES], in units of the query's scales; the
// length of the longest vector, or -1 for damage.
static double best_of_text(
    const byte_query *query, const stored_text *text, const codebook *book, token_tile *tile, float *best
) {
    float longest = 0;
    lower_all(best, query->groups * LANES);
    for (int64_t first = 0; first < text->count; first += TILE) {
        if (!fill_tile(tile, text, book, first)) return -1;
        longest = tile->longest > longest ? tile->longest : longest;
        for (int64_t group = 0; group < query->groups; group += GROUPS_AT_ONCE)
            if (group + GROUPS_AT_ONCE <= query->groups)
                raise_best(query, group, GROUPS_AT_ONCE, tile, best);
            else
                raise_best(query, group, 1, tile, best);
    }
    return longest;
}

// What a near score may be off for documents' vectors of length 1.
static double error_of_query(const byte_query *query) {
    double error = 0, squares = 0;
    for (int64_t token = 0; token < query->tokens; token++) {
        error += query->errors[token] / (double)query->tokens;
        squares += square_length(query->vectors + token * query->values, query->values) / (double)query->tokens;
    }
    return error + MAXSIM_ROUNDING * __builtin_sqrt(squares);
}

static void bring_text_near(const stored_texts *texts, int64_t number) {
    if (number >= texts->count) return;
    stored_text text = text_at(texts, number);
    if (text.count > 0) bring_near(text.codes, text.count * text.size);
}

static int near_maxsim_within(call *call) {
    stored_texts texts = TEXTS(0);
    codebook book = CODEBOOK(4);
    byte_query query;
    token_tile tile;
    int failure = open_query(call, 6, &query);
    if (!failure) failure = new_tile(call, query.values, &tile);
    if (failure) return failure;
    double error = error_of_query(&query);
    SPACE(float, best, query.groups * LANES);
    RESULT(double, scores, 0, texts.count);
    RESULT(double, off, 1, texts.count);
    for (int64_t number = 0; number < texts.count; number++) {
        bring_text_near(&texts, number + 1); // the time that one text takes is enough for the next one's codes
        CHECKED_TEXT(text, texts, number);
        if (text.count == 0) continue;
        if (!fits_tile(&text, &book, tile.values))
            return damaged(call, "the bytes of a code", text.size, tile.values);
        double longest = best_of_text(&query, &text, &book, &tile, best);
        if (longest < 0) return damaged(call, "a centroid of a text", number, book.centroid_count);
        double total = 0;
        for (int64_t lane = 0; lane < query.groups * LANES; lane++)
            total += (double)best[lane] * (double)query.scales[lane];
        scores[number] = total / (double)query.tokens;
        off[number] = error * longest;
    }
    return DONE;
}

MULTIPLYING(near_maxsim)

// How far a product may be below the best and yet be it exactly, for vectors of length 1, in the units of the
// query's scales: float[groups, LANES]. A lane without a query token has any margin.
static void set_margins(const byte_query *query, float *margins) {
    for (int64_t token = 0; token < query->tokens; token++) {
        double length = __builtin_sqrt(square_length(query->vectors + token * query->values, query->values));
        double off = 2 * (query->errors[token] + MAXSIM_ROUNDING * length);
        double scale = (double)query->scales[token]; // 0 for a vector of zeros, whose products all are 0
        double margin = scale > 0 ? off / scale : 0;
        margins[token] = (float)(margin < (double)FLT_MAX ? margin : (double)FLT_MAX);
    }
}

// Raises the exact product of a query token by that with a token of a tile.
static void raise_one(const byte_query *query, int64_t lane, const token_tile *tile, int64_t token, double *exact) {
    const uint8_t *bytes = tile->bytes + token * tile->values;
    double product = exact_product(query->vectors + lane * query->values, bytes, tile->values);
    double value = product * (double)tile->scales[token];
    exact[lane] = value > exact[lane] ? value : exact[lane];
}

// What `exact_maxsim` keeps of one text: best and margins: float[groups, LANES], exact: double[tokens].
typedef struct {
    float *best, *margins, longest;
    double *exact;
} exact_scores;

// Raises the exact product of each query token of some groups with those of the first `count` tokens of a tile
// alone that may be its best: no other comes as near to the best so far as twice the error of its bytes.
INLINED void raise_exact(
    const byte_query *query, int64_t first, int groups, const token_tile *tile, int64_t count, exact_scores *found
) {
    ints products[GROUPS_AT_ONCE][TILE];
    multiply(query->widened + first * query->values * LANES, groups, tile->widened, tile->values, products);
    for (int group = 0; group < groups; group++) {
        int64_t start = (first + group) * LANES, left = query->tokens - start;
        uint32_t taken = left < LANES ? (1u << left) - 1 : (1u << LANES) - 1;
        ints sums = *(const ints *)(query->sums + start);
        floats scaled[TILE], own_best = *(floats *)(found->best + start);
        for (int token = 0; token < TILE; token++)
            raise_lanes(&products[group][token], &sums, tile->scales[token], &scaled[token], &own_best);
        *(floats *)(found->best + start) = own_best;
        floats needed = own_best - *(const floats *)(found->margins + start) * found->longest;
        for (int64_t token = 0; token < count; token++)
            for (uint32_t near = reaching_lanes(&scaled[token], &needed) & taken; near; near &= near - 1)
                raise_one(query, start + __builtin_ctz(near), tile, token, found->exact);
    }
}

static int exact_maxsim_within(call *call) {
    stored_texts texts = TEXTS(0);
    codebook book = CODEBOOK(4);
    byte_query query;
    token_tile tile;
    int failure = open_query(call, 6, &query);
    if (!failure) failure = new_tile(call, query.values, &tile);
    if (failure) return failure;
    SPACE(float, best, query.groups * LANES);
    SPACE(float, margins, query.groups * LANES);
    SPACE(double, exact, query.tokens);
    exact_scores found = {.best = best, .margins = margins, .exact = exact};
    RESULT(double, scores, 0, texts.count);
    set_margins(&query, margins);
    for (int64_t number = 0; number < texts.count; number++) {
        bring_text_near(&texts, number + 1);
        CHECKED_TEXT(text, texts, number);
        if (text.count == 0) continue;
        if (!fits_tile(&text, &book, tile.values))
            return damaged(call, "the bytes of a code", text.size, tile.values);
        double total = 0;
        found.longest = 0;
        lower_all(best, query.groups * LANES);
        for (int64_t token = 0; token < query.tokens; token++) exact[token] = -INFINITY;
        for (int64_t first = 0; first < text.count; first += TILE) {
            int64_t count = text.count - first < TILE ? text.count - first : TILE;
            if (!fill_tile(&tile, &text, &book, first))
                return damaged(call, "a centroid of a text", number, book.centroid_count);
            found.longest = tile.longest > found.longest ? tile.longest : found.longest;
            for (int64_t group = 0; group < query.groups; group += GROUPS_AT_ONCE)
                if (group + GROUPS_AT_ONCE <= query.groups)
                    raise_exact(&query, group, GROUPS_AT_ONCE, &tile, count, &found);
                else
                    raise_exact(&query, group, 1, &tile, count, &found);
        }
        for (int64_t token = 0; token < query.tokens; token++) total += exact[token];
        scores[number] = total / (double)query.tokens;
    }
    return DONE;
}

MULTIPLYING(exact_maxsim)

#define TEXTS_AND_CODEBOOK                                                                                       \
    "stores: token_store[Z], places: int64[K], starts: int64[K], ends: int64[K], centroids: uint8[M, R]?, "       \
    "tables: uint8[P, 256, W]?, "
#define BYTE_QUERY                                                                                               \
    "packed: int8[G, V, 16, 4], sums: int32[G, 16], scales: float32[G, 16], errors: float64[N], "                 \
    "vectors: float64[N, S]"

const kernel_entry TABLE(maxsim)[] = {
    {"near_maxsim", TEXTS_AND_CODEBOOK BYTE_QUERY " -> float64[], float64[]", near_maxsim, RELEASES_LOCK},
    {"exact_maxsim", TEXTS_AND_CODEBOOK BYTE_QUERY " -> float64[]", exact_maxsim, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
