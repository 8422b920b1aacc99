// Products of rows with a matrix in panels of 16 columns.
//
// A panel holds four bytes of each of its 16 columns after another: uint8[K/4, 16, 4], or int16[K/2, 16, 2], so
// that one instruction multiplies four bytes or two numbers of a row with all 16 columns and adds them up, and no
// sum crosses lanes. Sums are of whole numbers: no step rounds or saturates, and all variants give the same.
//
// Bytes of a matrix are below 128, WEIGHT_OFFSET standing for 0, and those of rows from -127 to 127, as
// `add_fours` needs it where it does not mix signs.
#pragma once

#include "lanes.h"

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
INLINED void multiply_panels(
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

// The same of rows and panels of bytes. An even number of steps.
INLINED void multiply_byte_panels(
    const int8_t *rows, int64_t row_stride, int row_count, const uint8_t *panels, int panel_count, int64_t steps,
    const int32_t *starts, ints sums[MOST_ROWS][MOST_PANELS]
) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
    if (row_count % 2 == 0) {
        multiply_row_pairs(rows, row_stride, row_count, panels, steps, starts, sums);
        return;
    }
#endif
    multiply_panels(
        rows, row_stride, row_count, panels, steps * PANEL_STEP, panel_count, steps, OF_BYTES, starts, sums
    );
}

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
