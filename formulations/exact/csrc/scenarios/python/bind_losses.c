/* Python functions of questions about losses (../losses.h). */
#include "methods.h"

#include <limits.h>
#include <string.h>

#include "binding.h"
#include "losses.h"

#define NAME "formulations.exact._scenarios.losses"

static void begin(loss_problem *x, call_limit *limit, double seconds)
{
    x->pause = pause_call;
    x->pause_self = limit;
    x->paused = 0;
    begin_call(limit, seconds);
}

/* 0 with the exception set when a signal handler raised. */
static int end(loss_problem *x, call_limit *limit)
{
    x->pause = NULL;
    return end_call(limit);
}

static loss_problem *problem_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NAME);
}

static void capsule_free(PyObject *capsule)
{
    loss_problem *x = PyCapsule_GetPointer(capsule, NAME);
    if (x)
        losses_free(x);
}

/* Clients that move: None, or (losses that move some, first row of each, client of each row, RTTs, orders, direct). */
static int read_moved(PyObject *given, loss_problem *x)
{
    PyObject *moves, *start, *client, *rtt, *order, *direct;
    moved_clients *m = &x->moved;
    size_t L = (size_t)x->losses, S = (size_t)x->sites;
    int hits = x->replicas_max;
    if (given == Py_None)
        return 1;
    if (!PyArg_ParseTuple(given, "OOOOOO", &moves, &start, &client, &rtt, &order, &direct) ||
        !(m->moves = copy_buffer(moves, L)) || !(m->start = copy_buffer(start, (L + 1) * sizeof(int))))
        return 0;
    for (size_t l = 0; l < L; l++) {
        hits += m->moves[l] != 0;
        if (m->start[0] != 0 || m->start[l + 1] < m->start[l] || m->start[l + 1] > x->clients)
            hits = INT_MAX / 2;
    }
    if (hits > MOST_HITS) {
        PyErr_SetString(PyExc_ValueError, "losses that move too many clients");
        return 0;
    }
    size_t rows = (size_t)m->start[L];
    if (!(m->client = copy_buffer(client, rows * sizeof(int))) || !(m->rtt = copy_buffer(rtt, rows * S * 8)) ||
        !(m->order = copy_buffer(order, rows * S * sizeof(int))) || !(m->direct = copy_buffer(direct, L * S * 8)))
        return 0;
    for (size_t i = 0; i < rows * S; i++)
        if (m->order[i] < 0 || m->order[i] >= x->sites || m->client[i / S] < 0 || m->client[i / S] >= x->clients) {
            PyErr_SetString(PyExc_ValueError, "no such site, or client, among those that move");
            return 0;
        }
    return 1;
}

PyDoc_STRVAR(losses_doc,
             "losses(rtt, order, near, relay, (first_row, hop, rounds), direct, loss_of, probability, moved, flags,\n"
             "       rules, voter_rules,\n"
             "       (clients, sites, intervals, losses, least, most, voters, quorum, leader_may_move, goal),\n"
             "       (step, ceiling)) -> context");

/* Rows of clients, RTTs between sites and weights of the waits by interval. */
static int read_intervals(PyObject *first_row, PyObject *hop, PyObject *rounds, loss_problem *x)
{
    size_t K = (size_t)x->intervals, S = (size_t)x->sites;
    if (!(x->first_row = copy_buffer(first_row, (K + 1) * sizeof(int))) || !(x->hop = copy_buffer(hop, K * S * S * 8)) ||
        !(x->rounds = copy_buffer(rounds, K * 8)))
        return 0;
    int fits = x->first_row[0] == 0 && x->first_row[K] == x->clients;
    for (size_t k = 0; k < K; k++)
        fits = fits && x->first_row[k] <= x->first_row[k + 1];
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "rows of intervals that do not fit");
    return fits;
}

static PyObject *py_losses(PyObject *self, PyObject *args)
{
    PyObject *rtt, *order, *near, *relay, *direct, *loss_of, *probability, *moved, *flags, *of_replicas, *of_voters;
    PyObject *first_row, *hop, *rounds;
    (void)self;
    loss_problem *x = calloc(1, sizeof(loss_problem));
    if (!x)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOOO(OOO)OOOOOO!O!(iiiiiiiiii)(dd)", &rtt, &order, &near, &relay, &first_row,
                          &hop, &rounds, &direct, &loss_of, &probability, &moved, &flags, &PyTuple_Type, &of_replicas, &PyTuple_Type,
                          &of_voters, &x->clients, &x->sites, &x->intervals, &x->losses, &x->replicas_min, &x->replicas_max, &x->voters, &x->quorum,
                          &x->leader_may_move, &x->goal, &x->step, &x->ceiling))
        goto failed;
    if (x->clients < 0 || x->clients > INT_MAX - PAD || x->sites < 1 || x->intervals < 1 || x->losses < 0 || x->losses > x->sites ||
        x->replicas_max > MOST_REPLICAS || x->replicas_min < 1 || x->quorum < 1 || x->goal < 0 || x->goal > 2) {
        PyErr_SetString(PyExc_ValueError, "sizes are inconsistent");
        goto failed;
    }
    size_t S = (size_t)x->sites, C = (size_t)x->clients, P = (C + PAD - 1) / PAD * PAD;
    x->padded = (int)P;
    if (!(x->rtt = copy_transposed(rtt, C, S, P)) || !(x->rank = read_ranks(order, x->clients, x->sites, P)) ||
        !(x->near_weight = copy_padded(near, C, P)) || !(x->relay_weight = copy_padded(relay, C, P)) ||
        !read_intervals(first_row, hop, rounds, x) || !(x->direct = copy_buffer(direct, S * 8)) ||
        !(x->loss_of = copy_buffer(loss_of, S * sizeof(int))) ||
        !(x->probability = copy_buffer(probability, (size_t)x->losses * 8)) ||
        !read_moved(moved, x) || !(x->may_hold = copy_buffer(flags, S * 5)) || !read_families(of_replicas, &x->replica_rules, x->sites) ||
        !read_families(of_voters, &x->voter_rules, x->sites))
        goto failed;
    x->must_hold = x->may_hold + S;
    x->may_vote = x->may_hold + 2 * S;
    x->must_vote = x->may_hold + 3 * S;
    x->may_lead = x->may_hold + 4 * S;
    for (size_t j = 0; j < S; j++)
        if (x->loss_of[j] < -1 || x->loss_of[j] >= x->losses) {
            PyErr_SetString(PyExc_ValueError, "no such loss");
            goto failed;
        }
    if (!losses_prepare(x)) {
        PyErr_NoMemory();
        goto failed;
    }
    PyObject *capsule = PyCapsule_New(x, NAME, capsule_free);
    if (capsule)
        return capsule;
failed:
    losses_free(x);
    return NULL;
}

PyDoc_STRVAR(start_doc, "start(context, value): set the value that is to be undercut, without a configuration");

static PyObject *py_start(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double value;
    (void)self;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &value))
        return NULL;
    loss_problem *x = problem_of(capsule);
    if (!x)
        return NULL;
    x->value = x->normal = value < BIG ? value : BIG;
    x->leader = -1;
    Py_RETURN_NONE;
}

/* Sites in a tuple, into x->set + room; how many, -1 with the exception set. */
static int read_set(loss_problem *x, PyObject *list)
{
    Py_ssize_t n = PyTuple_Size(list);
    if (n > x->replicas_max || n < 1) {
        PyErr_SetString(PyExc_ValueError, "not a possible number of replicas");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        long site = PyLong_AsLong(PyTuple_GetItem(list, i));
        if (site < 0 || site >= x->sites) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such site");
            return -1;
        }
        x->set[x->sites + 1 + (int)i] = (int)site;
    }
    return (int)n;
}

PyDoc_STRVAR(descend_doc, "descend(context, replicas, kicks, seed, seconds): swap descent from a set; kicks < 0: only\n"
                          "evaluate it");

static PyObject *py_descend(PyObject *self, PyObject *args)
{
    PyObject *capsule, *list;
    int kicks, seed, n;
    double seconds;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!iid", &capsule, &PyTuple_Type, &list, &kicks, &seed, &seconds))
        return NULL;
    loss_problem *x = problem_of(capsule);
    if (!x || (n = read_set(x, list)) < 0)
        return NULL;
    begin(x, &limit, seconds);
    if (kicks < 0)
        losses_evaluate(x, x->set + x->sites + 1, n, -1, losses_below(x, x->value));
    else
        losses_descend(x, x->set + x->sites + 1, n, kicks, (unsigned)seed);
    if (!end(x, &limit))
        return NULL;
    return PyFloat_FromDouble(x->value);
}

PyDoc_STRVAR(floor_doc, "floor(context, leader, rules, steps, u, seconds) -> lower bound of the normal score");

static PyObject *py_floor(PyObject *self, PyObject *args)
{
    PyObject *capsule, *buffer;
    int leader, rules, steps, memory;
    double seconds;
    Py_buffer view;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiiiOd", &capsule, &leader, &rules, &steps, &buffer, &seconds))
        return NULL;
    loss_problem *x = problem_of(capsule);
    if (!x || PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
        return NULL;
    if ((size_t)view.len != (size_t)x->padded * 8 || leader < 0 || leader >= x->sites || steps < 1) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "wrong number of multipliers, or no such leader");
        return NULL;
    }
    begin(x, &limit, seconds);
    double value = losses_floor(x, leader, rules, steps, view.buf, &memory);
    PyBuffer_Release(&view);
    if (!end(x, &limit))
        return NULL;
    return memory ? PyErr_NoMemory() : PyFloat_FromDouble(value);
}

PyDoc_STRVAR(open_doc, "open(context, leader, successors, fixed, u, record): begin the tree of a leader; fixed: a site that\n"
                       "holds a replica, or -1; record: the most numbers of a certificate to keep");

static PyObject *py_open(PyObject *self, PyObject *args)
{
    PyObject *capsule, *successors, *buffer;
    int leader, fixed;
    Py_ssize_t record;
    Py_buffer group, view;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiOiOn", &capsule, &leader, &successors, &fixed, &buffer, &record))
        return NULL;
    loss_problem *x = problem_of(capsule);
    if (!x || PyObject_GetBuffer(successors, &group, PyBUF_C_CONTIGUOUS))
        return NULL;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS)) {
        PyBuffer_Release(&group);
        return NULL;
    }
    int fits = leader >= 0 && leader < x->sites && fixed >= -1 && fixed < x->sites && group.len == x->sites &&
               (size_t)view.len == (size_t)x->padded * 8;
    int ok = fits && losses_open(x, leader, group.buf, fixed, view.buf);
    PyBuffer_Release(&group);
    PyBuffer_Release(&view);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "sites, successors and multipliers do not fit");
    else if (!ok)
        PyErr_NoMemory();
    if (!ok)
        return NULL;
    x->tree.record.on = record > 0;
    x->tree.record.most = (size_t)record;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(run_doc, "run(context, nodes, seconds) -> outcome (tree_outcome of scenario.h)");

static PyObject *py_run(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    long nodes;
    double seconds;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "Old", &capsule, &nodes, &seconds))
        return NULL;
    loss_problem *x = problem_of(capsule);
    if (!x)
        return NULL;
    if (!x->opened) {
        PyErr_SetString(PyExc_ValueError, "no tree is open");
        return NULL;
    }
    begin(x, &limit, seconds);
    x->tree.pause = pause_call;
    x->tree.pause_self = &limit;
    tree_outcome outcome = tree_run(&x->tree, nodes);
    x->tree.pause = NULL;
    if (!end(x, &limit))
        return NULL;
    return outcome == TREE_NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong((long)outcome);
}

PyDoc_STRVAR(best_doc, "best(context) -> (value, normal score, leader, voters, replicas); leader -1: none");

static PyObject *tuple_of(const int *sites, int count)
{
    PyObject *out = PyTuple_New(count);
    for (int i = 0; out && i < count; i++) {
        PyObject *number = PyLong_FromLong(sites[i]);
        if (!number || PyTuple_SetItem(out, i, number)) {
            Py_DECREF(out);
            return NULL;
        }
    }
    return out;
}

static PyObject *py_best(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x = problem_of(capsule);
    if (!x)
        return NULL;
    PyObject *voters = tuple_of(x->voter, x->leader < 0 ? 0 : x->voter_count);
    PyObject *replicas = voters ? tuple_of(x->replicas, x->leader < 0 ? 0 : x->count) : NULL;
    if (!replicas) {
        Py_XDECREF(voters);
        return NULL;
    }
    return Py_BuildValue("(ddiNN)", x->value, x->normal, x->leader, voters, replicas);
}

PyDoc_STRVAR(state_doc, "state(context) -> (least bound of the open tree, the same of the normal score less its\n"
                        "threshold, nodes, bounds, leaves, evaluations)");

static PyObject *py_state(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x = problem_of(capsule);
    if (!x)
        return NULL;
    const scenario_tree *t = &x->tree;
    return Py_BuildValue("(ddllll)", x->opened ? tree_least(t) : BIG, x->opened ? tree_least_normal(t) : BIG, t->nodes,
                         t->bounds, t->leaves, x->evaluations);
}

PyDoc_STRVAR(record_doc, "record(context) -> bytes (float64) recorded of the open tree; None: it was too long");

static PyObject *py_record(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x = problem_of(capsule);
    if (!x)
        return NULL;
    const threshold_record *r = &x->tree.record;
    if (r->failed || !r->on)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)r->data, (Py_ssize_t)(r->length * sizeof(double)));
}

PyMethodDef losses_methods[] = {
    {"losses", py_losses, METH_VARARGS, losses_doc},
    {"start", py_start, METH_VARARGS, start_doc},
    {"descend", py_descend, METH_VARARGS, descend_doc},
    {"floor", py_floor, METH_VARARGS, floor_doc},
    {"open", py_open, METH_VARARGS, open_doc},
    {"run", py_run, METH_VARARGS, run_doc},
    {"best", py_best, METH_O, best_doc},
    {"state", py_state, METH_O, state_doc},
    {"record", py_record, METH_O, record_doc},
    {NULL, NULL, 0, NULL},
};
