// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

enum { DENSE_VECTORS };

enum { KEYWORD_STRINGS, KEYWORD_OFFSETS, KEYWORD_CODES, KEYWORD_ROWS };

enum { GRAPH_VECTORS, GRAPH_LINKS, GRAPH_OFFSETS, GRAPH_WIDTHS };

extern const layout_entry layouts_of_records[];
