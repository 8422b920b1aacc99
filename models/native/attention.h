// Attention of the tokens of one text to each other, head by head.
//
// Queries, keys and values are rounded to 16-bit numbers with one scale for a head of a text, and so are the shares
// that keys have of a query. So sums are of whole numbers, and a text's are the same whatever is beside it.
#pragma once

#include "panels.h"

// Numbers are within these: 64 products add up within 32 bits, and shares add up to what they are divided by.
#define QUERY_LEVELS 4095.0f
#define VALUE_LEVELS 1023.0f
#define SHARE_LEVELS 32767.0f

enum { ATTENDED_AT_ONCE = 24, PAIR = 2 };

// Work space for texts of up to so many tokens.
typedef struct {
    int16_t *queries; // [tokens, wide]
    int16_t *keys; // panels [tokens / 16, wide / 2, 16, 2]
    int16_t *values; // panels [wide / 16, tokens / 2, 16, 2]
    int16_t *shares; // [ATTENDED_AT_ONCE, tokens]
    float *scores; // [ATTENDED_AT_ONCE, tokens]
    float *found; // [ATTENDED_AT_ONCE, wide]
} attention_space;

static inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

static inline bool make_attention_space(call *call, int64_t tokens, int64_t width, attention_space *own) {
    int64_t room = round_up(tokens, LANES), wide = round_up(width, LANES);
    own->queries = unset_space(call, room * wide, sizeof *own->queries);
    own->keys = unset_space(call, room * wide, sizeof *own->keys);
    own->values = unset_space(call, room * wide, sizeof *own->values);
    own->shares = unset_space(call, ATTENDED_AT_ONCE * room, sizeof *own->shares);
    own->scores = unset_space(call, ATTENDED_AT_ONCE * room, sizeof *own->scores);
    own->found = unset_space(call, ATTENDED_AT_ONCE * wide, sizeof *own->found);
    return own->queries && own->keys && own->values && own->shares && own->scores && own->found;
}

// One of queries, keys and values of a head: `width` values of each token, `stride` from each other.
typedef struct {
    const float *values;
    int64_t stride, tokens, width;
} head_part;

// What makes numbers within `levels` of its values; 0 of nothing but zeros, and no number where one of them is
// none, or infinite.
INLINED float levels_of(const head_part *part, float levels) {
    floats largest = {0};
    for (int64_t token = 0; token < part->tokens; token++)
        for (int64_t place = 0; place < part->width; place += LANES)
            largest = larger_size(
                load_some(part->values + token * part->stride + place, part->width - place), largest
            );
    float found = largest_size(largest);
    return found == 0 ? 0 : levels / found + found * 0;
}

INLINED ints numbers_of(const head_part *part, int64_t token, int64_t place, float factor) {
    return rounded(load_some(part->values + token * part->stride + place, part->width - place) * factor);
}

INLINED void pack_queries(const head_part *part, float factor, int16_t *to) {
    int64_t wide = round_up(part->width, LANES);
    for (int64_t token = 0; token < part->tokens; token++)
        for (int64_t place = 0; place < wide; place += LANES)
            *(shorts *)(to + token * wide + place) =
                __builtin_convertvector(numbers_of(part, token, place, factor), shorts);
}

INLINED void pack_keys(const head_part *part, float factor, int16_t *to) {
    int64_t wide = round_up(part->width, LANES), panel = wide * LANES;
    memset(to + part->tokens / LANES * panel, 0, part->tokens % LANES ? (size_t)panel * sizeof *to : 0);
    for (int64_t token = 0; token < part->tokens; token++) {
        int32_t *column = (int32_t *)(to + token / LANES * panel) + token % LANES;
        for (int64_t place = 0; place < wide; place += LANES) {
            int32_t pairs[LANES / PAIR];
            shorts found = __builtin_convertvector(numbers_of(part, token, place, factor), shorts);
            memcpy(pairs, &found, sizeof pairs);
            for (int pair = 0; pair < LANES / PAIR; pair++) column[(place / PAIR + pair) * LANES] = pairs[pair];
        }
    }
}

INLINED void pack_values(const head_part *part, float factor, int16_t *to) {
    int64_t wide = round_up(part->width, LANES), room = round_up(part->tokens, LANES);
    for (int64_t place = 0; place < wide; place += LANES)
        for (int64_t token = 0; token < room; token += PAIR) {
            ints first = {0}, second = {0};
            if (token < part->tokens) first = numbers_of(part, token, place, factor);
            if (token + 1 < part->tokens) second = numbers_of(part, token + 1, place, factor);
            *(ints *)(to + place * room + token * LANES) = (first & 0xFFFF) | (second << 16);
        }
}

// The shares of all keys of one query as numbers, by their scores times `factor` as powers of 2; returns their sum.
INLINED int32_t share_out(float *scores, int64_t tokens, float factor, int16_t *shares) {
    int64_t room = round_up(tokens, LANES);
    const float nothing = -0x1p30f;
    for (int64_t token = tokens; token < room; token++) scores[token] = nothing;
    floats highest = all_floats(nothing);
    for (int64_t token = 0; token < room; token += LANES) highest = larger(load_floats(scores + token), highest);
    float top = largest_of(highest);
    ints sums = {0};
    for (int64_t token = 0; token < room; token += LANES) {
        floats below = larger((load_floats(scores + token) - top) * factor, all_floats(-30.0f));
        ints found = rounded(power_of_two(below, SHARE_LEVELS));
        *(shorts *)(shares + token) = __builtin_convertvector(found, shorts);
        sums += found;
    }
    return sum_of_ints(sums);
}

// Writes what the tokens of a text attend to with one head: float32[tokens, stride], of which `width` values.
// scaling: of scores.
INLINED void attend_with_head(
    const head_part *queries, const head_part *keys, const head_part *values, float scaling,
    const attention_space *own, float *out, int64_t stride
) {
    int64_t tokens = queries->tokens, width = queries->width, wide = round_up(width, LANES);
    int64_t room = round_up(tokens, LANES);
    float of_queries = levels_of(queries, QUERY_LEVELS), of_keys = levels_of(keys, QUERY_LEVELS);
    float of_values = levels_of(values, VALUE_LEVELS);
    pack_queries(queries, of_queries, own->queries);
    pack_keys(keys, of_keys, own->keys);
    pack_values(values, of_values, own->values);
    const float to_power_of_two = 1.44269504f;
    float product = of_queries * of_keys, factor = product == 0 ? 0 : scaling * to_power_of_two / product;
    for (int64_t first = 0; first < tokens; first += ATTENDED_AT_ONCE) {
        int64_t some = tokens - first < ATTENDED_AT_ONCE ? tokens - first : ATTENDED_AT_ONCE;
        int32_t sums[ATTENDED_AT_ONCE];
        multiply_shorts(
            own->queries + first * wide, wide, some, own->keys, room / LANES, wide / PAIR,
            own->scores, room
        );
        for (int64_t row = 0; row < some; row++)
            sums[row] = share_out(own->scores + row * room, tokens, factor, own->shares + row * room);
        multiply_shorts(
            own->shares, room, some, own->values, wide / LANES, room / PAIR, own->found, wide
        );
        for (int64_t row = 0; row < some; row++) {
            float inverse = of_values == 0 ? 0 : 1 / (of_values * (float)sums[row]);
            for (int64_t place = 0; place < width; place += LANES)
                store_some(
                    out + (first + row) * stride + place,
                    load_floats(own->found + row * wide + place) * inverse, width - place
                );
        }
    }
}
