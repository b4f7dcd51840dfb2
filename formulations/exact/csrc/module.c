/* Python binding of the kernel: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

#define NAME "formulations.exact._kernel.context"

static void free_levels(levels *v)
{
    for (int k = 0; k < v->count; k++)
        free(v->label[k]);
    v->count = 0;
}

static void context_free(context *x)
{
    problem *p = &x->p;
    if (x->stack)
        for (int i = 0; i < x->stack_size; i++)
            frame_release(&x->stack[i]);
    free(p->rtt);
    free(p->rank);
    free(p->near_weight);
    free(p->relay_weight);
    free(p->site_rtt);
    free(p->direct);
    free(p->price);
    free(p->may_hold);
    free_levels(&p->replica_caps);
    free_levels(&p->voter_caps);
    free(x->replicas);
    free(x->costs);
    free(x->near_order);
    free(x->near_free);
    free(x->stack);
    free(x->record.data);
    free(x->rho);
    free(x->trial);
    free(x->direction);
    free(x->best_u);
    free(x->selected);
    free(x->pick);
    free(x->order);
    free(x->key);
    free(x->radii);
    free(x->counts);
    free(x->enum_cost);
    free(x->enum_rank);
    free(x->level_cost);
    free(x->level_rank);
    free(x->by_client);
    free(x->item_cost);
    free(x->item_beta);
    free(x->item_move);
    free(x->item_best);
    free(x->item_free);
    free(x->item_site);
    free(x->item_start);
    free(x->item_step);
    free(x);
}

static void capsule_free(PyObject *capsule)
{
    context *x = PyCapsule_GetPointer(capsule, NAME);
    if (x)
        context_free(x);
}

static context *context_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NAME);
}

/* A private copy of a contiguous buffer of exactly `bytes` bytes. */
static void *copied(PyObject *source, size_t bytes)
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

static int read_levels(PyObject *list, levels *out, int sites)
{
    Py_ssize_t n = PyTuple_Size(list);
    if (n < 0)
        return 0;
    if (n > MAX_LEVELS) {
        PyErr_Format(PyExc_ValueError, "at most %d levels of caps", MAX_LEVELS);
        return 0;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *labels;
        int cap, count;
        if (!PyArg_ParseTuple(PyTuple_GetItem(list, k), "Oii", &labels, &cap, &count))
            return 0;
        out->label[k] = copied(labels, (size_t)sites * sizeof(int));
        if (!out->label[k])
            return 0;
        out->count = (int)k + 1;
        out->cap[k] = cap;
        out->labels[k] = count;
        for (int s = 0; s < sites; s++)
            if (count > sites || out->label[k][s] < 0 || out->label[k][s] >= count) {
                PyErr_SetString(PyExc_ValueError, "cap labels must run from 0 to at most sites - 1");
                return 0;
            }
    }
    return 1;
}

PyDoc_STRVAR(create_doc,
             "create(rtt, rank, near, relay, site_rtt, direct, quorum_weight, price, sizes, flags,\n"
             "       replica_caps, voter_caps, granularity, tolerance) -> context");

static PyObject *create(PyObject *self, PyObject *args)
{
    PyObject *rtt, *rank, *near, *relay, *site_rtt, *direct, *price, *flags, *rcaps, *vcaps;
    double weight, granularity, tolerance;
    int clients, padded, sites, rmin, rmax, voters, quorum;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOdO(iiiiiii)OO!O!dd", &rtt, &rank, &near, &relay, &site_rtt,
                          &direct, &weight, &price, &clients, &padded, &sites, &rmin, &rmax, &voters,
                          &quorum, &flags, &PyTuple_Type, &rcaps, &PyTuple_Type, &vcaps, &granularity,
                          &tolerance))
        return NULL;
    if (clients < 0 || padded < clients || padded % PAD || sites < 1) {
        PyErr_SetString(PyExc_ValueError, "kernel sizes are inconsistent");
        return NULL;
    }
    context *x = calloc(1, sizeof(context));
    if (!x)
        return PyErr_NoMemory();
    problem *p = &x->p;
    size_t S = (size_t)sites, P = (size_t)padded;
    p->clients = clients;
    p->padded = padded;
    p->sites = sites;
    p->replicas_min = rmin;
    p->replicas_max = rmax;
    p->voters = voters;
    p->quorum = quorum;
    p->quorum_weight = weight;
    p->granularity = granularity;
    x->tolerance = tolerance;
    if (!(p->rtt = copied(rtt, S * P * 8)) || !(p->rank = copied(rank, S * P * 4)) ||
        !(p->near_weight = copied(near, P * 8)) || !(p->relay_weight = copied(relay, P * 8)) ||
        !(p->site_rtt = copied(site_rtt, S * S * 8)) || !(p->direct = copied(direct, S * 8)) ||
        !(p->may_hold = copied(flags, S * 5)) ||
        (price != Py_None && !(p->price = copied(price, S * S * 8))) ||
        !read_levels(rcaps, &p->replica_caps, sites) || !read_levels(vcaps, &p->voter_caps, sites)) {
        context_free(x);
        return NULL;
    }
    p->must_hold = p->may_hold + S;
    p->may_vote = p->must_hold + S;
    p->must_vote = p->may_vote + S;
    p->may_lead = p->must_vote + S;
    p->plain_voters = p->voter_caps.count == 0;
    for (int s = 0; s < sites; s++)
        if (!p->may_vote[s] || p->must_vote[s])
            p->plain_voters = 0;
    x->score = BIG;
    x->cutoff = BIG;
    x->leader = -2;
    x->closed = BIG;
    x->stack_size = sites + 2;
    x->replicas = malloc(S * sizeof(int));
    x->costs = malloc(S * P * 8 + 8);
    x->near_order = malloc(S * sizeof(int));
    x->near_free = malloc((3 * S + 8) * sizeof(int));
    x->by_client = malloc((S * (size_t)clients + 1) * sizeof(int));
    x->stack = calloc((size_t)x->stack_size, sizeof(frame));
    x->rho = malloc(S * 8);
    x->trial = malloc(P * 8 + 8);
    x->direction = malloc(P * 8 + 8);
    x->best_u = malloc(P * 8 + 8);
    x->selected = malloc(5 * S * sizeof(int));
    x->pick = malloc((S + 2) * sizeof(int));
    x->order = malloc((S + 2) * sizeof(int));
    x->key = malloc((4 * S + 8) * 8);
    x->radii = malloc((S + 2) * sizeof(radius_answer));
    x->counts = malloc(2 * (size_t)MAX_LEVELS * S * sizeof(int));
    x->enum_cost = malloc(2 * P * 8 + 8);
    x->enum_rank = malloc(3 * P * sizeof(int) + 8);
    x->level_cost = malloc((MAX_ENUMERATED + 1) * P * 8 + 8);
    x->level_rank = malloc((MAX_ENUMERATED + 1) * P * sizeof(int) + 8);
    if (!x->level_cost || !x->level_rank || !x->by_client || !x->replicas || !x->costs || !x->near_order || !x->near_free || !x->stack || !x->rho ||
        !x->trial || !x->direction || !x->best_u || !x->selected || !x->pick || !x->order ||
        !x->key || !x->radii || !x->counts || !x->enum_cost || !x->enum_rank) {
        context_free(x);
        return PyErr_NoMemory();
    }
    for (int j = 0; j < sites; j++)
        for (int c = 0; c < clients; c++)
            x->by_client[(size_t)c * S + (size_t)p->rank[(size_t)j * P + (size_t)c]] = j;
    for (int c = 0; c < clients; c++)
        x->relays |= p->relay_weight[c] > 0.0;
    PyObject *capsule = PyCapsule_New(x, NAME, capsule_free);
    if (!capsule)
        context_free(x);
    return capsule;
}

/* A swap descent for the leader, from the incumbent's replicas if they can be adapted. */
static int start_set(context *x, int *set)
{
    int count = x->replica_count, leader = x->current, known = leader < 0;
    double radius, least = BIG;
    if (x->score < BIG) {
        memcpy(set, x->replicas, (size_t)count * sizeof(int));
        for (int i = 0; i < count; i++)
            known |= set[i] == leader;
        if (known)
            return count;
        int best = -1;
        for (int i = 0; i < count; i++) {
            int old = set[i];
            if (x->p.must_hold[old])
                continue;
            set[i] = leader;
            double score = score_of(x, set, count, &radius);
            set[i] = old;
            if (score < least) {
                least = score;
                best = i;
            }
        }
        if (best >= 0) {
            set[best] = leader;
            return count;
        }
    }
    return first_set(x, set);
}

/* Start multipliers: half way between the cheapest and the second cheapest replica of each client. */
static void start_multipliers(context *x, frame *f, const int *set, int count)
{
    const problem *p = &x->p;
    for (int c = 0; c < p->clients; c++) {
        double one = BIG, two = BIG;
        for (int i = 0; i < count; i++) {
            double w = x->costs[(size_t)set[i] * p->padded + c];
            if (w < one) {
                two = one;
                one = w;
            } else if (w < two)
                two = w;
        }
        f->u[c] = two < BIG ? one + 0.5 * (two - one) : one;
        if (f->u[c] > f->fixed_cost[c])
            f->u[c] = f->fixed_cost[c];
    }
}

/* Called by the kernel between evaluations: signals pending, or the deadline passed? */
static int pause_now(void *pointer)
{
    context *x = pointer;
    struct timespec now;
    int raised;
    PyEval_RestoreThread((PyThreadState *)x->thread);
    raised = PyErr_CheckSignals() != 0;
    x->thread = PyEval_SaveThread();
    if (raised) {
        x->raised = 1;
        return 1;
    }
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec > x->deadline;
}

static void enter(context *x, double seconds)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    x->deadline = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    x->pause = pause_now;
    x->paused = x->raised = 0;
    x->thread = PyEval_SaveThread();
}

/* 0 when a signal handler raised or memory ran out (the exception is set). */
static int leave(context *x)
{
    PyEval_RestoreThread((PyThreadState *)x->thread);
    if (x->raised)
        return 0;
    if (x->stop || x->record.failed) {
        PyErr_NoMemory();
        return 0;
    }
    return 1;
}

PyDoc_STRVAR(scan_doc, "scan(context, leader, u, iterations, swaps, warm, seconds) -> proven lower bound\n\n"
                       "Descend to a good set for the leader, then bound the leader; u is overwritten.");

static PyObject *scan(PyObject *self, PyObject *args)
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
    double bound = 0.0, error;
    enter(x, seconds);
    tree_open(x, leader, warm ? view.buf : NULL);
    if (!x->stop) {
        frame *f = &x->stack[0];
        int *set = x->near_free + x->p.sites, count = 0;
        if (swaps > 0) {
            count = start_set(x, set);
            if (count && swaps > 1)
                descend(x, set, count, swaps);
        }
        if (!warm && count)
            start_multipliers(x, f, set, count);
        bound = improve_bound(x, f, iterations, &error);
        if (bound >= x->cutoff && x->recording) {
            record_event(x, 2.0, 0.0);
            record_vector(x, f->u);
        }
        memcpy(view.buf, f->u, (size_t)x->p.clients * 8);
        x->depth = 0;
    }
    int fine = leave(x);
    PyBuffer_Release(&view);
    return fine ? PyFloat_FromDouble(bound) : NULL;
}

PyDoc_STRVAR(open_doc, "open(context, leader, u): put the leader's tree on the stack");

static PyObject *open_leader(PyObject *self, PyObject *args)
{
    PyObject *capsule, *buffer;
    int leader;
    Py_buffer view;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiO", &capsule, &leader, &buffer))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS))
        return NULL;
    if ((size_t)view.len != (size_t)x->p.clients * 8 || leader < -1 || leader >= x->p.sites) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "wrong number of multipliers, or no such leader");
        return NULL;
    }
    tree_open(x, leader, view.buf);
    PyBuffer_Release(&view);
    if (x->stop)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(run_doc, "run(context, work, seconds) -> (finished, lower bound of the open leader)");

static PyObject *run(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double work, seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "Odd", &capsule, &work, &seconds))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    enter(x, seconds);
    int done = tree_run(x, work);
    if (!leave(x))
        return NULL;
    return Py_BuildValue("(id)", done, tree_bound(x));
}

PyDoc_STRVAR(bound_doc, "bound(context) -> lower bound of the open leader, BIG when none is open");

static PyObject *bound_of(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x = context_of(capsule);
    return x ? PyFloat_FromDouble(tree_bound(x)) : NULL;
}

PyDoc_STRVAR(incumbent_doc, "incumbent(context) -> (score, leader, replicas)");

static PyObject *incumbent(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    int count = x->score < BIG ? x->replica_count : 0;
    PyObject *list = PyTuple_New(count);
    if (!list)
        return NULL;
    for (int i = 0; i < count; i++)
        PyTuple_SetItem(list, i, PyLong_FromLong(x->replicas[i]));
    return Py_BuildValue("(diN)", x->score, x->leader, list);
}

PyDoc_STRVAR(propose_doc, "propose(context, score, leader, replicas): an incumbent from outside");

static PyObject *propose(PyObject *self, PyObject *args)
{
    PyObject *capsule, *list;
    double score;
    int leader;
    (void)self;
    if (!PyArg_ParseTuple(args, "OdiO!", &capsule, &score, &leader, &PyTuple_Type, &list))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    Py_ssize_t n = PyTuple_Size(list);
    if (n > x->p.sites) {
        PyErr_SetString(PyExc_ValueError, "more replicas than sites");
        return NULL;
    }
    int *set = x->near_free;
    for (Py_ssize_t i = 0; i < n; i++)
        set[i] = (int)PyLong_AsLong(PyTuple_GetItem(list, i));
    if (PyErr_Occurred())
        return NULL;
    x->current = leader;
    offer(x, score, set, (int)n);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stats_doc, "stats(context) -> (nodes, leaves, bound evaluations, work, cutoff)");

static PyObject *stats(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    return Py_BuildValue("(llldd)", x->nodes, x->leaves, x->iterations, x->work, x->cutoff);
}

PyDoc_STRVAR(record_doc, "record(context, on) -> bytes recorded since the last call (float64)");

static PyObject *record(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int on;
    (void)self;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &on))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    PyObject *out = PyBytes_FromStringAndSize((const char *)x->record.data,
                                              (Py_ssize_t)(x->record.length * sizeof(double)));
    x->record.length = 0;
    x->recording = on;
    return out;
}

static PyMethodDef methods[] = {

    {"create", create, METH_VARARGS, create_doc},
    {"scan", scan, METH_VARARGS, scan_doc},
    {"open", open_leader, METH_VARARGS, open_doc},
    {"run", run, METH_VARARGS, run_doc},
    {"bound", bound_of, METH_O, bound_doc},
    {"incumbent", incumbent, METH_O, incumbent_doc},
    {"propose", propose, METH_VARARGS, propose_doc},
    {"stats", stats, METH_O, stats_doc},
    {"record", record, METH_VARARGS, record_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled kernel of the exact engine.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModule_Create(&module);
}
