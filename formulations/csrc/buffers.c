#include "buffers.h"
#include <limits.h>
#include <string.h>
#include <time.h>

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
