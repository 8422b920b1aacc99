// Matrices in panels of 16 columns with scales: what rows times them come to as float32.
#pragma once

#include "panel_products.h"
#include "vectors.h"

// A matrix of bytes with the scale and the bias of each column.
typedef struct {
    const uint8_t *panels;
    const float *scales, *biases;
    int64_t panel_count, steps;
} matrix;

// Rows as bytes: values are about numbers times the row's scale. stride: bytes of a row, a multiple of 64 that
// ends in zeros.
typedef struct {
    int8_t *numbers;
    float *scales;
    int32_t *starts; // what takes WEIGHT_OFFSET out of their products: minus that times the sum of the numbers
    int64_t stride;
} byte_rows;

INLINED void multiply_byte_tile(
    const byte_rows *rows, int64_t row, int row_count, const matrix *by, int64_t panel, int panel_count, float *out
) {
    ints sums[MOST_ROWS][MOST_PANELS];
    int64_t panel_bytes = by->steps * PANEL_STEP, width = by->panel_count * LANES;
    const int8_t *numbers = rows->numbers + row * rows->stride;
    const uint8_t *panels = by->panels + panel * panel_bytes;
    multiply_byte_panels(
        numbers, rows->stride, row_count, panels, panel_count, by->steps, rows->starts + row, sums
    );
    const float *row_scales = rows->scales + row;
    floats scales[MOST_PANELS], biases[MOST_PANELS];
    float *to = out + row * width + panel * LANES;
#pragma GCC unroll 2
    for (int beside = 0; beside < panel_count; beside++) {
        scales[beside] = load_floats(by->scales + (panel + beside) * LANES);
        biases[beside] = load_floats(by->biases + (panel + beside) * LANES);
    }
#pragma GCC unroll 16
    for (int at = 0; at < row_count; at++)
#pragma GCC unroll 2
        for (int beside = 0; beside < panel_count; beside++) {
            floats found = to_floats(sums[at][beside]) * scales[beside];
            store_floats(to + at * width + beside * LANES, fused(found, all_floats(row_scales[at]), biases[beside]));
        }
}

// Writes float32[R, 16 P]: rows times the matrix, plus its biases.
static inline void multiply_bytes(const byte_rows *rows, int64_t count, const matrix *by, float *out) {
#define BYTE_TILE(row, row_count, panel, panel_count)                                                            \
    multiply_byte_tile(rows, row, row_count, by, panel, panel_count, out)
    TILED(BYTE_TILE, count, by->panel_count);
#undef BYTE_TILE
}

// Products of 16-bit numbers are added up as whole numbers over so many steps, and beyond that as float32: sums of
// 64 products of one within 2^a and another within 2^b, a + b at most 25.
enum { WHOLE_STEPS = 32 };

INLINED void multiply_short_tile(
    const int16_t *rows, int64_t row_stride, int row_count, const int16_t *panels, int64_t panel_stride,
    int panel_count, int64_t steps, float *out, int64_t out_stride
) {
    for (int64_t first = 0; first < steps; first += WHOLE_STEPS) {
        ints sums[MOST_ROWS][MOST_PANELS];
        int64_t some = steps - first < WHOLE_STEPS ? steps - first : WHOLE_STEPS;
        multiply_panels(
            (const char *)rows + first * LANE_BYTES, row_stride * 2, row_count,
            (const char *)panels + first * PANEL_STEP, panel_stride * 2, panel_count, some, OF_SHORTS, NULL, sums
        );
#pragma GCC unroll 16
        for (int at = 0; at < row_count; at++)
#pragma GCC unroll 2
            for (int beside = 0; beside < panel_count; beside++) {
                float *to = out + at * out_stride + beside * LANES;
                floats found = to_floats(sums[at][beside]);
                if (first) found += load_floats(to);
                store_floats(to, found);
            }
    }
}

// Writes float32[R, 16 P]: rows int16[R, row_stride] times panels int16[P, steps, 16, 2].
static inline void multiply_shorts(
    const int16_t *rows, int64_t row_stride, int64_t count, const int16_t *panels, int64_t panel_count,
    int64_t steps, float *out, int64_t out_stride
) {
    int64_t panel_stride = steps * LANES * 2;
#define SHORT_TILE(row, row_count, panel, panels_at_once)                                                        \
    multiply_short_tile(                                                                                         \
        rows + (row) * row_stride, row_stride, row_count, panels + (panel) * panel_stride, panel_stride,         \
        panels_at_once, steps, out + (row) * out_stride + (panel) * LANES, out_stride                            \
    )
    TILED(SHORT_TILE, count, panel_count);
#undef SHORT_TILE
}
