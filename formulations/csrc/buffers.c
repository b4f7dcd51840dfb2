#include "buffers.h"
#include <limits.h>
#include <string.h>
#include <time.h>

#define SECONDS_BETWEEN_LOOKS 0.005

int refused(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return 0;
}

double clock_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int in_range(const int *number, size_t count, int least, int below, const char *why)
{
    for (size_t i = 0; i < count; i++)
        if (number[i] < least || number[i] >= below)
            return refused(why);
    return 1;
}

PyObject *tuple_of(const int *number, int count)
{
    PyObject *out = PyTuple_New(count);
    for (int i = 0; out && i < count; i++) {
        PyObject *one = PyLong_FromLong(number[i]);
        if (!one || PyTuple_SetItem(out, i, one)) {
            Py_DECREF(out);
            return NULL;
        }
    }
    return out;
}

int read_tuple(PyObject *tuple, int most, int below, int *number)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > most)
        return refused("more sites than there may be") - 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        long one = PyLong_AsLong(PyTuple_GetItem(tuple, i));
        if (one < 0 || one >= below)
            return PyErr_Occurred() ? -1 : refused("no such site") - 1;
        number[i] = (int)one;
    }
    return (int)count;
}

void begin_call(call_limit *limit, double seconds)
{
    limit->next_look = clock_now();
    limit->deadline = limit->next_look + seconds;
    limit->raised = 0;
    limit->thread = PyEval_SaveThread();
}

int pause_call(void *pointer)
{
    call_limit *limit = pointer;
    double now = clock_now();
    if (now >= limit->next_look || now < limit->next_look - 1.0) { /* the clock may be set back */
        PyEval_RestoreThread(limit->thread);
        limit->raised = limit->raised || PyErr_CheckSignals() != 0;
        limit->thread = PyEval_SaveThread();
        limit->next_look = now + SECONDS_BETWEEN_LOOKS;
    }
    return limit->raised || now > limit->deadline;
}

int end_call(call_limit *limit)
{
    PyEval_RestoreThread(limit->thread);
    return !limit->raised;
}

/* Take a contiguous buffer of exactly `bytes` bytes; 0 with the exception set. */
static int contiguous(PyObject *source, size_t bytes, Py_buffer *view)
{
    if (PyObject_GetBuffer(source, view, PyBUF_C_CONTIGUOUS))
        return 0;
    if ((size_t)view->len == bytes)
        return 1;
    PyErr_Format(PyExc_ValueError, "kernel buffer has %zd bytes, expected %zd", view->len, (Py_ssize_t)bytes);
    PyBuffer_Release(view);
    return 0;
}

void *copy_buffer(owned_memory *owned, PyObject *source, size_t bytes)
{
    Py_buffer view;
    if (!contiguous(source, bytes, &view))
        return NULL;
    void *out = own(owned, bytes, 1);
    if (out)
        memcpy(out, view.buf, bytes);
    else
        PyErr_NoMemory();
    PyBuffer_Release(&view);
    return out;
}

double *copy_padded(owned_memory *owned, PyObject *source, size_t count, size_t padded)
{
    return copy_transposed(owned, source, count, 1, padded);
}

double *copy_transposed(owned_memory *owned, PyObject *source, size_t rows, size_t columns, size_t padded)
{
    enum { BLOCK = 16 }; /* rows and columns at a time: two lines of cache for each */
    Py_buffer view;
    if (!contiguous(source, rows * columns * sizeof(double), &view))
        return NULL;
    const double *in = view.buf;
    double *out = own(owned, columns * padded + 1, sizeof(double));
    for (size_t r = 0; out && r < rows; r += BLOCK)
        for (size_t c = 0; c < columns; c += BLOCK)
            for (size_t i = r; i < rows && i < r + BLOCK; i++)
                for (size_t j = c; j < columns && j < c + BLOCK; j++)
                    out[j * padded + i] = in[i * columns + j];
    if (!out)
        PyErr_NoMemory();
    PyBuffer_Release(&view);
    return out;
}

void release_arrays(column *columns, int held)
{
    while (held > 0)
        PyBuffer_Release(&columns[--held].view);
}

int take_arrays(column *columns, int count, int least, int sites)
{
    int held = 0;
    for (; held < count; held++)
        if (PyObject_GetBuffer(columns[held].source, &columns[held].view,
                               PyBUF_C_CONTIGUOUS | (columns[held].write ? PyBUF_WRITABLE : 0)))
            goto refused;
    const int *leader = columns[0].view.buf;
    size_t leaders = (size_t)columns[0].view.len / columns[0].row;
    int fits = leaders <= INT_MAX;
    for (int c = 0; fits && c < count; c++)
        fits = (size_t)columns[c].view.len == leaders * columns[c].row;
    for (size_t i = 0; fits && i < leaders; i++)
        fits = leader[i] >= least && leader[i] < sites;
    if (fits)
        return (int)leaders;
    PyErr_SetString(PyExc_ValueError, "leaders, multipliers and results do not fit");
refused:
    release_arrays(columns, held);
    return -1;
}
