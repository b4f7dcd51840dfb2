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
/* 1 when all numbers are `least` or more, and below a limit; 0 with the exception set to `why`. */
int in_range(const int *number, size_t count, int least, int below, const char *why);

/* A tuple of numbers, and back: how many there are, at most `most`, all from 0 to below a limit; -1 with the exception set. */
PyObject *tuple_of(const int *number, int count);
int read_tuple(PyObject *tuple, int most, int below, int *number);

/* A call during which the GIL is released. */
typedef struct {
    double deadline, next_look; /* by the clock: the end, and when signals are looked at again */
    PyThreadState *thread;
    int raised;                 /* 1: a signal handler, or a function of the caller, raised an exception */
} call_limit;

void begin_call(call_limit *limit, double seconds);
/* For searches to ask now and then, with their call_limit: 1 when the deadline has passed, or a signal handler has raised. */
int pause_call(void *limit);
/* 0 with the exception set. */
int end_call(call_limit *limit);

/* Seconds of the wall clock. */
double clock_now(void);

#endif
