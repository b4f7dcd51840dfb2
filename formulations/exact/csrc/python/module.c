/* Python module of the kernel: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#include "buffers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "read_families.h"

#define NAME "formulations.exact._kernel.context"

/* ---- The context in a capsule, and what stands around a call. ---- */

static context *context_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NAME);
}

/* For PyArg_ParseTuple. */
static int to_context(PyObject *capsule, void *out)
{
    return (*(context **)out = context_of(capsule)) != NULL;
}

/* Called by the kernel between evaluations: signals pending, or the deadline passed? */
static int pause_now(void *pointer)
{
    context *x = pointer;
    int raised;
    PyEval_RestoreThread((PyThreadState *)x->control.thread);
    raised = PyErr_CheckSignals() != 0;
    x->control.thread = PyEval_SaveThread();
    if (raised) {
        x->control.raised = 1;
        return 1;
    }
    return clock_now() > x->control.deadline;
}

static void begin_call(context *x, double seconds)
{
    x->control.deadline = clock_now() + seconds;
    x->control.pause = pause_now;
    x->control.paused = x->control.raised = 0;
    x->control.thread = PyEval_SaveThread();
}

/* 0 when a signal handler raised or memory ran out (the exception is set). */
static int end_call(context *x)
{
    PyEval_RestoreThread((PyThreadState *)x->control.thread);
    if (x->control.raised)
        return 0;
    if (x->control.out_of_memory || x->proof.events.failed) {
        PyErr_NoMemory();
        return 0;
    }
    return 1;
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

/* End what begin_call began, release the columns, return `done`. */
static PyObject *finish_call(context *x, column *c, int columns, int done)
{
    int fine = end_call(x);
    release_arrays(c, columns);
    return fine ? PyLong_FromLong(done) : NULL;
}

static const char bound_roots_doc[] =
    "bound_roots(context, leaders, u, warm, bounds, ends, iterations, swaps, full, work, seconds) -> done\n\n"
    "Bound leaders (int32) in turn; u (leaders x clients), bounds (float64) and ends (int64) are\n"
    "overwritten, ends by the length of the record after each leader.";

static PyObject *py_bound_roots(PyObject *self, PyObject *args)
{
    context *x;
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
    begin_call(x, seconds);
    int done = bound_roots(x, c[LEADER].view.buf, count, c[U].view.buf, c[WARM].view.buf, iterations,
                            swaps, full, work, c[BOUND].view.buf, c[END].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

static const char quick_bounds_doc[] =
    "quick_bounds(context, leaders, u, bounds, work, seconds) -> done\n\n"
    "Bound leaders (int32, none -1) by their own multipliers u (leaders x clients), which are cut to\n"
    "what can count; bounds (float64) are overwritten.";

static PyObject *py_quick_bounds(PyObject *self, PyObject *args)
{
    context *x;
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
    begin_call(x, seconds);
    int done = quick_bounds(x, c[LEADER].view.buf, count, c[U].view.buf, work, c[BOUND].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

static const char shared_bounds_doc[] =
    "shared_bounds(context, leaders, bounds, reference, u, serving, seconds) -> done\n\n"
    "Bound leaders (int32, none -1) by the multipliers u (clients) of another one, `reference` (int32, one).\n"
    "u, serving (int32, clients) and bounds (float64) are overwritten.";

static PyObject *py_shared_bounds(PyObject *self, PyObject *args)
{
    context *x;
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
    begin_call(x, seconds);
    done = shared_bounds(x, *(const int *)c[REFERENCE].view.buf, c[U].view.buf, c[LEADER].view.buf, count,
                         c[SERVING].view.buf, c[BOUND].view.buf);
    return finish_call(x, c, ALL, done);
}

static const char bounds_from_memory_doc[] =
    "bounds_from_memory(context, leaders, bounds, swaps, seconds) -> done\n\n"
    "Bound leaders (int32) at the multipliers that each was last bounded with, and improve the\n"
    "incumbent by swaps; bounds (float64) of leaders that were never bounded stay as they are.";

static PyObject *py_bounds_from_memory(PyObject *self, PyObject *args)
{
    context *x;
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
    begin_call(x, seconds);
    int done = bounds_from_memory(x, c[LEADER].view.buf, count, swaps, c[BOUND].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

static const char open_trees_doc[] =
    "open_trees(context, leaders, u, bounds)\n\n"
    "Open the trees of leaders (int32), in place of all others, from their multipliers u (leaders x clients);\n"
    "bounds (float64) are those known so far.";

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

static const char tree_bounds_doc[] =
    "tree_bounds(context, leaders, bounds)\n\n"
    "Overwrite bounds (float64) by what the open trees prove for leaders (int32); BIG: nothing was there.";

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

static const char decisions_learned_doc[] =
    "decisions_learned(context, leader) -> float\n\n"
    "Decisions that the tree of a leader has learned from, and still knows; for tests.";

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

/* 1 when all numbers are sites; 0 with the exception set. */
static int are_sites(const int *number, size_t count, int sites)
{
    for (size_t i = 0; i < count; i++)
        if (number[i] < 0 || number[i] >= sites)
            return refused("no such site in the order of a client");
    return 1;
}

PyDoc_STRVAR(create_doc,
             "create(rtt, order, near, relay, site_rtt, direct, quorum_weight, price, sizes, flags,\n"
             "       replica_families, voter_families, granularity, tolerance,\n"
             "       scenarios, cases) -> context\n\n"
             "rtt (float64) and order (int32: sites by distance) have a row per client.");

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
        !are_sites(p->by_client, C * S, sites) || !read_scenarios(owned, scenarios, p) || !read_cases(owned, cases, &p->cases, sites)) {
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

PyDoc_STRVAR(resize_doc, "resize(context, least, most, seconds): set another range of numbers of replicas");

static PyObject *py_resize(PyObject *self, PyObject *args)
{
    context *x;
    int least, most;
    double seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&iid", to_context, &x, &least, &most, &seconds))
        return NULL;
    if (least < 1 || most < least || most > x->p.sites)
        return PyErr_Format(PyExc_ValueError, "not a range of numbers of replicas");
    begin_call(x, seconds);
    set_replica_range(x, least, most);
    if (!end_call(x))
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_gap_doc, "set_gap(context, gap): close nodes whose bound is this near to the incumbent, relatively");

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

PyDoc_STRVAR(set_size_limits_doc,
             "set_size_limits(context, cells, share, nodes, burst, work, transfers): number of cells from which nodes become sparse, and\n"
             "the share of them below which they do; nodes after which a tree takes steps on (u, beta); nodes that a leader\n"
             "gets before the others begin; work from which parts are put off; nodes after which costs are transferred,\n"
             "whatever they gain, 0: never. Searches for sites near the leader begin whatever they gain, and steps are on those\n"
             "clients first who have most of the demand. For tests");

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

PyDoc_STRVAR(run_doc, "run(context, work, seconds) -> whether the open trees are finished");

static PyObject *py_run(PyObject *self, PyObject *args)
{
    context *x;
    double work, seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&dd", to_context, &x, &work, &seconds))
        return NULL;
    begin_call(x, seconds);
    int done = run_search(x, work);
    if (!end_call(x))
        return NULL;
    return PyBool_FromLong(done);
}

PyDoc_STRVAR(incumbent_doc, "incumbent(context) -> (score, leader, replicas)");

static PyObject *py_incumbent(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    int count = x->best.score < BIG ? x->best.count : 0;
    PyObject *list = PyTuple_New(count);
    if (!list)
        return NULL;
    for (int i = 0; i < count; i++)
        PyTuple_SetItem(list, i, PyLong_FromLong(x->best.replicas[i]));
    return Py_BuildValue("(diN)", x->best.score, x->best.leader, list);
}

PyDoc_STRVAR(propose_doc, "propose(context, score, leader, replicas): offer an incumbent from outside");

static PyObject *py_propose(PyObject *self, PyObject *args)
{
    context *x;
    PyObject *list;
    double score;
    int leader;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&diO!", to_context, &x, &score, &leader, &PyTuple_Type, &list))
        return NULL;
    Py_ssize_t n = PyTuple_Size(list);
    if (n > x->p.sites)
        return PyErr_Format(PyExc_ValueError, "more replicas than sites");
    int *set = x->scratch.sites;
    for (Py_ssize_t i = 0; i < n; i++) {
        long site = PyLong_AsLong(PyTuple_GetItem(list, i));
        if (PyErr_Occurred())
            return NULL;
        if (site < 0 || site >= x->p.sites)
            return PyErr_Format(PyExc_ValueError, "no such site");
        set[i] = (int)site;
    }
    leader_without_costs(x, leader);
    offer_incumbent(x, score, set, (int)n);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counters_doc, "counters(context) -> (nodes, leaves, bound evaluations, work, cutoff)");

static PyObject *py_counters(PyObject *self, PyObject *capsule)
{
    (void)self;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    return Py_BuildValue("(llldd)", x->tree.nodes, x->tree.leaves, x->effort.evaluations, x->effort.work, x->best.cutoff);
}

PyDoc_STRVAR(record_doc, "record(context, on) -> bytes recorded since the last call (float64)");

static PyObject *py_record(PyObject *self, PyObject *args)
{
    context *x;
    int on;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&p", to_context, &x, &on))
        return NULL;
    PyObject *out = PyBytes_FromStringAndSize((const char *)x->proof.events.data,
                                              (Py_ssize_t)(x->proof.events.length * sizeof(double)));
    x->proof.events.length = 0;
    x->proof.recording = on;
    return out;
}

static PyMethodDef methods[] = {
    {"create", py_create, METH_VARARGS, create_doc},
    {"bound_roots", py_bound_roots, METH_VARARGS, bound_roots_doc},
    {"quick_bounds", py_quick_bounds, METH_VARARGS, quick_bounds_doc},
    {"shared_bounds", py_shared_bounds, METH_VARARGS, shared_bounds_doc},
    {"bounds_from_memory", py_bounds_from_memory, METH_VARARGS, bounds_from_memory_doc},
    {"resize", py_resize, METH_VARARGS, resize_doc},
    {"set_gap", py_set_gap, METH_VARARGS, set_gap_doc},
    {"set_size_limits", py_set_size_limits, METH_VARARGS, set_size_limits_doc},
    {"open_trees", py_open_trees, METH_VARARGS, open_trees_doc},
    {"run", py_run, METH_VARARGS, run_doc},
    {"tree_bounds", py_tree_bounds, METH_VARARGS, tree_bounds_doc},
    {"decisions_learned", py_decisions_learned, METH_VARARGS, decisions_learned_doc},
    {"incumbent", py_incumbent, METH_O, incumbent_doc},
    {"propose", py_propose, METH_VARARGS, propose_doc},
    {"counters", py_counters, METH_O, counters_doc},
    {"record", py_record, METH_VARARGS, record_doc},
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
