/* What the functions of the Python module share. Limited API (abi3). */
#ifndef EXACT_BINDING_H
#define EXACT_BINDING_H

#include "buffers.h"
#include "kernel.h"

#define NAME "formulations.exact._kernel.context"

/* The context in a capsule; NULL with the exception set. */
context *context_of(PyObject *capsule);

/* Around every call that may take long: without the interpreter's lock, `seconds` at most. */
void enter(context *x, double seconds);
int leave(context *x);

/* looks.c */
extern const char scan_doc[];
extern const char scans_doc[];
extern const char glances_doc[];
extern const char recall_doc[];
extern const char span_doc[];
PyObject *scan(PyObject *self, PyObject *args);
PyObject *scans(PyObject *self, PyObject *args);
PyObject *glances(PyObject *self, PyObject *args);
PyObject *recall(PyObject *self, PyObject *args);
PyObject *span_of(PyObject *self, PyObject *args);

#endif
