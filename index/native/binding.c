// The Python side of the kernels: signatures are read once, calls checked against them, results given back.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

#define MOST_FIELDS 16
#define MOST_LAYOUTS 16
#define RECORDS_ON_STACK 32
#define NAME_LENGTH 32
#define LETTERS 26

typedef enum { ARRAY_KIND, INTEGER_KIND, NUMBER_KIND, BOOLEAN_KIND, TABLE_KIND } kind;

typedef struct {
    const char *name;
    const char *formats; // of the buffer protocol
    int item;
} type;

static const type TYPES[] = {
    {"bool", "?", 1},   {"uint8", "B", 1},  {"int8", "b", 1},   {"uint16", "H", 2},  {"int16", "h", 2},
    {"uint32", "IL", 4}, {"int32", "il", 4}, {"uint64", "LQ", 8}, {"int64", "lq", 8},
    {"float16", "e", 2}, {"float32", "f", 4}, {"float64", "d", 8},
};

typedef struct {
    char letter; // of a length, _ for any, 0 for a number
    int64_t plus; // what is added to it, or the number itself
} length;

typedef struct {
    char name[NAME_LENGTH];
    kind kind;
    const type *type;
    int dimensions;
    length lengths[MOST_DIMENSIONS];
    bool written, optional;
    const struct layout *layout;
} parameter;

typedef struct layout {
    const char *name;
    int count;
    parameter fields[MOST_FIELDS];
} layout;

typedef struct {
    const kernel_entry *entry;
    PyMethodDef method;
    int count, result_count;
    parameter parameters[MOST_ARGUMENTS];
    parameter results[MOST_RESULTS];
} bound_kernel;

typedef struct {
    PyObject_HEAD
    const layout *layout;
    view views[MOST_FIELDS];
    Py_buffer buffers[MOST_FIELDS];
} record;

typedef struct {
    PyObject_HEAD
    void *data;
    Py_ssize_t bytes;
} owned;

struct block {
    struct block *next, *former;
    int64_t bytes;
    _Alignas(64) char data[];
};

static layout layouts[MOST_LAYOUTS];
static int layout_count;
static PyObject *record_type, *owned_type, *damaged_error, *new_array;
static PyObject *dtypes[sizeof TYPES / sizeof *TYPES];

// --- Work space --------------------------------------------------------------------------------------------

static void *new_block(struct block **list, int64_t bytes, bool zeros) {
    struct block *made = NULL;
    size_t whole = (sizeof(struct block) + (size_t)bytes + 63) / 64 * 64;
    if (bytes < 0 || posix_memalign((void **)&made, 64, whole)) return NULL;
    *made = (struct block){.next = *list, .bytes = bytes};
    if (zeros) memset(made->data, 0, (size_t)bytes);
    if (*list) (*list)->former = made;
    *list = made;
    return made->data;
}

static struct block *block_of(void *data) { return (struct block *)((char *)data - offsetof(struct block, data)); }

static void unlink_block(struct block **list, struct block *block) {
    if (block->next) block->next->former = block->former;
    if (block->former)
        block->former->next = block->next;
    else
        *list = block->next;
}

static int64_t bytes_of(int64_t count, int64_t item) {
    int64_t bytes;
    return count < 0 || __builtin_mul_overflow(count, item, &bytes) ? -1 : bytes;
}

void *space(call *call, int64_t count, int64_t item) { return new_block(&call->blocks, bytes_of(count, item), true); }

void *unset_space(call *call, int64_t count, int64_t item) {
    return new_block(&call->blocks, bytes_of(count, item), false);
}

void *more_space(call *call, void *former, int64_t count, int64_t item) {
    void *made = space(call, count, item);
    if (!made) return NULL;
    struct block *block = block_of(former);
    int64_t bytes = bytes_of(count, item);
    memcpy(made, former, (size_t)(block->bytes < bytes ? block->bytes : bytes));
    unlink_block(&call->blocks, block);
    free(block);
    return made;
}

void *new_result(call *call, int place, int64_t count, int64_t item) {
    void *made = space(call, count, item);
    if (made) give(call, place, made, count);
    return made;
}

void give(call *call, int place, void *space, int64_t count) {
    call->results[place].array.data = space;
    call->results[place].array.count = count;
}

int damaged(call *call, const char *what, int64_t value, int64_t limit) {
    call->what = what;
    call->value = value;
    call->limit = limit;
    return DAMAGED;
}

static void free_blocks(call *call) {
    while (call->blocks) {
        struct block *next = call->blocks->next;
        free(call->blocks);
        call->blocks = next;
    }
}

// --- Signatures --------------------------------------------------------------------------------------------

static const char *skip_spaces(const char *text) {
    while (*text == ' ') text++;
    return text;
}

static const char *read_name(const char *text, char *name) {
    int count = 0;
    for (; (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') || *text == '_'; text++)
        if (count < NAME_LENGTH - 1) name[count++] = *text;
    name[count] = 0;
    return text;
}

static const char *read_lengths(const char *text, parameter *found) {
    while (*text && *text != ']') {
        length *each = &found->lengths[found->dimensions++];
        text = skip_spaces(text);
        if ((*text >= 'A' && *text <= 'Z') || *text == '_') each->letter = *text++;
        if (*text == '+') text++;
        while (*text >= '0' && *text <= '9') each->plus = 10 * each->plus + *text++ - '0';
        text = skip_spaces(text);
        if (*text == ',') text++;
    }
    return *text ? text + 1 : text;
}

// Reads "type[lengths]!?"; false for a type that there is not.
static bool read_type(const char **text, parameter *found) {
    char name[NAME_LENGTH];
    *text = read_name(skip_spaces(*text), name);
    if (!strcmp(name, "int"))
        found->kind = INTEGER_KIND;
    else if (!strcmp(name, "float"))
        found->kind = NUMBER_KIND;
    else {
        for (size_t place = 0; place < sizeof TYPES / sizeof *TYPES; place++)
            if (!strcmp(name, TYPES[place].name)) found->type = &TYPES[place];
        for (int place = 0; place < layout_count; place++)
            if (!strcmp(name, layouts[place].name)) found->layout = &layouts[place];
        found->kind = found->layout ? TABLE_KIND : ARRAY_KIND;
        if (**text != '[') {
            found->kind = BOOLEAN_KIND;
            return !strcmp(name, "bool");
        }
        *text = read_lengths(*text + 1, found);
        if (!found->type && !found->layout) return false;
    }
    for (; **text == '!' || **text == '?'; ++*text) *(**text == '!' ? &found->written : &found->optional) = true;
    return true;
}

// Reads parameters up to the end or an arrow; how many, or -1.
static int read_parameters(const char **text, parameter *found, int most) {
    int count = 0;
    *text = skip_spaces(*text);
    while (**text && **text != '-') {
        if (count == most) return -1;
        *text = read_name(*text, found[count].name);
        if (**text != ':') return -1;
        ++*text;
        if (!read_type(text, &found[count++])) return -1;
        *text = skip_spaces(**text == ',' ? *text + 1 : *text);
    }
    return count;
}

static int read_results(const char *text, parameter *found) {
    int count = 0;
    if (*text != '-') return 0;
    text += strlen("->");
    while (*text) {
        if (count == MOST_RESULTS || !read_type(&text, &found[count++])) return -1;
        text = skip_spaces(*text == ',' ? text + 1 : text);
    }
    return count;
}

// --- Checks ------------------------------------------------------------------------------------------------

// A type with its lengths, as signatures have them; numbers that are known stand for letters.
static void write_wanted(const parameter *wanted, const int64_t *known, char *text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "%s[", wanted->type->name);
    for (int place = 0; place < wanted->dimensions && used < room; place++) {
        length each = wanted->lengths[place];
        const char *comma = place ? ", " : "";
        bool named = each.letter && each.letter != '_';
        if (!each.letter || (named && known[each.letter - 'A'] >= 0))
            used += (size_t)snprintf(
                text + used, room - used, "%s%lld", comma,
                (long long)(each.plus + (each.letter ? known[each.letter - 'A'] : 0))
            );
        else if (each.plus)
            used += (size_t)snprintf(text + used, room - used, "%s%c+%lld", comma, each.letter, (long long)each.plus);
        else
            used += (size_t)snprintf(text + used, room - used, "%s%c", comma, each.letter);
    }
    if (used < room) snprintf(text + used, room - used, "]");
}

// Items may have no bytes.
static bool is_aligned(const Py_buffer *given) {
    return given->len == 0 || (uintptr_t)given->buf % (size_t)given->itemsize == 0;
}

static void write_given(const Py_buffer *given, char *text, size_t room) {
    const char *name = given->format ? given->format : "B";
    for (size_t place = 0; place < sizeof TYPES / sizeof *TYPES; place++)
        if (given->itemsize == TYPES[place].item && !name[1] && strchr(TYPES[place].formats, *name))
            name = TYPES[place].name;
    size_t used = (size_t)snprintf(text, room, "%s[", name);
    for (int place = 0; place < given->ndim && used < room; place++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", place ? ", " : "", (long long)given->shape[place]);
    if (used < room) snprintf(text + used, room - used, is_aligned(given) ? "]" : "], unaligned");
}

static bool fits(const parameter *wanted, const Py_buffer *given, int64_t *known) {
    const char *format = given->format ? given->format : "B";
    if (given->itemsize != wanted->type->item || format[1] || !strchr(wanted->type->formats, *format)) return false;
    if (given->ndim != wanted->dimensions || !is_aligned(given)) return false;
    for (int place = 0; place < given->ndim; place++) {
        length each = wanted->lengths[place];
        int64_t rest = given->shape[place] - each.plus;
        if (each.letter == '_') continue;
        if (!each.letter) {
            if (rest) return false;
            continue;
        }
        int64_t *letter = &known[each.letter - 'A'];
        if (rest < 0 || (*letter >= 0 && *letter != rest)) return false;
        *letter = rest;
    }
    return true;
}

// Takes the view of an array, or sets an error that says what the array has to be.
static bool take(
    const char *of, const parameter *wanted, PyObject *given, int64_t *known, Py_buffer *buffer, view *found
) {
    char asked[160], got[160];
    int64_t before[LETTERS];
    if (wanted->optional && given == Py_None) return true;
    memcpy(before, known, sizeof before);
    int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (wanted->written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(given, buffer, flags) < 0) {
        PyErr_Clear();
        write_wanted(wanted, before, asked, sizeof asked);
        PyErr_Format(
            PyExc_TypeError, "%s: %s has to be %s%s in one piece, not this %R", of, wanted->name, asked,
            wanted->written ? ", writable and" : "", (PyObject *)Py_TYPE(given)
        );
        return false;
    }
    if (!fits(wanted, buffer, known)) {
        write_wanted(wanted, before, asked, sizeof asked);
        write_given(buffer, got, sizeof got);
        PyBuffer_Release(buffer);
        PyErr_Format(PyExc_ValueError, "%s: %s has to be %s, not %s", of, wanted->name, asked, got);
        return false;
    }
    found->data = buffer->buf;
    for (int place = 0; place < buffer->ndim; place++) found->shape[place] = buffer->shape[place];
    return true;
}

static void forget_lengths(int64_t *known) {
    for (int letter = 0; letter < LETTERS; letter++) known[letter] = -1;
}

// Takes a tuple of records, and of the room for some of them as much as it needs, or other.
static bool take_table(
    const char *of, const parameter *wanted, PyObject *given, int64_t *known, const view **few, const view ***room,
    call *call, argument *found
) {
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_Size(given) : -1;
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *each = PyTuple_GetItem(given, place);
        if ((PyObject *)Py_TYPE(each) != record_type || ((record *)each)->layout != wanted->layout) count = -1;
    }
    if (count < 0) {
        PyErr_Format(
            PyExc_TypeError, "%s: %s has to be a tuple of records of %s", of, wanted->name, wanted->layout->name
        );
        return false;
    }
    int64_t *letter = &known[wanted->lengths[0].letter - 'A'];
    if (*letter >= 0 && *letter != count) {
        PyErr_Format(
            PyExc_ValueError, "%s: %s has to be of %lld records, not %zd", of, wanted->name, (long long)*letter, count
        );
        return false;
    }
    *letter = count;
    bool fits = count <= RECORDS_ON_STACK - (*room - few);
    const view **records = fits ? *room : space(call, count, sizeof *records);
    if (fits) *room += count;
    if (!records) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t place = 0; place < count; place++)
        records[place] = ((record *)PyTuple_GetItem(given, place))->views;
    found->table.records = records;
    found->table.count = count;
    return true;
}

// --- Calls -------------------------------------------------------------------------------------------------

static PyObject *array_of(call *call, result *found, const type *type) {
    owned *owner = PyObject_New(owned, (PyTypeObject *)owned_type);
    if (!owner) return NULL;
    struct block *block = block_of(found->array.data);
    unlink_block(&call->blocks, block);
    owner->data = block;
    owner->bytes = (Py_ssize_t)(found->array.count * type->item);
    PyObject *array = PyObject_CallFunction(
        new_array, "((n)OO)", (Py_ssize_t)found->array.count, dtypes[type - TYPES], (PyObject *)owner
    );
    Py_DecRef((PyObject *)owner);
    return array;
}

static PyObject *object_of(call *call, int place, const parameter *wanted) {
    result *found = &call->results[place];
    if (wanted->kind == INTEGER_KIND) return PyLong_FromLongLong(found->integer);
    if (wanted->kind == NUMBER_KIND) return PyFloat_FromDouble(found->number);
    if (wanted->kind == BOOLEAN_KIND) return PyBool_FromLong(found->integer != 0);
    return array_of(call, found, wanted->type);
}

static PyObject *objects_of(call *call, const bound_kernel *bound) {
    if (bound->result_count == 0) {
        Py_IncRef(Py_None);
        return Py_None;
    }
    if (bound->result_count == 1) return object_of(call, 0, bound->results);
    PyObject *tuple = PyTuple_New(bound->result_count);
    for (int place = 0; tuple && place < bound->result_count; place++) {
        PyObject *each = object_of(call, place, &bound->results[place]);
        if (!each || PyTuple_SetItem(tuple, place, each) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static void set_failure(const call *call, const bound_kernel *bound, int failure) {
    if (failure == NO_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_Format(
            damaged_error, "%s in what %s reads is %lld, outside of 0 up to %lld; restore it or rebuild the collection",
            call->what, bound->entry->name, (long long)call->value, (long long)call->limit
        );
}

static bool take_number(const parameter *wanted, PyObject *given, argument *found) {
    if (wanted->kind == NUMBER_KIND)
        found->number = PyFloat_AsDouble(given);
    else {
        PyObject *number = PyNumber_Index(given);
        if (!number) return false;
        found->integer = PyLong_AsLongLong(number);
        Py_DecRef(number);
    }
    return !PyErr_Occurred();
}

static PyObject *run_kernel(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const bound_kernel *bound = PyCapsule_GetPointer(self, NULL);
    Py_buffer buffers[MOST_ARGUMENTS];
    const view *few[RECORDS_ON_STACK], **room = few; // where the records of tables go as long as they fit
    int64_t known[LETTERS];
    call call;
    PyObject *returned = NULL;
    int taken = 0;
    if (count != bound->count)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", bound->entry->name, bound->count, count);
    forget_lengths(known);
    memset(call.results, 0, sizeof call.results);
    call.blocks = NULL;
    for (; taken < count; taken++) {
        const parameter *wanted = &bound->parameters[taken];
        argument *found = &call.arguments[taken];
        memset(found, 0, sizeof *found);
        buffers[taken].obj = NULL;
        bool good = wanted->kind == ARRAY_KIND
                        ? take(bound->entry->name, wanted, given[taken], known, &buffers[taken], &found->array)
                    : wanted->kind == TABLE_KIND
                        ? take_table(bound->entry->name, wanted, given[taken], known, few, &room, &call, found)
                        : take_number(wanted, given[taken], found);
        if (!good) goto end;
    }
    int failure;
    if (bound->entry->keeps_lock)
        failure = bound->entry->run(&call);
    else {
        PyThreadState *thread = PyEval_SaveThread();
        failure = bound->entry->run(&call);
        PyEval_RestoreThread(thread);
    }
    if (failure == DONE)
        returned = objects_of(&call, bound);
    else
        set_failure(&call, bound, failure);
end:
    for (int place = 0; place < taken; place++)
        if (buffers[place].obj) PyBuffer_Release(&buffers[place]);
    free_blocks(&call);
    return returned;
}

// --- Records -----------------------------------------------------------------------------------------------

static void free_record(PyObject *self) {
    record *freed = (record *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int place = 0; place < freed->layout->count; place++)
        if (freed->buffers[place].obj) PyBuffer_Release(&freed->buffers[place]);
    PyObject_Free(self);
    Py_DecRef((PyObject *)type);
}

static PyObject *new_record(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const layout *wanted = PyCapsule_GetPointer(self, NULL);
    int64_t known[LETTERS];
    if (count != wanted->count)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arrays, not %zd", wanted->name, wanted->count, count);
    record *made = PyObject_New(record, (PyTypeObject *)record_type);
    if (!made) return NULL;
    made->layout = wanted;
    memset(made->views, 0, sizeof made->views);
    memset(made->buffers, 0, sizeof made->buffers);
    forget_lengths(known);
    for (int place = 0; place < count; place++)
        if (!take(wanted->name, &wanted->fields[place], given[place], known, &made->buffers[place], &made->views[place])) {
            made->buffers[place].obj = NULL;
            Py_DecRef((PyObject *)made);
            return NULL;
        }
    return (PyObject *)made;
}

static PyType_Slot record_slots[] = {{Py_tp_dealloc, free_record}, {0, NULL}};
static PyType_Spec record_spec = {
    PACKAGE ".native.Record", sizeof(record), 0, Py_TPFLAGS_DISALLOW_INSTANTIATION, record_slots
};

static void free_owned(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(((owned *)self)->data);
    PyObject_Free(self);
    Py_DecRef((PyObject *)type);
}

static int get_owned(PyObject *self, Py_buffer *buffer, int flags) {
    owned *owner = (owned *)self;
    return PyBuffer_FillInfo(buffer, self, ((struct block *)owner->data)->data, owner->bytes, 0, flags);
}

static PyType_Slot owned_slots[] = {{Py_tp_dealloc, free_owned}, {Py_bf_getbuffer, get_owned}, {0, NULL}};
static PyType_Spec owned_spec = {
    PACKAGE ".native.Owned", sizeof(owned), 0, Py_TPFLAGS_DISALLOW_INSTANTIATION, owned_slots
};

// --- The module --------------------------------------------------------------------------------------------

static int add_function(PyObject *dictionary, const char *name, PyMethodDef *method, void *data) {
    PyObject *capsule = PyCapsule_New(data, NULL, NULL);
    if (!capsule) return -1;
    PyObject *function = PyCFunction_NewEx(method, capsule, NULL);
    Py_DecRef(capsule);
    if (!function) return -1;
    int failed = PyDict_SetItemString(dictionary, name, function);
    Py_DecRef(function);
    return failed;
}

static int unreadable(const char *name) {
    PyErr_Format(PyExc_SystemError, "the signature of %s cannot be read", name);
    return -1;
}

int add_layouts(PyObject *module, const layout_entry *entries) {
    static PyMethodDef methods[MOST_LAYOUTS];
    for (; entries->name; entries++) {
        const char *text = entries->signature;
        if (layout_count == MOST_LAYOUTS) return unreadable(entries->name);
        layout *made = &layouts[layout_count];
        made->name = entries->name;
        made->count = read_parameters(&text, made->fields, MOST_FIELDS);
        if (made->count < 0 || *text) return unreadable(entries->name);
        PyMethodDef *method = &methods[layout_count++];
        *method = (PyMethodDef){entries->name, (PyCFunction)(void (*)(void))new_record, METH_FASTCALL, entries->signature};
        if (add_function(PyModule_GetDict(module), entries->name, method, made) < 0) return -1;
    }
    return 0;
}

int add_kernels(PyObject *dictionary, const kernel_entry *entries) {
    for (; entries->name; entries++) {
        bound_kernel *bound = calloc(1, sizeof *bound); // for as long as the process
        if (!bound) return -1;
        const char *text = entries->signature;
        bound->entry = entries;
        bound->count = read_parameters(&text, bound->parameters, MOST_ARGUMENTS);
        bound->result_count = bound->count < 0 ? -1 : read_results(text, bound->results);
        if (bound->result_count < 0) return unreadable(entries->name);
        bound->method =
            (PyMethodDef){entries->name, (PyCFunction)(void (*)(void))run_kernel, METH_FASTCALL, entries->signature};
        if (add_function(dictionary, entries->name, &bound->method, bound) < 0) return -1;
    }
    return 0;
}

static PyObject *attribute_of(const char *module, const char *name) {
    PyObject *imported = PyImport_ImportModule(module);
    if (!imported) return NULL;
    PyObject *found = PyObject_GetAttrString(imported, name);
    Py_DecRef(imported);
    return found;
}

int prepare_binding(PyObject *module) {
    record_type = PyType_FromSpec(&record_spec);
    owned_type = PyType_FromSpec(&owned_spec);
    damaged_error = attribute_of(PACKAGE ".errors", DAMAGED_ERROR);
    new_array = attribute_of("numpy", "ndarray");
    if (!record_type || !owned_type || !damaged_error || !new_array) return -1;
    for (size_t place = 0; place < sizeof TYPES / sizeof *TYPES; place++) {
        PyObject *make = attribute_of("numpy", "dtype");
        if (!make) return -1;
        dtypes[place] = PyObject_CallFunction(make, "s", TYPES[place].name);
        Py_DecRef(make);
        if (!dtypes[place]) return -1;
    }
    return PyModule_AddObjectRef(module, "Record", record_type);
}
