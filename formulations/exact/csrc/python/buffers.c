#include "buffers.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void *copy_buffer(PyObject *source, size_t bytes)
{
    Py_buffer view;
    void *out;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS))
        return NULL;
    if ((size_t)view.len != bytes) {
        PyErr_Format(PyExc_ValueError, "kernel buffer has %zd bytes, expected %zd", view.len,
                     (Py_ssize_t)bytes);
        PyBuffer_Release(&view);
        return NULL;
    }
    out = malloc(bytes ? bytes : 1);
    if (out)
        memcpy(out, view.buf, bytes);
    else
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
