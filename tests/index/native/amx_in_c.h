// The instructions of AMX that kernels use, in C, for a test on processors that do not have them.
//
// As Intel's manual of instruction set extensions has them: shapes come from the configuration, and an instruction
// that these do not fit ends the process. Of one thread.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#endif

#define _tile_loadconfig amx_configure
#define _tile_release amx_release
#define _tile_zero amx_zero
#define _tile_loadd amx_load
#define _tile_stored amx_store
#define _tile_dpbusd amx_multiply

enum { MOST_AMX_TILES = 8, MOST_AMX_ROWS = 16, MOST_AMX_BYTES = 64 };

typedef struct {
    uint8_t palette, first_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_configuration;

static amx_configuration amx_shape;
static uint8_t amx_tiles[MOST_AMX_TILES][MOST_AMX_ROWS][MOST_AMX_BYTES];

static inline void amx_require(int holds) {
    if (!holds) abort();
}

static inline void amx_require_tile(int tile) {
    amx_require(amx_shape.palette == 1 && tile >= 0 && tile < MOST_AMX_TILES);
    amx_require(amx_shape.rows[tile] > 0 && amx_shape.row_bytes[tile] > 0);
}

static inline void amx_configure(const void *configuration) {
    static const uint8_t zeros[16];
    memcpy(&amx_shape, configuration, sizeof amx_shape);
    memset(amx_tiles, 0, sizeof amx_tiles);
    amx_require(sizeof amx_shape == 64 && amx_shape.palette == 1 && amx_shape.first_row == 0);
    amx_require(memcmp(amx_shape.reserved, zeros, sizeof amx_shape.reserved) == 0);
    amx_require(memcmp(amx_shape.row_bytes + MOST_AMX_TILES, zeros, 2 * MOST_AMX_TILES) == 0);
    amx_require(memcmp(amx_shape.rows + MOST_AMX_TILES, zeros, MOST_AMX_TILES) == 0);
    for (int tile = 0; tile < MOST_AMX_TILES; tile++)
        amx_require(amx_shape.rows[tile] <= MOST_AMX_ROWS && amx_shape.row_bytes[tile] <= MOST_AMX_BYTES);
}

static inline void amx_release(void) {
    memset(&amx_shape, 0, sizeof amx_shape);
    memset(amx_tiles, 0, sizeof amx_tiles);
}

static inline void amx_zero(int tile) {
    amx_require_tile(tile);
    memset(amx_tiles[tile], 0, sizeof amx_tiles[tile]);
}

static inline void amx_load(int tile, const void *base, int64_t stride) {
    amx_zero(tile);
    for (int row = 0; row < amx_shape.rows[tile]; row++)
        memcpy(amx_tiles[tile][row], (const char *)base + row * stride, amx_shape.row_bytes[tile]);
}

static inline void amx_store(int tile, void *base, int64_t stride) {
    amx_require_tile(tile);
    for (int row = 0; row < amx_shape.rows[tile]; row++)
        memcpy((char *)base + row * stride, amx_tiles[tile][row], amx_shape.row_bytes[tile]);
}

// TDPBUSD: sums int32[M, N] with the products of uint8[M, K, 4] and int8[K, N, 4].
static inline void amx_multiply(int sums, int unsigned_side, int signed_side) {
    amx_require_tile(sums);
    amx_require_tile(unsigned_side);
    amx_require_tile(signed_side);
    amx_require(sums != unsigned_side && sums != signed_side && unsigned_side != signed_side);
    int rows = amx_shape.rows[sums], columns = amx_shape.row_bytes[sums] / 4, steps = amx_shape.rows[signed_side];
    amx_require(amx_shape.rows[unsigned_side] == rows && amx_shape.row_bytes[unsigned_side] == 4 * steps);
    amx_require(amx_shape.row_bytes[sums] == 4 * columns && amx_shape.row_bytes[signed_side] == 4 * columns);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++) {
            int32_t total;
            memcpy(&total, &amx_tiles[sums][row][4 * column], sizeof total);
            for (int place = 0; place < 4 * steps; place++)
                total += amx_tiles[unsigned_side][row][place] *
                         (int8_t)amx_tiles[signed_side][place / 4][4 * column + place % 4];
            memcpy(&amx_tiles[sums][row][4 * column], &total, sizeof total);
        }
}
