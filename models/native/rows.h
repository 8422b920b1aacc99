// What is done to a row by itself: layer norm, and its values as bytes.
#pragma once

#include "panels.h"

// As `tercet.models.int8.quantize` has them.
#define BYTE_LEVELS 127.0f
#define SMALLEST_SCALE 1e-12f

// The values float32[W] of a row as bytes, `largest` the greatest of their absolute values; where that is no
// number, or infinite, neither are products of the row.
static inline void quantize_row(const float *values, int64_t width, float largest, const byte_rows *to, int64_t row) {
    float scale = (largest <= SMALLEST_SCALE ? SMALLEST_SCALE : largest) / BYTE_LEVELS, inverse = 1 / scale;
    int8_t *numbers = to->numbers + row * to->stride;
    ints sums = {0};
    for (int64_t place = 0; place < width; place += LANES) {
        ints found = rounded(load_floats(values + place) * inverse);
        *(bytes *)(numbers + place) = __builtin_convertvector(found, bytes);
        sums += found;
    }
    memset(numbers + width, 0, (size_t)(to->stride - width));
    to->scales[row] = scale;
    to->starts[row] = -WEIGHT_OFFSET * sum_of_ints(sums);
}

static inline float largest_absolute(const float *values, int64_t width) {
    floats largest = {0};
    for (int64_t place = 0; place < width; place += LANES)
        largest = larger_size(load_floats(values + place), largest);
    return largest_size(largest);
}

// Scaled to a mean of 0 and a variance of 1, then by the weights; returns the greatest absolute value. width: a
// multiple of 16.
static inline float normalize_row(
    float *values, int64_t width, const float *weights, const float *biases, float epsilon
) {
    floats sums = {0}, squares = {0}, largest = {0};
    for (int64_t place = 0; place < width; place += LANES) sums += load_floats(values + place);
    float mean = sum_of(sums) / (float)width;
    for (int64_t place = 0; place < width; place += LANES) {
        floats centred = load_floats(values + place) - mean;
        squares += centred * centred;
    }
    float inverse = 1 / __builtin_sqrtf(sum_of(squares) / (float)width + epsilon);
    for (int64_t place = 0; place < width; place += LANES) {
        floats found = (load_floats(values + place) - mean) * inverse;
        found = found * load_floats(weights + place) + load_floats(biases + place);
        store_floats(values + place, found);
        largest = larger_size(found, largest);
    }
    return largest_size(largest);
}
