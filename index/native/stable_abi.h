// What the module takes of Python: declarations of the stable interface of binaries that 3.11 and later have.
//
// Python's own headers are a package apart on many systems; the interface does not change, so these few lines
// take their place. Names, numbers and orders are Python's (https://docs.python.org/3/c-api/stable.html), and a
// test compares them with its headers where they are.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef intptr_t Py_ssize_t;

#ifndef Py_PYTHON_H
typedef struct _typeobject PyTypeObject;

typedef struct _object {
    Py_ssize_t ob_refcnt;
    PyTypeObject *ob_type;
} PyObject;

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

typedef struct PyMethodDef {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct PyModuleDef_Slot {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct PyModuleDef_Base {
    PyObject ob_base;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
} PyModuleDef_Base;

typedef struct PyModuleDef {
    PyModuleDef_Base m_base;
    const char *m_name, *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    void *m_traverse, *m_clear, *m_free;
} PyModuleDef;

typedef struct {
    int slot;
    void *pfunc;
} PyType_Slot;

typedef struct {
    const char *name;
    int basicsize, itemsize;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

typedef struct _ts PyThreadState;

enum { METH_O = 0x8, METH_FASTCALL = 0x80 };
enum { PyBUF_WRITABLE = 0x1, PyBUF_FORMAT = 0x4, PyBUF_C_CONTIGUOUS = 0x38 };
enum { Py_TPFLAGS_DISALLOW_INSTANTIATION = 1 << 7, Py_TPFLAGS_TUPLE_SUBCLASS = 1 << 26, Py_TPFLAGS_UNICODE_SUBCLASS = 1 << 28 };
enum { Py_bf_getbuffer = 1, Py_mod_exec = 2, Py_tp_dealloc = 52 };

#define PyObject_HEAD PyObject ob_base;
#define PyModuleDef_HEAD_INIT {{1, NULL}, NULL, 0, NULL}
#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *

#define Py_None (&_Py_NoneStruct)
#define Py_TYPE(object) (((PyObject *)(object))->ob_type)
#define PyTuple_Check(object) ((PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_TUPLE_SUBCLASS) != 0)
#define PyUnicode_Check(object) ((PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_UNICODE_SUBCLASS) != 0)
#define PyObject_New(type, class) ((type *)_PyObject_New(class))
#define Py_CLEAR(name)                                                                                           \
    do {                                                                                                         \
        PyObject *former = (PyObject *)(name);                                                                   \
        (name) = NULL;                                                                                           \
        Py_DecRef(former);                                                                                       \
    } while (0)
#endif

extern PyObject _Py_NoneStruct;
extern PyObject *PyExc_SystemError, *PyExc_TypeError, *PyExc_ValueError;

void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
void PyErr_Clear(void);
PyObject *PyErr_Format(PyObject *kind, const char *format, ...);
PyObject *PyErr_NoMemory(void);
PyObject *PyErr_Occurred(void);
PyObject *PyImport_ImportModule(const char *name);

PyObject *_PyObject_New(PyTypeObject *);
PyObject *PyObject_CallFunction(PyObject *, const char *format, ...);
void PyObject_Free(void *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int flags);
PyObject *PyObject_GetAttrString(PyObject *, const char *name);
int PyBuffer_FillInfo(Py_buffer *, PyObject *owner, void *data, Py_ssize_t bytes, int readonly, int flags);
void PyBuffer_Release(Py_buffer *);
PyObject *PyType_FromSpec(PyType_Spec *);
unsigned long PyType_GetFlags(PyTypeObject *);

PyObject *PyBool_FromLong(long);
double PyFloat_AsDouble(PyObject *);
PyObject *PyFloat_FromDouble(double);
long long PyLong_AsLongLong(PyObject *);
PyObject *PyLong_FromLongLong(long long);
PyObject *PyNumber_Index(PyObject *);
int PyUnicode_CompareWithASCIIString(PyObject *, const char *text);
PyObject *PyUnicode_FromString(const char *text);

int PyList_Append(PyObject *, PyObject *item);
PyObject *PyList_AsTuple(PyObject *);
PyObject *PyList_New(Py_ssize_t length);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t place);
PyObject *PyTuple_New(Py_ssize_t length);
int PyTuple_SetItem(PyObject *, Py_ssize_t place, PyObject *item);
Py_ssize_t PyTuple_Size(PyObject *);
PyObject *PyDict_New(void);
int PyDict_SetItemString(PyObject *, const char *key, PyObject *value);
int PyDict_Update(PyObject *, PyObject *other);

void *PyCapsule_GetPointer(PyObject *, const char *name);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *));
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *self, PyObject *module);
int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value);
int PyModule_AddStringConstant(PyObject *module, const char *name, const char *value);
PyObject *PyModule_GetDict(PyObject *module);
PyObject *PyModuleDef_Init(PyModuleDef *);
