// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

// An inverted index with the forward rows that it was built from.
enum {
    INDEX_TERMS,
    INDEX_LARGEST,
    INDEX_TERM_ENTRIES,
    INDEX_ENTRY_BLOCK,
    INDEX_ENTRY_START,
    INDEX_ENTRY_COLUMN,
    INDEX_DOCUMENTS,
    INDEX_IMPACTS,
    INDEX_COLUMNS,
    INDEX_INDPTR,
    INDEX_TOKEN_IDS,
    INDEX_WEIGHTS,
    INDEX_LENGTHS,
};

// Which documents of a segment may be found; without data all of them.
enum { ALLOWED };

// The terms of a segment, ascending, the beginning of every so many-th one, and how many documents have each.
enum { TERM_BYTES, TERM_OFFSETS, TERM_BEGINNINGS, TERM_FREQUENCIES };

// Dense vectors of a segment.
enum { DENSE_VECTORS };

// A keyword field: its distinct values, packed and ascending, and the code and the row of each value of a document.
enum { KEYWORD_STRINGS, KEYWORD_OFFSETS, KEYWORD_CODES, KEYWORD_ROWS };

// An HNSW graph; links and offsets are bytes, since they lie unaligned where FAISS maps them.
enum { GRAPH_VECTORS, GRAPH_LINKS, GRAPH_OFFSETS, GRAPH_WIDTHS };

// Token vectors of a segment as they are stored.
enum { TOKEN_CODES, TOKEN_SCALES, TOKEN_CENTROIDS, TOKEN_OFFSETS };

extern const layout_entry layouts_of_records[];
