// What kernels are given and give: checked views of arrays, numbers, and tables of records.
//
// A kernel is a C function with a signature in words, such as
//
//     "terms: int32[X], totals: int64[V]!, table: graph[S], k: int -> int64[], float"
//
// `binding.c` checks every call against it before the kernel runs: types, dimensions, that arrays lie in one
// piece, and that equal letters are equal lengths. N+1 is one more than N, a number is itself, _ is any length.
// ! is an array that is written, ? one that may be None, then without data and with lengths of 0. `graph[S]` is
// a tuple of S records of that layout. What follows -> is returned: numbers, or new arrays of any length.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_DIMENSIONS 4
#define MOST_ARGUMENTS 24
#define MOST_RESULTS 4

typedef struct {
    void *data;
    int64_t shape[MOST_DIMENSIONS];
} view;

typedef union {
    view array;
    int64_t integer;
    double number;
    struct {
        const view *const *records;
        int64_t count;
    } table;
} argument;

typedef union {
    struct {
        void *data;
        int64_t count;
    } array;
    int64_t integer;
    double number;
} result;

enum { DONE = 0, NO_MEMORY = -1, DAMAGED = -2 };

typedef struct {
    argument arguments[MOST_ARGUMENTS];
    result results[MOST_RESULTS];
    struct block *blocks; // of work space, let go of after the call
    const char *what; // is damaged
    int64_t value, limit;
} call;

typedef int (*kernel)(call *);

enum { RELEASES_LOCK = 0, KEEPS_LOCK = 1 };

// keeps_lock: for what is over in microseconds: a thread that lets go of the interpreter's lock for so short a
// time may wait milliseconds to have it back.
typedef struct {
    const char *name;
    const char *signature;
    kernel run;
    int keeps_lock;
} kernel_entry;

// A layout has a name, and a signature of arrays alone.
typedef struct {
    const char *name;
    const char *signature;
} layout_entry;

// Work space of `count` items, zeros; NULL where there is none.
void *space(call *, int64_t count, int64_t item);

// The same without a value, for what is written before it is read.
void *unset_space(call *, int64_t count, int64_t item);

// The same memory with room for more items, as many as before kept; NULL where there is none.
void *more_space(call *, void *former, int64_t count, int64_t item);

// The array of a result with room for `count` items, zeros; NULL where there is none. Its count may be lowered.
void *new_result(call *, int place, int64_t count, int64_t item);

// Makes work space a result of `count` items.
void give(call *, int place, void *space, int64_t count);

// What a kernel returns where a stored number is outside of 0 up to `limit`.
int damaged(call *, const char *what, int64_t value, int64_t limit);

// Whether a number is outside of 0 up to `limit`.
static inline bool outside(int64_t value, int64_t limit) { return value < 0 || value >= limit; }

// The array of an argument, of a record, or of work space; the latter two leave the kernel where memory is short.
#define ARRAY(type, place) ((type *)call->arguments[place].array.data)
#define LENGTH(place) (call->arguments[place].array.shape[0])
#define WIDTH(place) (call->arguments[place].array.shape[1])
#define DEPTH(place) (call->arguments[place].array.shape[2])
#define INTEGER(place) (call->arguments[place].integer)
#define NUMBER(place) (call->arguments[place].number)
#define RECORDS(place) (call->arguments[place].table.records)
#define RECORD_COUNT(place) (call->arguments[place].table.count)
#define OF(record, field, type) ((type *)(record)[field].data)

#define SPACE(type, name, count)                                                                                 \
    type *name = space(call, count, sizeof(type));                                                               \
    if (!name) return NO_MEMORY

#define RESULT(type, name, place, count)                                                                         \
    type *name = new_result(call, place, count, sizeof(type));                                                   \
    if (!name) return NO_MEMORY

// The name of a file's table of kernels: one for each variant of the processor, which VARIANT names.
#define JOINED(one, other) one##_##other
#define OF_VARIANT(name, variant) JOINED(name, variant)
#define TABLE(name) OF_VARIANT(name##_kernels, VARIANT)
