// Products of rows with a matrix in panels of 16 columns.
//
// A panel holds four bytes of each of its 16 columns after another: uint8[K/4, 16, 4], or int16[K/2, 16, 2], so
// that one instruction multiplies four bytes or two numbers of a row with all 16 columns and adds them up, and no
// sum crosses lanes. Sums are of whole numbers: no step rounds or saturates, and all variants give the same.
//
// Bytes of a matrix are from 1 to 127, WEIGHT_OFFSET standing for 0, and those of rows from -127 to 127, as
// `add_fours` needs it where it does not mix signs.
#pragma once

#include "vectors.h"

enum { WEIGHT_OFFSET = 64, PANEL_STEP = LANES * LANE_BYTES };
enum product_kind { OF_BYTES, OF_SHORTS };

// Rows and panels at once: as many sums as stay in the registers.
#if defined(__AVX512F__)
enum { MOST_ROWS = 12, MOST_PANELS = 2 };
#else
enum { MOST_ROWS = 4, MOST_PANELS = 1 };
#endif

// Adds up the products of some rows, `row_stride` bytes from each other, with some panels, `panel_stride` bytes
// from each other, over so many steps. The counts and the kind are constants, so that sums stay in registers.
// starts: what the sums of each row begin with, or NULL. The panels behind are called into the second cache.
INLINED void multiply(
    const void *rows, int64_t row_stride, int row_count, const void *panels, int64_t panel_stride, int panel_count,
    int64_t steps, enum product_kind kind, const int32_t *starts, ints sums[MOST_ROWS][MOST_PANELS]
) {
#pragma GCC unroll 16
    for (int row = 0; row < row_count; row++)
#pragma GCC unroll 2
        for (int panel = 0; panel < panel_count; panel++)
            sums[row][panel] = (starts ? starts[row] : 0) - (ints){0};
    for (int64_t step = 0; step < steps; step++) {
        for (int panel = 0; kind == OF_BYTES && panel < panel_count; panel++)
            __builtin_prefetch(
                (const char *)panels + (panel + panel_count) * panel_stride + step * PANEL_STEP, 0, 2
            );
#pragma GCC unroll 16
        for (int row = 0; row < row_count; row++) {
            int32_t four;
            memcpy(&four, (const char *)rows + row * row_stride + step * LANE_BYTES, sizeof four);
            ints of_row = four - (ints){0};
#pragma GCC unroll 2
            for (int panel = 0; panel < panel_count; panel++) {
                const char *here = (const char *)panels + panel * panel_stride + step * PANEL_STEP;
                sums[row][panel] = kind == OF_BYTES ? add_fours(sums[row][panel], load_ints(here), of_row)
                                                    : add_pairs(sums[row][panel], load_ints(here), of_row);
            }
        }
    }
}

#if defined(__ARM_FEATURE_MATMUL_INT8)

// The same of an even number of rows of bytes with one panel: two steps at once, eight bytes of two rows and of two
// columns by one instruction.
INLINED void multiply_row_pairs(
    const int8_t *rows, int64_t row_stride, int row_count, const uint8_t *panel, int64_t steps,
    const int32_t *starts, ints sums[MOST_ROWS][MOST_PANELS]
) {
    row_pair pairs[MOST_ROWS / 2];
    for (int pair = 0; pair < row_count / 2; pair++) {
        const int32_t *own = starts + 2 * pair;
        for (int lane = 0; lane < LANES / 2; lane++)
            pairs[pair].squares[lane] = (int32x4_t){own[0], own[0], own[1], own[1]};
    }
    for (int64_t step = 0; step < steps; step += 2) {
        int8x16_t of_rows[MOST_ROWS / 2];
        for (int pair = 0; pair < row_count / 2; pair++) {
            const int8_t *from = rows + 2 * pair * row_stride + step * LANE_BYTES;
            of_rows[pair] = vcombine_s8(vld1_s8(from), vld1_s8(from + row_stride));
        }
#pragma GCC unroll 4
        for (int quarter = 0; quarter < 4; quarter++) {
            const uint8_t *here = panel + step * PANEL_STEP + quarter * PANEL_STEP / 4;
            int32x4_t low = vreinterpretq_s32_u8(vld1q_u8(here));
            int32x4_t high = vreinterpretq_s32_u8(vld1q_u8(here + PANEL_STEP));
            int8x16_t left = vreinterpretq_s8_s32(vzip1q_s32(low, high));
            int8x16_t right = vreinterpretq_s8_s32(vzip2q_s32(low, high));
            for (int pair = 0; pair < row_count / 2; pair++) {
                int32x4_t *squares = pairs[pair].squares + 2 * quarter;
                squares[0] = vmmlaq_s32(squares[0], of_rows[pair], left);
                squares[1] = vmmlaq_s32(squares[1], of_rows[pair], right);
            }
        }
    }
    for (int pair = 0; pair < row_count / 2; pair++)
        split_rows(&pairs[pair], &sums[2 * pair][0], &sums[2 * pair + 1][0]);
}

#endif

// Calls `TILE(rows, panels)` over all rows and panels, with constants.
#define TILED_ROWS(TILE, panel, panels, row, count)                                                              \
    for (; (row) + MOST_ROWS <= (count); (row) += MOST_ROWS) TILE(row, MOST_ROWS, panel, panels);                \
    if (MOST_ROWS > 8 && (row) + 8 <= (count)) {                                                                 \
        TILE(row, (MOST_ROWS > 8 ? 8 : 1), panel, panels);                                                       \
        (row) += 8;                                                                                              \
    }                                                                                                            \
    if (MOST_ROWS > 4 && (row) + 4 <= (count)) {                                                                 \
        TILE(row, (MOST_ROWS > 4 ? 4 : 1), panel, panels);                                                       \
        (row) += 4;                                                                                              \
    }                                                                                                            \
    if ((row) + 2 <= (count)) {                                                                                  \
        TILE(row, 2, panel, panels);                                                                             \
        (row) += 2;                                                                                              \
    }                                                                                                            \
    if ((row) < (count)) TILE(row, 1, panel, panels)

#define TILED(TILE, row_count, panel_count)                                                                      \
    do {                                                                                                         \
        int64_t panel_ = 0;                                                                                      \
        for (; panel_ + MOST_PANELS <= (panel_count); panel_ += MOST_PANELS) {                                   \
            int64_t row_ = 0;                                                                                    \
            TILED_ROWS(TILE, panel_, MOST_PANELS, row_, row_count);                                              \
        }                                                                                                        \
        if (MOST_PANELS > 1 && panel_ < (panel_count)) {                                                         \
            int64_t row_ = 0;                                                                                    \
            TILED_ROWS(TILE, panel_, 1, row_, row_count);                                                        \
        }                                                                                                        \
    } while (0)

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
#if defined(__ARM_FEATURE_MATMUL_INT8)
    if (row_count % 2 == 0)
        multiply_row_pairs(numbers, rows->stride, row_count, panels, by->steps, rows->starts + row, sums);
    else
#endif
        multiply(
            numbers, rows->stride, row_count, panels, panel_bytes, panel_count, by->steps, OF_BYTES,
            rows->starts + row, sums
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
        multiply(
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
