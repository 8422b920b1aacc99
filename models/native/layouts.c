// The layouts of records; the numbers of their fields are in `layouts.h`.

#include "layouts.h"

const layout_entry layouts_of_records[] = {
    {"encoder_layer",
     "into: uint8[Q, B, 16, 4], into_scales: float32[Q, 16], into_biases: float32[Q, 16], "
     "out: uint8[D, B, 16, 4], out_scales: float32[D, 16], out_biases: float32[D, 16], "
     "out_norm_weights: float32[D, 16], out_norm_biases: float32[D, 16], "
     "rise: uint8[R, B, 16, 4], rise_scales: float32[R, 16], rise_biases: float32[R, 16], "
     "fall: uint8[D, C, 16, 4], fall_scales: float32[D, 16], fall_biases: float32[D, 16], "
     "fall_norm_weights: float32[D, 16], fall_norm_biases: float32[D, 16]"},
    {NULL, NULL},
};
