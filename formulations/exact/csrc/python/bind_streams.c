/* Binding of the roots of problems with many clients, whose RTTs stay where Python has them. */
#include "context_capsule.h"
#include <limits.h>
#include <string.h>

#include "many_clients/streamed_root.h"

enum { RTT, NEAR, RELAY, U, ROW, ARRAYS };

typedef struct {
    Py_buffer view[ARRAYS];
    int held;
    client_stream clients;
} stream_arrays;

static void release_stream(stream_arrays *a)
{
    while (a->held > 0)
        PyBuffer_Release(&a->view[--a->held]);
}

/* Take the arrays of a call; 0 with the exception set and nothing held. `rows` may be None. */
static int take_stream(const context *x, PyObject *const *source, int threads, stream_arrays *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < ARRAYS && !(i == ROW && source[ROW] == Py_None); i++, a->held++)
        if (PyObject_GetBuffer(source[i], &a->view[i], PyBUF_C_CONTIGUOUS | (i == U ? PyBUF_WRITABLE : 0))) {
            release_stream(a);
            return 0;
        }
    size_t clients = (size_t)a->view[U].len / 8, line = (size_t)x->p.sites * 8, rows = (size_t)a->view[RTT].len / line;
    int fits = clients <= INT_MAX && x->p.sites <= MOST_STREAMED_SITES && x->p.clients == 0 && threads >= 1;
    fits = fits && (size_t)a->view[RTT].len == rows * line && (size_t)a->view[NEAR].len == clients * 8 &&
           (size_t)a->view[RELAY].len == clients * 8 && (a->held == ARRAYS || rows == clients);
    if (fits && a->held == ARRAYS) {
        const long long *row = a->view[ROW].buf;
        fits = (size_t)a->view[ROW].len == clients * sizeof(long long);
        for (size_t c = 0; fits && c < clients; c++)
            fits = row[c] >= 0 && (size_t)row[c] < rows;
        a->clients.row = row;
    }
    if (!fits) {
        release_stream(a);
        PyErr_SetString(PyExc_ValueError, "the arrays of the clients do not fit the problem");
        return 0;
    }
    a->clients.rtt = a->view[RTT].buf;
    a->clients.near_weight = a->view[NEAR].buf;
    a->clients.relay_weight = a->view[RELAY].buf;
    a->clients.clients = (int)clients;
    a->clients.threads = threads;
    return 1;
}

/* The arguments that both calls begin with; 0 with the exception set. */
static context *stream_context(PyObject *capsule, int leader)
{
    context *x = context_of(capsule);
    if (x && (leader < -1 || leader >= x->p.sites)) {
        PyErr_SetString(PyExc_ValueError, "no such leader");
        return NULL;
    }
    return x;
}

const char stream_steps_doc[] =
    "stream_steps(context, (rtt, near, relay, u, rows), leader, iterations, threads, seconds) -> (bound, selected sites)\n\n"
    "Subgradient steps at the root of a leader over the rows of all clients; u is overwritten by the best multipliers.\n"
    "The context is that of the same problem without clients; rows (int64) or None: which rows of rtt the clients have.";

PyObject *py_stream_steps(PyObject *self, PyObject *args)
{
    PyObject *capsule, *source[ARRAYS];
    int leader, iterations, threads, set[MOST_STREAMED_SITES], size = 0;
    double seconds;
    stream_arrays a;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OOOOO)iiid", &capsule, &source[RTT], &source[NEAR], &source[RELAY], &source[U], &source[ROW],
                          &leader, &iterations, &threads, &seconds))
        return NULL;
    context *x = stream_context(capsule, leader);
    if (!x || !take_stream(x, source, threads, &a))
        return NULL;
    begin_call(x, seconds);
    double bound = improve_streamed(x, &a.clients, leader, a.view[U].buf, iterations, set, &size);
    int fine = end_call(x);
    release_stream(&a);
    PyObject *sites = fine ? PyTuple_New(size) : NULL;
    for (int i = 0; sites && i < size; i++)
        PyTuple_SetItem(sites, i, PyLong_FromLong(set[i]));
    return sites ? Py_BuildValue("(dN)", bound, sites) : NULL;
}

const char stream_fix_doc[] =
    "stream_fix(context, (rtt, near, relay, u, rows), leader, threads, seconds) -> (bound, states, closed, open)\n\n"
    "Fix sites at the root of a leader; states has a byte per site (0: free, 1: in, 2: out), closed is the least bound at\n"
    "which one was fixed, and open says whether anything is left.";

PyObject *py_stream_fix(PyObject *self, PyObject *args)
{
    PyObject *capsule, *source[ARRAYS];
    int leader, threads, open = 1;
    double seconds, closed = BIG;
    unsigned char states[MOST_STREAMED_SITES] = {0};
    stream_arrays a;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OOOOO)iid", &capsule, &source[RTT], &source[NEAR], &source[RELAY], &source[U], &source[ROW],
                          &leader, &threads, &seconds))
        return NULL;
    context *x = stream_context(capsule, leader);
    if (!x || !take_stream(x, source, threads, &a))
        return NULL;
    begin_call(x, seconds);
    double bound = fix_streamed(x, &a.clients, leader, a.view[U].buf, states, &closed, &open);
    int fine = end_call(x);
    release_stream(&a);
    return fine ? Py_BuildValue("(dy#di)", bound, (const char *)states, (Py_ssize_t)x->p.sites, closed, open) : NULL;
}
