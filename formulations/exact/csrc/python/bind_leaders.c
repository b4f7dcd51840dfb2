/* Binding of what looks at leaders: scans, glances, what is recalled of them, and several sizes at once. */
#include "context_capsule.h"
#include <string.h>

const char scan_doc[] =
    "scan(context, leader, u, iterations, swaps, warm, seconds) -> bound\n\n"
    "Descend to a good set for the leader, then bound the leader; u is overwritten.";

PyObject *scan(PyObject *self, PyObject *args)
{
    PyObject *capsule, *buffer;
    int leader, iterations, swaps, warm;
    double seconds;
    Py_buffer view;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiOiipd", &capsule, &leader, &buffer, &iterations, &swaps, &warm,
                          &seconds))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
        return NULL;
    if ((size_t)view.len != (size_t)x->p.clients * 8 || leader < -1 || leader >= x->p.sites) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "wrong number of multipliers, or no such leader");
        return NULL;
    }
    enter(x, seconds);
    double bound = scan_leader(x, leader, view.buf, warm, iterations, swaps);
    int fine = leave(x);
    PyBuffer_Release(&view);
    return fine ? PyFloat_FromDouble(bound) : NULL;
}

const char scans_doc[] =
    "scans(context, leaders, u, warm, bounds, ends, iterations, swaps, full, work, seconds) -> done\n\n"
    "Scan leaders (int32) in turn; u (leaders x clients), bounds (float64) and ends (int64) are\n"
    "overwritten, ends by the length of the record after each leader.";

PyObject *scans(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int iterations, swaps, full;
    double work, seconds;
    enum { LEADER, U, WARM, BOUND, END, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1}, [WARM] = {.row = 1},
                         [BOUND] = {.row = 8, .write = 1}, [END] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOiiidd", &capsule, &c[LEADER].source, &c[U].source,
                          &c[WARM].source, &c[BOUND].source, &c[END].source, &iterations, &swaps,
                          &full, &work, &seconds))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    c[U].row = (size_t)x->p.clients * 8;
    int count = columns_take(c, COLUMNS, -1, x->p.sites);
    if (count < 0)
        return NULL;
    enter(x, seconds);
    int done = scan_leaders(x, c[LEADER].view.buf, count, c[U].view.buf, c[WARM].view.buf, iterations,
                            swaps, full, work, c[BOUND].view.buf, c[END].view.buf);
    int fine = leave(x);
    columns_release(c, COLUMNS);
    return fine ? PyLong_FromLong(done) : NULL;
}

const char glances_doc[] =
    "glances(context, leaders, u, bounds, work, seconds) -> done\n\n"
    "Bound leaders (int32, none -1) by their own multipliers u (leaders x clients), which are cut to\n"
    "what can count; bounds (float64) are overwritten.";

PyObject *glances(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double work, seconds;
    enum { LEADER, U, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1},
                         [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOdd", &capsule, &c[LEADER].source, &c[U].source, &c[BOUND].source,
                          &work, &seconds))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    c[U].row = (size_t)x->p.clients * 8;
    int count = columns_take(c, COLUMNS, 0, x->p.sites);
    if (count < 0)
        return NULL;
    enter(x, seconds);
    int done = glance_leaders(x, c[LEADER].view.buf, count, c[U].view.buf, work, c[BOUND].view.buf);
    int fine = leave(x);
    columns_release(c, COLUMNS);
    return fine ? PyLong_FromLong(done) : NULL;
}

const char recall_doc[] =
    "recall(context, leaders, bounds, swaps, seconds) -> done\n\n"
    "Bound leaders (int32) at the multipliers of the last look at each, and improve the incumbent by\n"
    "swaps; bounds (float64) of those that were never looked at stay as they are.";

PyObject *recall(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int swaps;
    double seconds;
    enum { LEADER, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOid", &capsule, &c[LEADER].source, &c[BOUND].source, &swaps, &seconds))
        return NULL;
    context *x = context_of(capsule);
    int count = x ? columns_take(c, COLUMNS, -1, x->p.sites) : -1;
    if (count < 0)
        return NULL;
    enter(x, seconds);
    int done = recall_leaders(x, c[LEADER].view.buf, count, swaps, c[BOUND].view.buf);
    int fine = leave(x);
    columns_release(c, COLUMNS);
    return fine ? PyLong_FromLong(done) : NULL;
}

const char span_doc[] =
    "span(context, sizes, leaders, scores, leads, replicas, open, steps, swaps, work, seconds) -> taken\n\n"
    "Prove several numbers of replicas (int32, ascending) at once; scores (float64), leads (int32),\n"
    "replicas (int32, sizes x sites) and open (uint8: not proven) are overwritten where they are taken.";

PyObject *span_of(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int steps, swaps;
    double work, seconds;
    enum { SIZE, SCORE, LEAD, SET, OPEN, COLUMNS };
    column c[COLUMNS] = {[SIZE] = {.row = sizeof(int)}, [SCORE] = {.row = 8, .write = 1},
                         [LEAD] = {.row = sizeof(int), .write = 1}, [SET] = {.write = 1},
                         [OPEN] = {.row = 1, .write = 1}};
    column leaders = {.row = sizeof(int)};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOiidd", &capsule, &c[SIZE].source, &leaders.source, &c[SCORE].source,
                          &c[LEAD].source, &c[SET].source, &c[OPEN].source, &steps, &swaps, &work, &seconds))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    size_t sites = (size_t)x->p.sites;
    c[SET].row = sites * sizeof(int);
    int led = columns_take(&leaders, 1, -1, x->p.sites), taken = 0, fine = 0;
    if (led < 0)
        return NULL;
    int count = columns_take(c, COLUMNS, x->p.voters, x->p.sites + 1);
    if (count >= 0) {
        const int *size = c[SIZE].view.buf;
        fine = count > 0 && count <= MOST_SIZES;
        for (int k = 1; fine && k < count; k++)
            fine = size[k] > size[k - 1];
        if (!fine)
            PyErr_Format(PyExc_ValueError, "not 1 to %d numbers of replicas, ascending", MOST_SIZES);
    }
    if (fine) {
        enter(x, seconds);
        taken = span_search(x, c[SIZE].view.buf, count, leaders.view.buf, led, steps, swaps, work);
        if (taken) {
            unsigned char *open = c[OPEN].view.buf;
            size_set left = 0;
            for (size_t i = 0; i <= sites; i++)
                left |= x->span.open[i];
            for (int k = 0; k < count; k++)
                open[k] = (unsigned char)(left >> k & 1);
            memcpy(c[SCORE].view.buf, x->span.score, (size_t)count * 8);
            memcpy(c[LEAD].view.buf, x->span.leader, (size_t)count * sizeof(int));
            memcpy(c[SET].view.buf, x->span.replicas, (size_t)count * sites * sizeof(int));
        }
        fine = leave(x);
    }
    if (count >= 0)
        columns_release(c, COLUMNS);
    columns_release(&leaders, 1);
    return fine ? PyBool_FromLong(taken) : NULL;
}
