// Loops that build an inverted index. V: the vocabulary's size. An entry is one term in one block of documents.

#include <math.h>
#include <string.h>

#include "arrays.h"
#include "sparse.h"

#define COLUMN_SHARE 8 // a term in more than 1/8 of a block's documents is kept as a column

static int count_block(call *call) {
    rows forward = ROWS(0, 1, 2);
    int64_t first = INTEGER(3), last = INTEGER(4), *counts = ARRAY(int64_t, 5), vocabulary = LENGTH(5);
    float *largest = ARRAY(float, 6);
    if (first < 0 || first > last || last > forward.count) return damaged(call, "a document", last, forward.count + 1);
    memset(counts, 0, (size_t)vocabulary * sizeof *counts);
    call->results[0].integer = -1;
    for (int64_t document = first; document < last; document++) {
        CHECKED_ROW(here, forward, document);
        int64_t previous = -1;
        for (int64_t position = here.start; position < here.end; position++) {
            int64_t term = forward.token_ids[position];
            float weight = forward.weights[position];
            if (term <= previous || term >= vocabulary || !(weight > 0 && weight < INFINITY)) {
                call->results[0].integer = document;
                return DONE;
            }
            previous = term;
            counts[term]++;
            if (weight > largest[term]) largest[term] = weight;
        }
    }
    return DONE;
}

static int add_sizes(call *call) {
    const int64_t *counts = ARRAY(int64_t, 0), documents = INTEGER(1);
    int64_t *entries = ARRAY(int64_t, 2), *postings = ARRAY(int64_t, 3), *columns = ARRAY(int64_t, 4);
    for (int64_t term = 0; term < LENGTH(0); term++) {
        if (counts[term] <= 0) continue;
        entries[term]++;
        if (counts[term] * COLUMN_SHARE > documents)
            columns[term]++;
        else
            postings[term] += counts[term];
    }
    return DONE;
}

// ceil(255 weight / largest), from 1 to 255.
static inline uint8_t impact_of(float weight, float largest) {
    double share = 255 * (double)weight / (double)largest;
    int64_t whole = share >= 255 ? 255 : share > 1 ? (int64_t)share : 1;
    return (uint8_t)(whole + ((double)whole < share && whole < 255));
}

static int fill_block(call *call) {
    rows forward = ROWS(0, 1, 2);
    const int64_t block = INTEGER(3), *counts = ARRAY(int64_t, 4), vocabulary = LENGTH(4);
    const float *largest = ARRAY(float, 5);
    int64_t *next_entry = ARRAY(int64_t, 6), *next_posting = ARRAY(int64_t, 7), *next_column = ARRAY(int64_t, 8);
    int32_t *entry_block = ARRAY(int32_t, 9), *entry_column = ARRAY(int32_t, 11);
    int64_t *entry_start = ARRAY(int64_t, 10), entries = LENGTH(9);
    uint16_t *documents = ARRAY(uint16_t, 12);
    uint8_t *impacts = ARRAY(uint8_t, 13), *columns = ARRAY(uint8_t, 14);
    int64_t postings = LENGTH(12), width = WIDTH(14), first = block * BLOCK;
    int64_t last = first + BLOCK < forward.count ? first + BLOCK : forward.count;
    if (outside(first, forward.count + 1)) return damaged(call, "a block", block, forward.count / BLOCK + 1);
    if (last - first > width) return damaged(call, "the length of a block", last - first, width + 1);
    SPACE(int64_t, target, vocabulary); // the next posting, or -1 - column
    for (int64_t term = 0; term < vocabulary; term++) {
        int64_t count = counts[term], entry = next_entry[term];
        if (count <= 0) continue;
        if (outside(entry, entries)) return damaged(call, "an entry", entry, entries);
        next_entry[term]++;
        entry_block[entry] = (int32_t)block;
        entry_start[entry] = next_posting[term];
        if (count * COLUMN_SHARE > last - first) {
            if (outside(next_column[term], LENGTH(14))) return damaged(call, "a column", next_column[term], LENGTH(14));
            entry_column[entry] = (int32_t)next_column[term];
            target[term] = -1 - next_column[term]++;
        } else {
            if (next_posting[term] < 0) return damaged(call, "a posting", next_posting[term], postings);
            entry_column[entry] = -1;
            target[term] = next_posting[term];
            next_posting[term] += count;
        }
    }
    for (int64_t document = first; document < last; document++) {
        CHECKED_ROW(here, forward, document);
        for (int64_t position = here.start; position < here.end; position++) {
            int64_t term = forward.token_ids[position];
            if (outside(term, vocabulary)) return damaged(call, "a token id", term, vocabulary);
            uint8_t impact = impact_of(forward.weights[position], largest[term]);
            int64_t place = target[term];
            if (place < 0)
                columns[(-1 - place) * width + document - first] = impact;
            else {
                if (place >= postings) return damaged(call, "a posting", place, postings);
                documents[place] = (uint16_t)(document - first);
                impacts[place] = impact;
                target[term]++;
            }
        }
    }
    return DONE;
}

const kernel_entry TABLE(sparse_build)[] = {
    {"count_block",
     "indptr: int64[N+1], token_ids: int32[W], weights: float32[W], first: int, last: int, counts: int64[V]!, "
     "largest: float32[V]! -> int",
     count_block, RELEASES_LOCK},
    {"add_sizes", "counts: int64[V], rows: int, entries: int64[V]!, postings: int64[V]!, columns: int64[V]!", add_sizes,
     RELEASES_LOCK},
    {"fill_block",
     "indptr: int64[N+1], token_ids: int32[W], weights: float32[W], block: int, counts: int64[V], "
     "largest: float32[V], next_entry: int64[V]!, next_posting: int64[V]!, next_column: int64[V]!, "
     "entry_block: int32[E]!, entry_start: int64[E+1]!, entry_column: int32[E]!, documents: uint16[P]!, "
     "impacts: uint8[P]!, columns: uint8[C, L]!",
     fill_block, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
