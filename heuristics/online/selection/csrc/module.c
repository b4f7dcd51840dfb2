/* Python binding: limited API (abi3, CPython 3.11 and later), buffers in and out. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "selection.h"

#define BUFFERS 20
#define READ_ONLY 15 /* the buffers before this one are inputs */

/* Reads, clients, servers, slots, replication, epochs; sizes whose product could overflow are
   refused by the caller. */
static int sane(const run *r)
{
    return r->n >= 0 && r->clients > 0 && r->servers > 0 && r->servers < INT32_MAX &&
           r->slots > 0 && r->replication > 0 && r->replication <= r->servers && r->epochs > 0 &&
           r->replication < 128 && r->groups > 0 && r->kinds > 0 && r->kinds < INT32_MAX;
}

static int in_range(const int64_t *values, int64_t n, int64_t below)
{
    for (int64_t k = 0; k < n; k++)
        if (values[k] < 0 || values[k] >= below)
            return 0;
    return 1;
}

PyDoc_STRVAR(run_doc,
             "run(sizes, times, policy, limiter, hedge, snitch, (arrival, client, group, work,\n"
             "    shadowed, shadow_work, shuffle, means, mix, delay, table, generators, joins,\n"
             "    share, draws, latency, server, start, issued, update))\n"
             "    -> (end_ms, tries, refused, events, hedged)\n\n"
             "Simulate; the last five buffers are written. Releases the interpreter lock, and takes\n"
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
    PyObject *object[BUFFERS], *limiter, *hedge, *snitching, *inputs, *result = NULL;
    Py_buffer view[BUFFERS];
    run r;
    limiter_rules *q = &r.rules;
    int held = 0, finished;
    (void)self;
    memset(&r, 0, sizeof r);
    if (!PyArg_ParseTuple(args, "(LLLLLLLL)(dd)(iiddd)OOOO", &r.n, &r.clients, &r.servers, &r.slots,
                          &r.replication, &r.epochs, &r.groups, &r.kinds, &r.period,
                          &r.update_work, &r.policy, &r.random_ties, &r.exponent, &r.weight,
                          &r.alpha, &limiter, &hedge, &snitching, &inputs))
        return NULL;
    if (!PyArg_ParseTuple(inputs, "OOOOOOOOOOOOOOOOOOOO", &object[0], &object[1], &object[2],
                          &object[3], &object[4], &object[5], &object[6], &object[7], &object[8],
                          &object[9], &object[10], &object[11], &object[12], &object[13],
                          &object[14], &object[15], &object[16], &object[17], &object[18],
                          &object[19]))
        return NULL;
    if (!sane(&r) || r.policy < 0 || r.policy >= POLICIES) {
        PyErr_SetString(PyExc_ValueError, "sizes or policy out of range");
        return NULL;
    }
    if (snitching != Py_None &&
        !PyArg_ParseTuple(snitching, "ddddLL", &r.snitch.update, &r.snitch.reset, &r.snitch.decay,
                          &r.snitch.badness, &r.snitch.size, &r.snitch.draws))
        return NULL;
    if (r.policy == POLICY_DS &&
        (r.snitch.size < 1 || r.snitch.draws < r.n * r.replication || r.snitch.draws < 1)) {
        PyErr_SetString(PyExc_ValueError, "no sample size, or fewer draws than responses");
        return NULL;
    }
    if (hedge != Py_None) {
        r.hedging = 1;
        if (!PyArg_ParseTuple(hedge, "ddd", &r.patience, &r.slower, &r.other))
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
                                       8 * (Py_ssize_t)(r.clients * r.servers),
                                       8 * (Py_ssize_t)(r.groups * r.replication),
                                       8 * (Py_ssize_t)r.kinds,
                                       8 * (Py_ssize_t)r.kinds,
                                       8 * (Py_ssize_t)r.kinds,
                                       8 * (Py_ssize_t)r.snitch.draws,
                                       8 * n,
                                       8 * n,
                                       8 * n,
                                       8 * n,
                                       n};
    for (; held < BUFFERS; held++) {
        int flags = held < READ_ONLY ? PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
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
    r.mix = view[8].buf;
    r.delay = view[9].buf;
    r.table = view[10].buf;
    r.generators = view[11].buf;
    r.joins = view[12].buf;
    r.share = view[13].buf;
    r.snitch.draw = view[14].buf;
    r.latency = view[15].buf;
    r.server = view[16].buf;
    r.start = view[17].buf;
    r.issued = view[18].buf;
    r.update = view[19].buf;
    if (!in_range(r.client, r.n, r.clients) || !in_range(r.group, r.n, r.groups) ||
        !in_range(r.table, r.groups * r.replication, r.servers)) {
        PyErr_SetString(PyExc_ValueError, "a client, a group or a server is out of range");
        goto out;
    }
    r.pause = pause_now;
    r.thread = PyEval_SaveThread();
    finished = run_all(&r);
    run_free(&r);
    PyEval_RestoreThread(r.thread);
    if (finished)
        result = Py_BuildValue("dLLLL", r.end, (long long)r.tries, (long long)r.refused,
                               (long long)r.events, (long long)r.hedged);
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
