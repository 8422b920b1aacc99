// The linear heads of sparse weights and token vectors.

#include "attention.h"

// Rounded to 16-bit numbers with a scale for each row: 64 products add up within 32 bits.
#define STATE_LEVELS 4095.0f

enum { TOKENS_AT_ONCE = 48 };

static int project_tokens(call *call) {
    const float *states = ARRAY(float, 0), *scales = ARRAY(float, 2), *biases = ARRAY(float, 3);
    const int16_t *panels = ARRAY(int16_t, 1);
    float *found = ARRAY(float, 4);
    int64_t tokens = LENGTH(0), width = WIDTH(0), out = WIDTH(4), panel_count = LENGTH(1);
    int64_t wide = panel_count * LANES, steps = call->arguments[1].array.shape[1];
    if (width % LANES || steps * PAIR != width) return damaged(call, "the width of states", width, steps * PAIR);
    if (out > wide || out < 1) return damaged(call, "the width of token vectors", out, wide);
    SPACE(int16_t, numbers, TOKENS_AT_ONCE * width);
    SPACE(float, made, TOKENS_AT_ONCE * wide);
    for (int64_t first = 0; first < tokens; first += TOKENS_AT_ONCE) {
        int64_t some = tokens - first < TOKENS_AT_ONCE ? tokens - first : TOKENS_AT_ONCE;
        float inverses[TOKENS_AT_ONCE];
        for (int64_t row = 0; row < some; row++) {
            head_part state = {states + (first + row) * width, 0, 1, width};
            float factor = levels_of(&state, STATE_LEVELS);
            pack_queries(&state, factor, numbers + row * width);
            inverses[row] = factor == 0 ? 0 : 1 / factor;
        }
        multiply_shorts(numbers, width, some, panels, panel_count, steps, made, wide);
        for (int64_t row = 0; row < some; row++) {
            float *vector = made + row * wide;
            floats squares = {0};
            for (int64_t place = 0; place < wide; place += LANES) {
                floats value = load_floats(vector + place) * load_floats(scales + place) * inverses[row];
                value += load_floats(biases + place);
                store_floats(vector + place, value);
                squares += value * value;
            }
            float length = __builtin_sqrtf(sum_of(squares)), inverse = 1 / (length > 1e-12f ? length : 1e-12f);
            for (int64_t place = 0; place < out; place += LANES)
                store_some(
                    found + (first + row) * out + place, load_floats(vector + place) * inverse, out - place
                );
        }
    }
    return DONE;
}

static int weigh_tokens(call *call) {
    const float *states = ARRAY(float, 0), *weights = ARRAY(float, 1);
    float *found = ARRAY(float, 3), bias = (float)NUMBER(2);
    int64_t width = WIDTH(0);
    if (width % LANES) return damaged(call, "the width of states", width, width);
    for (int64_t token = 0; token < LENGTH(0); token++) {
        floats sums = {0};
        for (int64_t place = 0; place < width; place += LANES)
            sums += load_floats(states + token * width + place) * load_floats(weights + place);
        float weight = sum_of(sums) + bias;
        found[token] = weight < 0 ? 0 : weight; // what is no number stays so
    }
    return DONE;
}

const kernel_entry TABLE(heads)[] = {
    {"project_tokens",
     "states: float32[T, W], panels: int16[P, S, 16, 2], scales: float32[P, 16], biases: float32[P, 16], "
     "found: float32[T, C]!",
     project_tokens, RELEASES_LOCK},
    {"weigh_tokens", "states: float32[T, W], weights: float32[W], bias: float, found: float32[T]!", weigh_tokens,
     RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
