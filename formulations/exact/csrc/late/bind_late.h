#ifndef EXACT_BIND_LATE_H
#define EXACT_BIND_LATE_H

#include "buffers.h"

extern const char late_voters_doc[];
extern const char least_late_doc[];
extern const char search_thresholds_doc[];
PyObject *py_late_voters(PyObject *self, PyObject *args);
PyObject *py_least_late(PyObject *self, PyObject *args);
PyObject *py_search_thresholds(PyObject *self, PyObject *args);

#endif
