// The module: the kernels of the best variant that this processor has.
//
// Every kernel is compiled once for each variant of the processor, from the same sources; `setup.py` has the
// compiler's flags for each. TERCET_INSTRUCTIONS takes a lesser one, for tests and comparisons.

#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "processor.h"

typedef struct {
    const char *name;
    bool (*is_there)(void);
    const kernel_entry *const *kernels; // tables, up to a NULL
    PyObject *bound; // a dictionary, once somebody asked
} variant;

#define DECLARED(name) extern const kernel_entry *const kernels_##name[];
VARIANTS(DECLARED)
extern const layout_entry layouts_of_records[];

// The best first.
#define ENTRY(name) {#name, has_##name, kernels_##name, NULL},
static variant variants[] = {VARIANTS(ENTRY)};

static variant *best_variant(void) {
    const char *wanted = getenv("TERCET_INSTRUCTIONS");
    for (size_t place = 0; place < sizeof variants / sizeof *variants; place++)
        if (variants[place].is_there() && (!wanted || !*wanted || !strcmp(wanted, variants[place].name)))
            return &variants[place];
    return NULL;
}

// A tuple of what this processor has.
static PyObject *available_names(void) {
    PyObject *names = PyList_New(0);
    for (size_t place = 0; names && place < sizeof variants / sizeof *variants; place++) {
        PyObject *name = variants[place].is_there() ? PyUnicode_FromString(variants[place].name) : NULL;
        if (name && PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_DecRef(name);
    }
    PyObject *tuple = names ? PyList_AsTuple(names) : NULL;
    Py_DecRef(names);
    return tuple;
}

static int refuse_instructions(void) {
    PyObject *names = available_names(), *errors = PyImport_ImportModule(PACKAGE ".errors");
    PyObject *kind = errors ? PyObject_GetAttrString(errors, REFUSED_ERROR) : NULL;
    if (names && kind)
        PyErr_Format(
            kind, "TERCET_INSTRUCTIONS is %s; this processor has %R: name one of them, or unset it",
            getenv("TERCET_INSTRUCTIONS"), names
        );
    Py_DecRef(kind);
    Py_DecRef(errors);
    Py_DecRef(names);
    return -1;
}

static int add_instructions(PyObject *module, const variant *chosen) {
    PyObject *tuple = available_names();
    int failed = !tuple || PyModule_AddObjectRef(module, "AVAILABLE_INSTRUCTIONS", tuple) < 0 ||
                 PyModule_AddStringConstant(module, "INSTRUCTIONS", chosen->name) < 0 ||
                 PyModule_AddStringConstant(module, "SOURCES", SOURCES) < 0;
    Py_DecRef(tuple);
    return failed ? -1 : 0;
}

// A borrowed dictionary.
static PyObject *all_kernels(variant *variant) {
    if (variant->bound) return variant->bound;
    PyObject *found = PyDict_New();
    for (const kernel_entry *const *table = variant->kernels; found && *table; table++)
        if (add_kernels(found, *table) < 0) Py_CLEAR(found);
    return variant->bound = found;
}

static PyObject *new_reference(PyObject *borrowed) {
    Py_IncRef(borrowed);
    return borrowed;
}

static PyObject *kernels_of(PyObject *module, PyObject *name) {
    (void)module;
    for (size_t place = 0; PyUnicode_Check(name) && place < sizeof variants / sizeof *variants; place++)
        if (variants[place].is_there() && PyUnicode_CompareWithASCIIString(name, variants[place].name) == 0)
            return new_reference(all_kernels(&variants[place]));
    return PyErr_Format(PyExc_ValueError, "%R is not among AVAILABLE_INSTRUCTIONS", name);
}

static PyMethodDef functions[] = {
    {"kernels_of", kernels_of, METH_O, "The kernels for one of AVAILABLE_INSTRUCTIONS, by name."},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module) {
    variant *chosen = best_variant();
    if (!chosen) return refuse_instructions();
    if (prepare_binding(module) < 0 || add_layouts(module, layouts_of_records) < 0) return -1;
    PyObject *kernels = all_kernels(chosen);
    if (!kernels || PyDict_Update(PyModule_GetDict(module), kernels) < 0) return -1;
    return add_instructions(module, chosen);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_module}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "kernels", "Compiled loops; see `" PACKAGE "/native/__init__.py`.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_kernels(void) { return PyModuleDef_Init(&definition); }
