/* Arrays that Python hands over: copied, or taken for the time of a call. Limited API (abi3). */
#ifndef BUFFERS_H
#define BUFFERS_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "owned_memory.h"

/* Private copies of contiguous buffers of exactly the size that is said; NULL with the exception set. */
void *copy_buffer(owned_memory *owned, PyObject *source, size_t bytes);
/* Of `count` doubles, followed by zeros up to `padded`. */
double *copy_padded(owned_memory *owned, PyObject *source, size_t count, size_t padded);
/* Of rows x columns doubles, transposed: columns x padded, zeros behind the rows. */
double *copy_transposed(owned_memory *owned, PyObject *source, size_t rows, size_t columns, size_t padded);

/* Array with a row per leader; several are taken and released with each other. */
typedef struct {
    size_t row; /* bytes per leader */
    int write;
    PyObject *source;
    Py_buffer view;
} column;

/* Take all columns, of which the first holds the leaders (int32, none below `least`); how many leaders
   there are, or -1 with the exception set and nothing held. */
int take_arrays(column *columns, int count, int least, int sites);
void release_arrays(column *columns, int held);

/* 0, with a ValueError set. */
int refused(const char *why);

/* Seconds of the wall clock. */
double clock_now(void);

#endif
