/* Python module of the kernel: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#include "buffers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "read_families.h"

#define NAME "formulations.exact._kernel.context"

/* ---- The context in a capsule, and what stands around a call. ---- */

/* For PyArg_ParseTuple. */
static int to_context(PyObject *capsule, void *out)
{
    return (*(context **)out = PyCapsule_GetPointer(capsule, NAME)) != NULL;
}

static void begin(context *x, call_limit *limit, double seconds)
{
    x->control.pause = pause_call;
    x->control.caller = limit;
    x->control.paused = 0;
    begin_call(limit, seconds);
}

/* 0 when a signal handler raised or memory ran out (the exception is set). */
static int end(context *x, call_limit *limit)
{
    x->control.pause = NULL;
    if (!end_call(limit))
        return 0;
    if (x->control.out_of_memory || x->proof.failed)
        PyErr_NoMemory();
    return !PyErr_Occurred();
}

/* ---- Binding of the calls that take leaders: bounds at their roots, and their trees. ---- */

/* Take the columns of a call, and count the leaders, none below `least`; `multipliers` (NULL: no column) has a row
   of doubles, one per client. -1 with the exception set and nothing held. */
static int take_call(const context *x, column *c, int columns, column *multipliers, int least)
{
    if (multipliers)
        multipliers->row = (size_t)x->p.clients * 8;
    return take_arrays(c, columns, least, x->p.sites);
}

/* End a call, release the columns, return `done`. */
static PyObject *finish_call(context *x, call_limit *limit, column *c, int columns, int done)
{
    int fine = end(x, limit);
    release_arrays(c, columns);
    return fine ? PyLong_FromLong(done) : NULL;
}

static PyObject *py_bound_roots(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    int iterations, swaps, full;
    double work, seconds;
    enum { LEADER, U, WARM, BOUND, END, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1}, [WARM] = {.row = 1},
                         [BOUND] = {.row = 8, .write = 1}, [END] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OOOOOiiidd", to_context, &x, &c[LEADER].source, &c[U].source,
                          &c[WARM].source, &c[BOUND].source, &c[END].source, &iterations, &swaps,
                          &full, &work, &seconds))
        return NULL;
    int count = take_call(x, c, COLUMNS, &c[U], -1);
    if (count < 0)
        return NULL;
    begin(x, &limit, seconds);
    int done = bound_roots(x, c[LEADER].view.buf, count, c[U].view.buf, c[WARM].view.buf, iterations,
                            swaps, full, work, c[BOUND].view.buf, c[END].view.buf);
    return finish_call(x, &limit, c, COLUMNS, done);
}

static PyObject *py_quick_bounds(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    double work, seconds;
    enum { LEADER, U, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1},
                         [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OOOdd", to_context, &x, &c[LEADER].source, &c[U].source, &c[BOUND].source,
                          &work, &seconds))
        return NULL;
    int count = take_call(x, c, COLUMNS, &c[U], 0);
    if (count < 0)
        return NULL;
    begin(x, &limit, seconds);
    int done = quick_bounds(x, c[LEADER].view.buf, count, c[U].view.buf, work, c[BOUND].view.buf);
    return finish_call(x, &limit, c, COLUMNS, done);
}

static PyObject *py_shared_bounds(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    double seconds;
    enum { LEADER, BOUND, COLUMNS, REFERENCE = COLUMNS, U, SERVING, ALL };
    column c[ALL] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1},
                     [REFERENCE] = {.row = sizeof(int)}, [U] = {.write = 1}, [SERVING] = {.write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OOOOOd", to_context, &x, &c[LEADER].source, &c[BOUND].source, &c[REFERENCE].source,
                          &c[U].source, &c[SERVING].source, &seconds))
        return NULL;
    int count = take_call(x, c, COLUMNS, NULL, 0);
    if (count < 0)
        return NULL;
    c[SERVING].row = (size_t)x->p.clients * sizeof(int);
    int done = take_call(x, c + REFERENCE, ALL - REFERENCE, c + U, 0);
    if (done != 1) {
        if (done >= 0)
            PyErr_SetString(PyExc_ValueError, "one leader has the multipliers");
        release_arrays(c, done < 0 ? COLUMNS : ALL);
        return NULL;
    }
    begin(x, &limit, seconds);
    done = shared_bounds(x, *(const int *)c[REFERENCE].view.buf, c[U].view.buf, c[LEADER].view.buf, count,
                         c[SERVING].view.buf, c[BOUND].view.buf);
    return finish_call(x, &limit, c, ALL, done);
}

static PyObject *py_bounds_from_memory(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    int swaps;
    double seconds;
    enum { LEADER, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OOid", to_context, &x, &c[LEADER].source, &c[BOUND].source, &swaps, &seconds))
        return NULL;
    int count = take_call(x, c, COLUMNS, NULL, -1);
    if (count < 0)
        return NULL;
    begin(x, &limit, seconds);
    int done = bounds_from_memory(x, c[LEADER].view.buf, count, swaps, c[BOUND].view.buf);
    return finish_call(x, &limit, c, COLUMNS, done);
}

static PyObject *py_open_trees(PyObject *self, PyObject *args)
{
    context *x;
    enum { LEADER, U, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OOO", to_context, &x, &c[LEADER].source, &c[U].source, &c[BOUND].source))
        return NULL;
    int count = take_call(x, c, COLUMNS, &c[U], -1);
    if (count < 0)
        return NULL;
    open_trees(x, c[LEADER].view.buf, c[U].view.buf, c[BOUND].view.buf, count);
    release_arrays(c, COLUMNS);
    if (x->control.out_of_memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *py_tree_bounds(PyObject *self, PyObject *args)
{
    context *x;
    enum { LEADER, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "O&OO", to_context, &x, &c[LEADER].source, &c[BOUND].source))
        return NULL;
    int count = take_call(x, c, COLUMNS, NULL, -1);
    if (count < 0)
        return NULL;
    leader_bounds(x, c[LEADER].view.buf, c[BOUND].view.buf, count);
    release_arrays(c, COLUMNS);
    Py_RETURN_NONE;
}

static PyObject *py_decisions_learned(PyObject *self, PyObject *args)
{
    context *x;
    int leader;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&i", to_context, &x, &leader))
        return NULL;
    if (leader < -1 || leader >= x->p.sites)
        return PyErr_Format(PyExc_ValueError, "no such leader");
    const pseudo_costs *p = &x->open.tree[memory_row(x, leader)].pseudo;
    return PyFloat_FromDouble(p->tries_sum[IN] + p->tries_sum[OUT]);
}

/* ---- Python binding of the kernel: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. ---- */

static void capsule_free(PyObject *capsule)
{
    context *x = PyCapsule_GetPointer(capsule, NAME);
    if (x)
        context_free(x);
}

/* Read scenarios as (number, scenario of each client, RTTs between sites, weights), or None for one. */
static int read_scenarios(owned_memory *owned, PyObject *given, problem *p)
{
    PyObject *of_clients, *rtt, *weights;
    size_t S = (size_t)p->sites, C = (size_t)p->clients;
    p->scenarios = 1;
    if (given == Py_None)
        return 1;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "iOOO", &p->scenarios, &of_clients, &rtt, &weights))
        return 0;
    if (p->scenarios < 1 || p->scenarios > INT_MAX / 2)
        return refused("not a number of scenarios");
    size_t K = (size_t)p->scenarios;
    if (!(p->scenario = copy_buffer(owned, of_clients, C * sizeof(int))) ||
        !(p->scenario_rtt = copy_buffer(owned, rtt, K * S * S * 8)) || !(p->scenario_weight = copy_buffer(owned, weights, K * 8)))
        return 0;
    for (size_t c = 0; c < C; c++)
        if (p->scenario[c] < (c ? p->scenario[c - 1] : 0) || p->scenario[c] >= p->scenarios)
            return refused("no such scenario of a client, or clients not in the order of scenarios");
    return 1;
}

/* Read the cases of one wait as (D, blocks, cases for each radius, bits of the blocks of voters, of those within the radius,
 * number of radii, first radius of each leader, radii, blocks of each site, what blocks ask for). */
static int read_wait(owned_memory *owned, PyObject *given, leader_wait *out, int sites, int *bars)
{
    PyObject *start, *radius, *scope, *least;
    int radii;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "diiIIiOOOO", &out->rounds, &out->blocks, &out->sizes, &out->of_voters,
                                                   &out->near, &radii, &start, &radius, &scope, &least))
        return 0;
    if (radii < 0 || out->sizes < 1 || out->blocks < 0 || out->blocks > MOST_BLOCKS)
        return refused("not the cases of a wait");
    size_t S = (size_t)sites;
    if (!(out->start = copy_buffer(owned, start, (S + 1) * sizeof(int))) || !(out->radius = copy_buffer(owned, radius, (size_t)radii * 8)) ||
        !(out->scope = copy_buffer(owned, scope, S * S)) ||
        !(out->least = copy_buffer(owned, least, (size_t)out->sizes * (size_t)out->blocks * sizeof(int))))
        return 0;
    int good = out->start[0] == 0 && out->start[S] == radii;
    for (size_t s = 0; s < S; s++)
        good &= out->start[s] <= out->start[s + 1];
    for (size_t at = 0; at < S * S; at++) {
        good &= (out->scope[at] & ~FORBIDDEN) < 1 << out->blocks;
        *bars |= out->scope[at] & FORBIDDEN;
    }
    if (!good)
        PyErr_SetString(PyExc_ValueError, "not the cases of every leader");
    return good;
}

/* Read cases as (which wait is never the longer or -1, whether no blocks cross, a tuple of waits), or None. */
static int read_cases(owned_memory *owned, PyObject *given, wait_cases *out, int sites)
{
    PyObject *waits;
    int blocks = 0;
    if (given == Py_None)
        return 1;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "ipO!", &out->shorter, &out->nested, &PyTuple_Type, &waits))
        return 0;
    Py_ssize_t number = PyTuple_Size(waits);
    if (number < 1 || number > MOST_WAITS || out->shorter < -1 || out->shorter >= number ||
        (number == 1 && out->shorter >= 0))
        return refused("not so many waits of a leader");
    for (Py_ssize_t w = 0; w < number; w++) {
        if (!read_wait(owned, PyTuple_GetItem(waits, w), &out->wait[w], sites, &out->bars))
            return 0;
        blocks += out->wait[w].blocks;
        out->count++;
    }
    if (blocks > MOST_BLOCKS)
        return refused("too many blocks of a case");
    out->made = own(owned, (size_t)sites, sizeof(int *));
    out->last = own(owned, (size_t)sites * MOST_WAITS, sizeof(size_t));
    if (!out->made || !out->last) {
        PyErr_NoMemory();
        return 0;
    }
    return 1;
}

static PyObject *py_create(PyObject *self, PyObject *args)
{
    PyObject *rtt, *order, *near, *relay, *site_rtt, *direct, *price, *flags, *replicas, *votes, *scenarios, *cases;
    double weight, granularity, tolerance;
    int clients, sites, rmin, rmax, voters, quorum;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOdO(iiiiii)OO!O!ddOO", &rtt, &order, &near, &relay, &site_rtt,
                          &direct, &weight, &price, &clients, &sites, &rmin, &rmax, &voters,
                          &quorum, &flags, &PyTuple_Type, &replicas, &PyTuple_Type, &votes, &granularity,
                          &tolerance, &scenarios, &cases))
        return NULL;
    if (clients < 0 || clients > INT_MAX - PAD || sites < 1)
        return PyErr_Format(PyExc_ValueError, "kernel sizes are inconsistent");
    context *x = calloc(1, sizeof(context));
    if (!x)
        return PyErr_NoMemory();
    problem *p = &x->p;
    owned_memory *owned = &x->owned;
    size_t S = (size_t)sites, C = (size_t)clients, P = (C + PAD - 1) / PAD * PAD;
    p->clients = clients;
    p->padded = (int)P;
    p->sites = sites;
    p->replicas_min = rmin;
    p->replicas_max = rmax;
    p->voters = voters;
    p->quorum = quorum;
    p->quorum_weight = weight;
    p->granularity = granularity;
    x->best.tolerance = tolerance;
    if (!(p->rtt = copy_transposed(owned, rtt, C, S, P)) || !(p->by_client = copy_buffer(owned, order, C * S * sizeof(int))) ||
        !(p->near_weight = copy_padded(owned, near, C, P)) || !(p->relay_weight = copy_padded(owned, relay, C, P)) ||
        !(p->site_rtt = copy_buffer(owned, site_rtt, S * S * 8)) || !(p->direct = copy_buffer(owned, direct, S * 8)) ||
        !(p->may_hold = copy_buffer(owned, flags, S * 5)) ||
        (price != Py_None && !(p->price = copy_buffer(owned, price, S * S * 8))) ||
        !read_families(owned, replicas, &p->replica_families, sites) || !read_families(owned, votes, &p->voter_families, sites) ||
        !in_range(p->by_client, C * S, 0, sites, "no such site in the order of a client") || !read_scenarios(owned, scenarios, p) || !read_cases(owned, cases, &p->cases, sites)) {
        context_free(x);
        return NULL;
    }
    if (!context_prepare(x)) {
        context_free(x);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(x, NAME, capsule_free);
    if (!capsule)
        context_free(x);
    return capsule;
}

static PyObject *py_resize(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    int least, most;
    double seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&iid", to_context, &x, &least, &most, &seconds))
        return NULL;
    if (least < 1 || most < least || most > x->p.sites)
        return PyErr_Format(PyExc_ValueError, "not a range of numbers of replicas");
    begin(x, &limit, seconds);
    set_replica_range(x, least, most);
    if (!end(x, &limit))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_set_gap(PyObject *self, PyObject *args)
{
    context *x;
    double gap;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&d", to_context, &x, &gap))
        return NULL;
    if (!(gap >= 0.0))
        return PyErr_Format(PyExc_ValueError, "not a relative gap");
    set_tolerance(x, gap);
    Py_RETURN_NONE;
}

/* For tests. Cells from which nodes become sparse, and the share of them below which they do; nodes after which a tree takes steps on
   (u, beta); nodes that a leader gets before the others begin; work from which parts are put off; nodes after which costs are
   transferred, whatever they gain, 0: never. Searches for sites near the leader begin whatever they gain, and steps are on those
   clients first who have most of the demand. */
static PyObject *py_set_size_limits(PyObject *self, PyObject *args)
{
    context *x;
    double least, share, work;
    long nodes, burst, transfers;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&ddlldl", to_context, &x, &least, &share, &nodes, &burst, &work, &transfers))
        return NULL;
    if (!(least >= 0.0) || !(share >= 0.0 && share <= 1.0) || nodes < 1 || burst < 1 || !(work >= 0.0) || transfers < 0)
        return PyErr_Format(PyExc_ValueError, "not a number of cells, or not a share, or no nodes or work");
    x->limits.sparse_from = least;
    x->limits.sparse_share = share;
    x->limits.tight_nodes = x->limits.tight_nodes_few = nodes;
    x->limits.burst_nodes = burst;
    x->limits.patience = work;
    x->limits.transfer_nodes = transfers;
    x->limits.transfer_pays = -BIG;
    x->limits.interval_gain = 0.0;
    find_heavy(x, 0.7, 1.0);
    if (x->owned.failed)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *py_run(PyObject *self, PyObject *args)
{
    context *x;
    call_limit limit;
    double work, seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&dd", to_context, &x, &work, &seconds))
        return NULL;
    begin(x, &limit, seconds);
    int done = run_search(x, work);
    if (!end(x, &limit))
        return NULL;
    return PyBool_FromLong(done);
}

static PyObject *py_incumbent(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x;
    if (!to_context(capsule, &x))
        return NULL;
    PyObject *replicas = tuple_of(x->best.replicas, x->best.score < BIG ? x->best.count : 0);
    return replicas ? Py_BuildValue("(diN)", x->best.score, x->best.leader, replicas) : NULL;
}

static PyObject *py_propose(PyObject *self, PyObject *args)
{
    context *x;
    PyObject *list;
    double score;
    int leader;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&diO!", to_context, &x, &score, &leader, &PyTuple_Type, &list))
        return NULL;
    int n = read_tuple(list, x->p.sites, x->p.sites, x->scratch.sites);
    if (n < 0)
        return NULL;
    leader_without_costs(x, leader);
    offer_incumbent(x, score, x->scratch.sites, n);
    Py_RETURN_NONE;
}

static PyObject *py_counters(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x;
    if (!to_context(capsule, &x))
        return NULL;
    return Py_BuildValue("(llldd)", x->tree.nodes, x->tree.leaves, x->effort.evaluations, x->effort.work, x->best.cutoff);
}

static PyObject *py_record(PyObject *self, PyObject *args)
{
    context *x;
    int on;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&p", to_context, &x, &on))
        return NULL;
    PyObject *out = PyBytes_FromStringAndSize((const char *)x->proof.data,
                                              (Py_ssize_t)(x->proof.length * sizeof(double)));
    x->proof.length = 0;
    x->proof.on = on;
    return out;
}

static PyMethodDef methods[] = {
    {"create", py_create, METH_VARARGS, NULL},
    {"bound_roots", py_bound_roots, METH_VARARGS, NULL},
    {"quick_bounds", py_quick_bounds, METH_VARARGS, NULL},
    {"shared_bounds", py_shared_bounds, METH_VARARGS, NULL},
    {"bounds_from_memory", py_bounds_from_memory, METH_VARARGS, NULL},
    {"resize", py_resize, METH_VARARGS, NULL},
    {"set_gap", py_set_gap, METH_VARARGS, NULL},
    {"set_size_limits", py_set_size_limits, METH_VARARGS, NULL},
    {"open_trees", py_open_trees, METH_VARARGS, NULL},
    {"run", py_run, METH_VARARGS, NULL},
    {"tree_bounds", py_tree_bounds, METH_VARARGS, NULL},
    {"decisions_learned", py_decisions_learned, METH_VARARGS, NULL},
    {"incumbent", py_incumbent, METH_O, NULL},
    {"propose", py_propose, METH_VARARGS, NULL},
    {"counters", py_counters, METH_O, NULL},
    {"record", py_record, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled kernel of the exact engine.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    if (!client_loops_are_right())
        return PyErr_Format(PyExc_ImportError, "the kernel was miscompiled");
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "MOST_BLOCKS", MOST_BLOCKS) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
