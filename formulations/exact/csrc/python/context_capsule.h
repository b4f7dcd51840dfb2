/* Declarations that the functions of the Python module share. Limited API (abi3). */
#ifndef EXACT_BINDING_H
#define EXACT_BINDING_H

#include "buffers.h"
#include "kernel.h"

#define NAME "formulations.exact._kernel.context"

/* The context in a capsule; NULL with the exception set. */
context *context_of(PyObject *capsule);

/* Around every call that may take long: without the interpreter's lock, `seconds` at most. */
void begin_call(context *x, double seconds);
int end_call(context *x);

/* bind_leaders.c */
extern const char bound_root_doc[];
extern const char bound_roots_doc[];
extern const char quick_bounds_doc[];
extern const char bounds_from_memory_doc[];
extern const char open_trees_doc[];
extern const char tree_bounds_doc[];
extern const char decisions_learned_doc[];
PyObject *py_bound_root(PyObject *self, PyObject *args);
PyObject *py_bound_roots(PyObject *self, PyObject *args);
PyObject *py_quick_bounds(PyObject *self, PyObject *args);
PyObject *py_bounds_from_memory(PyObject *self, PyObject *args);
PyObject *py_open_trees(PyObject *self, PyObject *args);
PyObject *py_tree_bounds(PyObject *self, PyObject *args);
PyObject *py_decisions_learned(PyObject *self, PyObject *args);

#endif
