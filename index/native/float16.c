// Stored float16 rows as float32.

#include "arrays.h"
#include "halves.h"

static int widen_rows(call *call) {
    const half *stored = ARRAY(half, 0);
    const int64_t *rows = ARRAY(int64_t, 1);
    float *values = ARRAY(float, 2);
    int64_t width = WIDTH(0);
    for (int64_t number = 0; number < LENGTH(1); number++) {
        if (outside(rows[number], LENGTH(0))) return damaged(call, "a row", rows[number], LENGTH(0));
        const half *row = stored + rows[number] * width;
        int64_t place = 0;
        for (; place + 8 <= width; place += 8) {
            floats8 widened;
            widen_8(row + place, &widened);
            memcpy(values + number * width + place, &widened, sizeof widened);
        }
        for (; place < width; place++) values[number * width + place] = widen(row[place]);
    }
    return DONE;
}

const kernel_entry TABLE(float16)[] = {
    {"widen_rows", "stored: float16[N, D], rows: int64[K], values: float32[K, D]!", widen_rows, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
