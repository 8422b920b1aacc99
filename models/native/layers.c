// The layers of an encoder of BERT's shape: attention and two dense layers, each with a layer norm after it.

#include "attention.h"
#include "layouts.h"
#include "rows.h"

// Rows that go through the matrices of a layer together: what they make of them stays in the second cache.
enum { ROWS_AT_ONCE = 48, STRIDE_UNIT = 64, GROUP_TOKENS = 192 };

typedef struct {
    matrix into, out, rise, fall;
    const float *out_weights, *out_biases, *fall_weights, *fall_biases;
} layer;

typedef struct {
    int64_t width, inner; // of a token's state, and between the dense layers
    int64_t heads;
    float epsilon;
} shape;

static matrix matrix_of(const view *record, int field) {
    const view *panels = &record[field];
    return (matrix){
        panels->data, record[field + 1].data, record[field + 2].data, panels->shape[0], panels->shape[1],
    };
}

static layer layer_of(const view *record) {
    return (layer){
        matrix_of(record, LAYER_INTO), matrix_of(record, LAYER_OUT), matrix_of(record, LAYER_RISE),
        matrix_of(record, LAYER_FALL), record[LAYER_OUT_WEIGHTS].data, record[LAYER_OUT_BIASES].data,
        record[LAYER_FALL_WEIGHTS].data, record[LAYER_FALL_BIASES].data,
    };
}

static byte_rows new_byte_rows(call *call, int64_t count, int64_t width) {
    int64_t stride = round_up(width, STRIDE_UNIT);
    return (byte_rows){
        unset_space(call, count * stride, 1), unset_space(call, count, sizeof(float)),
        unset_space(call, count, sizeof(int32_t)), stride,
    };
}

static bool is_there(const byte_rows *rows) { return rows->numbers && rows->scales && rows->starts; }

// What rows need on their way through a layer.
typedef struct {
    byte_rows states, inner; // [ROWS_AT_ONCE, width and inner]
    float *made, *risen; // the same
} layer_space;

static bool make_space(call *call, const shape *shape, layer_space *own) {
    own->states = new_byte_rows(call, ROWS_AT_ONCE, shape->width);
    own->inner = new_byte_rows(call, ROWS_AT_ONCE, shape->inner);
    own->made = unset_space(call, ROWS_AT_ONCE * shape->width, sizeof(float));
    own->risen = unset_space(call, ROWS_AT_ONCE * shape->inner, sizeof(float));
    return is_there(&own->states) && is_there(&own->inner) && own->made && own->risen;
}

static void project_rows(
    const layer *layer, const shape *shape, const float *states, int64_t count, float *projected,
    const layer_space *own
) {
    for (int64_t row = 0; row < count; row++) {
        const float *values = states + row * shape->width;
        quantize_row(values, shape->width, largest_absolute(values, shape->width), &own->states, row);
    }
    multiply_bytes(&own->states, count, &layer->into, projected);
}

INLINED void attend_with_width(
    int64_t width, int64_t of_head, const float *projected, int64_t tokens, int64_t first_head, int64_t last_head,
    const attention_space *own, float *out
) {
    for (int64_t head = first_head; head < last_head; head++) {
        const float *first = projected + head * of_head;
        head_part queries = {first, 3 * width, tokens, of_head};
        head_part keys = {first + width, 3 * width, tokens, of_head};
        head_part values = {first + 2 * width, 3 * width, tokens, of_head};
        float scaling = 1 / __builtin_sqrtf((float)of_head);
        attend_with_head(&queries, &keys, &values, scaling, own, out + head * of_head, width);
    }
}

// Writes what the tokens of a text attend to with some heads. Their usual widths are constants, which unroll loops.
static void attend(
    const shape *shape, const float *projected, int64_t tokens, int64_t first_head, int64_t last_head,
    const attention_space *own, float *out
) {
    int64_t of_head = shape->width / shape->heads;
    if (of_head == 32)
        attend_with_width(shape->width, 32, projected, tokens, first_head, last_head, own, out);
    else if (of_head == 64)
        attend_with_width(shape->width, 64, projected, tokens, first_head, last_head, own, out);
    else
        attend_with_width(shape->width, of_head, projected, tokens, first_head, last_head, own, out);
}

// Adds what was made to the states and normalizes these, float32[R, width], which are quantized, too.
static void add_and_normalize(
    const shape *shape, const float *weights, const float *biases, const float *made, int64_t count, float *states,
    const byte_rows *numbers
) {
    for (int64_t row = 0; row < count; row++) {
        float *values = states + row * shape->width;
        for (int64_t place = 0; place < shape->width; place += LANES)
            store_floats(
                values + place, load_floats(made + row * shape->width + place) + load_floats(values + place)
            );
        float largest = normalize_row(values, shape->width, weights, biases, shape->epsilon);
        if (numbers) quantize_row(values, shape->width, largest, numbers, row);
    }
}

static void finish_rows(
    const layer *layer, const shape *shape, const float *attended, int64_t count, float *states,
    const layer_space *own
) {
    for (int64_t row = 0; row < count; row++) {
        const float *values = attended + row * shape->width;
        quantize_row(values, shape->width, largest_absolute(values, shape->width), &own->states, row);
    }
    multiply_bytes(&own->states, count, &layer->out, own->made);
    add_and_normalize(shape, layer->out_weights, layer->out_biases, own->made, count, states, &own->states);
    multiply_bytes(&own->states, count, &layer->rise, own->risen);
    for (int64_t row = 0; row < count; row++) {
        float *values = own->risen + row * shape->inner;
        floats largest = {0};
        for (int64_t place = 0; place < shape->inner; place += LANES) {
            floats found = gelu(load_floats(values + place));
            store_floats(values + place, found);
            largest = larger_size(found, largest);
        }
        quantize_row(values, shape->inner, largest_size(largest), &own->inner, row);
    }
    multiply_bytes(&own->inner, count, &layer->fall, own->made);
    add_and_normalize(shape, layer->fall_weights, layer->fall_biases, own->made, count, states, NULL);
}

// The number of tokens of the longest text; -1 where the offsets are not those of all tokens.
static int64_t longest_text(const int64_t *offsets, int64_t texts, int64_t tokens) {
    int64_t longest = 0;
    if (offsets[0] != 0 || offsets[texts] != tokens) return -1;
    for (int64_t text = 0; text < texts; text++) {
        int64_t count = offsets[text + 1] - offsets[text];
        if (count < 0 || offsets[text + 1] > tokens) return -1;
        longest = count > longest ? count : longest;
    }
    return longest;
}

static bool fits(const layer *layer, const shape *shape) {
    int64_t wide = round_up(shape->width, STRIDE_UNIT) / LANE_BYTES, inner = shape->inner / LANES;
    return layer->into.panel_count * LANES == 3 * shape->width && layer->into.steps == wide &&
           layer->out.panel_count * LANES == shape->width && layer->rise.panel_count == inner &&
           layer->fall.steps == round_up(shape->inner, STRIDE_UNIT) / LANE_BYTES;
}

// What a call is about: the shape of its layers, and the offsets of its texts. DONE unless it is damaged.
static int read_shape(call *call, int64_t width, int64_t heads, float epsilon, shape *found) {
    if (!RECORD_COUNT(0)) return damaged(call, "the number of layers", 0, 1);
    *found = (shape){width, layer_of(RECORDS(0)[0]).rise.panel_count * LANES, heads, epsilon};
    if (heads < 1 || heads > width || width % heads) return damaged(call, "the heads", heads, width);
    for (int64_t place = 0; place < RECORD_COUNT(0); place++) {
        layer each = layer_of(RECORDS(0)[place]);
        if (!fits(&each, found)) return damaged(call, "a layer of another shape", place, RECORD_COUNT(0));
    }
    return DONE;
}

static void project_all(
    const layer *layer, const shape *shape, const float *states, int64_t tokens, float *projected,
    const layer_space *own
) {
    for (int64_t row = 0; row < tokens; row += ROWS_AT_ONCE) {
        int64_t some = tokens - row < ROWS_AT_ONCE ? tokens - row : ROWS_AT_ONCE, at = row * shape->width;
        project_rows(layer, shape, states + at, some, projected + 3 * at, own);
    }
}

static void finish_all(
    const layer *layer, const shape *shape, const float *attended, int64_t tokens, float *states,
    const layer_space *own
) {
    for (int64_t row = 0; row < tokens; row += ROWS_AT_ONCE) {
        int64_t some = tokens - row < ROWS_AT_ONCE ? tokens - row : ROWS_AT_ONCE, at = row * shape->width;
        finish_rows(layer, shape, attended + at, some, states + at, own);
    }
}

// The texts from `first` on that go through a layer together: the weights are read once for so many rows.
static int64_t end_of_group(const int64_t *offsets, int64_t texts, int64_t first) {
    int64_t last = first + 1;
    while (last < texts && offsets[last + 1] - offsets[first] <= GROUP_TOKENS) last++;
    return last;
}

static int run_layers(call *call) {
    const int64_t *offsets = ARRAY(int64_t, 1), texts = LENGTH(1) - 1, tokens = LENGTH(4);
    float *states = ARRAY(float, 4);
    shape shape;
    int failure = read_shape(call, WIDTH(4), INTEGER(2), (float)NUMBER(3), &shape);
    if (failure) return failure;
    int64_t longest = longest_text(offsets, texts, tokens);
    if (longest < 0) return damaged(call, "where the tokens of a text lie", longest, tokens);
    int64_t room = longest > GROUP_TOKENS ? longest : GROUP_TOKENS;
    layer_space own;
    attention_space attention;
    float *projected = unset_space(call, 3 * room * shape.width, sizeof *projected);
    float *attended = unset_space(call, room * shape.width, sizeof *attended);
    if (!projected || !attended || !make_space(call, &shape, &own)) return NO_MEMORY;
    if (!make_attention_space(call, longest, shape.width / shape.heads, &attention)) return NO_MEMORY;
    for (int64_t place = 0; place < RECORD_COUNT(0); place++) {
        layer each = layer_of(RECORDS(0)[place]);
        for (int64_t first = 0, last; first < texts; first = last) {
            last = end_of_group(offsets, texts, first);
            int64_t from = offsets[first], count = offsets[last] - from;
            float *here = states + from * shape.width;
            project_all(&each, &shape, here, count, projected, &own);
            for (int64_t text = first; text < last; text++) {
                int64_t at = (offsets[text] - from) * shape.width, length = offsets[text + 1] - offsets[text];
                attend(&shape, projected + 3 * at, length, 0, shape.heads, &attention, attended + at);
            }
            finish_all(&each, &shape, attended, count, here, &own);
        }
    }
    return DONE;
}

// The same in parts, of which threads take some rows or some heads each.

static int project_layer(call *call) {
    shape shape;
    int failure = read_shape(call, WIDTH(1), 1, 0, &shape);
    if (failure) return failure;
    if (WIDTH(2) != 3 * shape.width) return damaged(call, "the width of what is projected", WIDTH(2), 3 * shape.width);
    layer_space own;
    if (!make_space(call, &shape, &own)) return NO_MEMORY;
    layer only = layer_of(RECORDS(0)[0]);
    project_all(&only, &shape, ARRAY(float, 1), LENGTH(1), ARRAY(float, 2), &own);
    return DONE;
}

static int attend_with_heads(call *call) {
    int64_t heads = INTEGER(1), first = INTEGER(2), last = INTEGER(3), width = WIDTH(4);
    if (WIDTH(0) != 3 * width) return damaged(call, "the width of what is projected", WIDTH(0), 3 * width);
    if (heads < 1 || heads > width || width % heads) return damaged(call, "the heads", heads, width);
    if (first < 0 || last < first || last > heads) return damaged(call, "the heads of a part", last, heads);
    shape shape = {width, 0, heads, 0};
    attention_space attention;
    if (!make_attention_space(call, LENGTH(0), width / heads, &attention)) return NO_MEMORY;
    attend(&shape, ARRAY(float, 0), LENGTH(0), first, last, &attention, ARRAY(float, 4));
    return DONE;
}

static int finish_layer(call *call) {
    shape shape;
    int failure = read_shape(call, WIDTH(3), 1, (float)NUMBER(1), &shape);
    if (failure) return failure;
    layer_space own;
    if (!make_space(call, &shape, &own)) return NO_MEMORY;
    layer only = layer_of(RECORDS(0)[0]);
    finish_all(&only, &shape, ARRAY(float, 2), LENGTH(3), ARRAY(float, 3), &own);
    return DONE;
}

static int normalize_states(call *call) {
    float *states = ARRAY(float, 3);
    int64_t width = WIDTH(3);
    if (width % LANES) return damaged(call, "the width of states", width, width);
    for (int64_t row = 0; row < LENGTH(3); row++)
        normalize_row(states + row * width, width, ARRAY(float, 0), ARRAY(float, 1), (float)NUMBER(2));
    return DONE;
}

const kernel_entry TABLE(layers)[] = {
    {"normalize_states", "weights: float32[W], biases: float32[W], epsilon: float, states: float32[T, W]!",
     normalize_states, RELEASES_LOCK},
    {"run_layers",
     "layers: encoder_layer[S], offsets: int64[N+1], heads: int, epsilon: float, states: float32[T, W]!",
     run_layers, RELEASES_LOCK},
    {"project_layer", "layers: encoder_layer[S], states: float32[T, W], projected: float32[T, X]!", project_layer,
     RELEASES_LOCK},
    {"attend_with_heads",
     "projected: float32[T, X], heads: int, first: int, last: int, attended: float32[T, W]!", attend_with_heads,
     RELEASES_LOCK},
    {"finish_layer",
     "layers: encoder_layer[S], epsilon: float, attended: float32[T, W], states: float32[T, W]!", finish_layer,
     RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
