// What the module is made of: layouts and kernels by their tables, which end with an empty entry.
#pragma once

#include "arrays.h"
#include "stable_abi.h"

int prepare_binding(PyObject *module);
int add_layouts(PyObject *module, const layout_entry *entries);
int add_kernels(PyObject *dictionary, const kernel_entry *entries);
