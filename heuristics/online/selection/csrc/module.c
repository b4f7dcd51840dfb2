/* Python binding: limited API (abi3, CPython 3.11 and later), buffers in and out. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "selection.h"

#define BUFFERS 11

/* Reads, clients, servers, slots, replication, epochs; sizes whose product could overflow are
   refused by the caller. */
static int sane(const run *r)
{
    return r->n >= 0 && r->clients > 0 && r->servers > 0 && r->servers < INT32_MAX &&
           r->slots > 0 && r->replication > 0 && r->replication <= r->servers && r->epochs > 0 &&
           r->replication < 128;
}

static int in_range(const int64_t *values, int64_t n, int64_t below)
{
    for (int64_t k = 0; k < n; k++)
        if (values[k] < 0 || values[k] >= below)
            return 0;
    return 1;
}

PyDoc_STRVAR(run_doc,
             "run(sizes, times, policy, limiter, arrival, client, group, work, shadowed, shadow_work,\n"
             "    shuffle, means, latency, server, start) -> (end_ms, tries, refused, events)\n\n"
             "Simulate; the last three buffers are written. Releases the interpreter lock, and takes\n"
             "it now and then to let signal handlers run; what they raise ends the run.");

static int pause_now(run *r)
{
    PyEval_RestoreThread(r->thread);
    r->raised = PyErr_CheckSignals() != 0;
    r->thread = PyEval_SaveThread();
    return r->raised;
}

static PyObject *simulate(PyObject *self, PyObject *args)
{
    PyObject *object[BUFFERS], *limiter, *result = NULL;
    Py_buffer view[BUFFERS];
    run r;
    limiter_rules *q = &r.rules;
    int held = 0, finished;
    (void)self;
    memset(&r, 0, sizeof r);
    if (!PyArg_ParseTuple(args, "(LLLLLL)(dd)(iiddd)OOOOOOOOOOOO", &r.n, &r.clients, &r.servers,
                          &r.slots, &r.replication, &r.epochs, &r.delay, &r.period, &r.policy,
                          &r.random_ties, &r.exponent, &r.weight, &r.alpha, &limiter, &object[0],
                          &object[1], &object[2], &object[3], &object[4], &object[5], &object[6],
                          &object[7], &object[8], &object[9], &object[10]))
        return NULL;
    if (!sane(&r) || r.policy < 0 || r.policy >= POLICIES) {
        PyErr_SetString(PyExc_ValueError, "sizes or policy out of range");
        return NULL;
    }
    if (limiter != Py_None) {
        r.limited = 1;
        if (!PyArg_ParseTuple(limiter, "dddddddddddi", &q->window, &q->decrease, &q->growth,
                              &q->step, &q->hysteresis, &q->floor, &q->rate, &q->tokens,
                              &q->capacity, &q->saddle, &q->smoothing, &q->mint))
            return NULL;
    }
    Py_ssize_t n = (Py_ssize_t)r.n, copies = (Py_ssize_t)(r.replication - 1);
    const Py_ssize_t bytes[BUFFERS] = {8 * n,
                                       8 * n,
                                       8 * n,
                                       8 * n,
                                       n,
                                       8 * n * copies,
                                       n * (Py_ssize_t)r.replication,
                                       8 * (Py_ssize_t)(r.epochs * r.servers),
                                       8 * n,
                                       8 * n,
                                       8 * n};
    for (; held < BUFFERS; held++) {
        int flags = held < 8 ? PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
        if (PyObject_GetBuffer(object[held], &view[held], flags))
            goto out;
        if (view[held].len != bytes[held]) {
            PyErr_Format(PyExc_ValueError, "buffer %d has %zd bytes, expected %zd", held,
                         view[held].len, bytes[held]);
            held++;
            goto out;
        }
    }
    r.arrival = view[0].buf;
    r.client = view[1].buf;
    r.group = view[2].buf;
    r.work = view[3].buf;
    r.shadowed = view[4].buf;
    r.shadow_work = view[5].buf;
    r.shuffle = view[6].buf;
    r.means = view[7].buf;
    r.latency = view[8].buf;
    r.server = view[9].buf;
    r.start = view[10].buf;
    if (!in_range(r.client, r.n, r.clients) || !in_range(r.group, r.n, r.servers)) {
        PyErr_SetString(PyExc_ValueError, "a client or a group is out of range");
        goto out;
    }
    r.pause = pause_now;
    r.thread = PyEval_SaveThread();
    finished = run_all(&r);
    run_free(&r);
    PyEval_RestoreThread(r.thread);
    if (finished)
        result = Py_BuildValue("dLLL", r.end, (long long)r.tries, (long long)r.refused,
                               (long long)r.events);
    else if (!r.raised)
        PyErr_NoMemory();
out:
    while (held > 0)
        PyBuffer_Release(&view[--held]);
    return result;
}

static PyMethodDef methods[] = {{"run", simulate, METH_VARARGS, run_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_kernel",
                                        "Compiled event loop of replica selection.",
                                        -1,
                                        methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModule_Create(&definition);
}
