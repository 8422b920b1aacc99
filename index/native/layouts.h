// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

enum { TOKEN_CODES, TOKEN_SCALES, TOKEN_CENTROIDS, TOKEN_OFFSETS };

extern const layout_entry layouts_of_records[];
