// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

// A layer of an encoder: the matrices into and out of attention and of the two dense layers, each with the scale
// and the bias of each column, and the weights and biases of the layer norms after attention and after the rest.
enum {
    LAYER_INTO,
    LAYER_OUT = 3,
    LAYER_OUT_WEIGHTS = 6,
    LAYER_OUT_BIASES,
    LAYER_RISE,
    LAYER_FALL = 11,
    LAYER_FALL_WEIGHTS = 14,
    LAYER_FALL_BIASES,
};

extern const layout_entry layouts_of_records[];
