// Where the token vectors of texts lie, and those that are stored as int8.

#include "token_store.h"

static int token_spans(call *call) {
    const view *const *stores = RECORDS(0);
    const int64_t *places = ARRAY(int64_t, 1), *rows = ARRAY(int64_t, 2);
    RESULT(int64_t, starts, 0, LENGTH(1));
    RESULT(int64_t, ends, 1, LENGTH(1));
    for (int64_t number = 0; number < LENGTH(1); number++) {
        int64_t place = places[number], row = rows[number];
        if (outside(place, RECORD_COUNT(0))) return damaged(call, "the place of a store", place, RECORD_COUNT(0));
        const view *offsets = &stores[place][TOKEN_OFFSETS];
        if (outside(row, offsets->shape[0] - 1)) return damaged(call, "a row", row, offsets->shape[0] - 1);
        starts[number] = ((const int64_t *)offsets->data)[row];
        ends[number] = ((const int64_t *)offsets->data)[row + 1];
        bool coded = stores[place][TOKEN_CODES].data != NULL;
        int64_t limit = coded ? tokens_of_store(stores[place]) + 1 : INT64_MAX;
        if (outside(ends[number], limit)) return damaged(call, "the end of a text", ends[number], limit);
        if (outside(starts[number], ends[number] + 1))
            return damaged(call, "the start of a text", starts[number], ends[number] + 1);
    }
    return DONE;
}

static int unpack_int8(call *call) {
    const int8_t *restrict codes = ARRAY(int8_t, 0);
    const float *scales = ARRAY(float, 1);
    const int64_t *positions = ARRAY(int64_t, 2), width = WIDTH(0);
    float *restrict vectors = ARRAY(float, 3);
    for (int64_t number = 0; number < LENGTH(2); number++) {
        int64_t position = positions[number];
        if (outside(position, LENGTH(0))) return damaged(call, "the position of a token", position, LENGTH(0));
        const int8_t *code = codes + position * width;
        float *vector = vectors + number * width, scale = scales[position];
        for (int64_t place = 0; place < width; place++) vector[place] = (float)code[place] * scale;
    }
    return DONE;
}

const kernel_entry TABLE(token_store)[] = {
    {"token_spans", "stores: token_store[Z], places: int64[K], rows: int64[K] -> int64[], int64[]", token_spans,
     KEEPS_LOCK},
    {"unpack_int8", "codes: int8[T, C], scales: float32[T], positions: int64[K], vectors: float32[K, C]!", unpack_int8,
     RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
