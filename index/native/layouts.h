// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

// An inverted index with the forward rows that it was built from.
enum {
    TERMS,
    LARGEST,
    TERM_ENTRIES,
    ENTRY_BLOCK,
    ENTRY_START,
    ENTRY_COLUMN,
    DOCUMENTS,
    IMPACTS,
    COLUMNS,
    INDPTR,
    TOKEN_IDS,
    WEIGHTS,
    LENGTHS,
};

// Which documents of a segment may be found; without data all of them.
enum { ALLOWED };

// The terms of a segment, ascending, the beginning of every so many-th one, and how many documents have each.
enum { TERM_BYTES, TERM_OFFSETS, TERM_BEGINNINGS, TERM_FREQUENCIES };

extern const layout_entry layouts_of_records[];
