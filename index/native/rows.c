// Loops over the rows of values.

#include <string.h>

#include "arrays.h"

static int set_bits(call *call) {
    const uint32_t *rows = ARRAY(uint32_t, 0);
    uint8_t *packed = ARRAY(uint8_t, 1);
    for (int64_t place = 0; place < LENGTH(0); place++) {
        uint32_t row = rows[place];
        if (outside(row >> 3, LENGTH(1))) return damaged(call, "a row", row, 8 * LENGTH(1));
        packed[row >> 3] |= (uint8_t)(1 << (row & 7));
    }
    return DONE;
}

static int count_rows(call *call) {
    const int32_t *codes = ARRAY(int32_t, 0);
    const int64_t *rows = ARRAY(int64_t, 1);
    int64_t values = INTEGER(2);
    if (values < 0) return damaged(call, "the number of values", values, INT64_MAX);
    SPACE(int64_t, last, values);
    memset(last, 0xFF, (size_t)values * sizeof *last); // of each value the row that had it, -1
    RESULT(int64_t, counts, 0, values);
    for (int64_t place = 0; place < LENGTH(0); place++) {
        int64_t code = codes[place], row = rows[place];
        if (outside(code, values)) return damaged(call, "the code of a value", code, values);
        if (last[code] == row) continue; // a list may have a string twice
        last[code] = row;
        counts[code]++;
    }
    return DONE;
}

static int group_rows(call *call) {
    const int32_t *codes = ARRAY(int32_t, 0);
    const int64_t *rows = ARRAY(int64_t, 1), *offsets = ARRAY(int64_t, 2);
    int64_t values = LENGTH(2) - 1, total = offsets[values];
    if (outside(total, LENGTH(0) + 1)) return damaged(call, "the number of rows", total, LENGTH(0) + 1);
    SPACE(int64_t, ends, values);
    if (values) memcpy(ends, offsets, (size_t)values * sizeof *ends);
    RESULT(int32_t, grouped, 0, total);
    for (int64_t place = 0; place < LENGTH(0); place++) {
        int32_t code = codes[place], row = (int32_t)rows[place];
        if (outside(code, values)) return damaged(call, "the code of a value", code, values);
        int64_t end = ends[code];
        if (end != offsets[code] && grouped[end - 1] == row) continue;
        if (outside(end, total)) return damaged(call, "the place of a row", end, total);
        grouped[end] = row;
        ends[code] = end + 1;
    }
    return DONE;
}

const kernel_entry TABLE(rows)[] = {
    {"set_bits", "rows: uint32[K], packed: uint8[B]!", set_bits, RELEASES_LOCK},
    {"count_rows", "codes: int32[P], rows: int64[P], values: int -> int64[]", count_rows, RELEASES_LOCK},
    {"group_rows", "codes: int32[P], rows: int64[P], offsets: int64[V+1] -> int32[]", group_rows, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
