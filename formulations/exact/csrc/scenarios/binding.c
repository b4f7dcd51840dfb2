/* Python module of the threshold search: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#include "buffers.h"

#include <limits.h>
#include <string.h>

#include "late.h"
#include "losses.h"
#include "read_families.h"

static int *read_ranks(owned_memory *owned, PyObject *orders, int clients, int sites, size_t padded)
{
    owned_memory scratch = {0};
    int *order = copy_buffer(&scratch, orders, (size_t)clients * (size_t)sites * sizeof(int));
    int *rank = order ? own(owned, (size_t)sites * padded + 1, sizeof(int)) : NULL;
    if (order && !rank)
        PyErr_NoMemory();
    int known = rank && in_range(order, (size_t)clients * (size_t)sites, 0, sites, "no such site in the order of a client");
    for (int c = 0; known && c < clients; c++)
        for (int k = 0; k < sites; k++)
            rank[(size_t)order[(size_t)c * (size_t)sites + (size_t)k] * padded + (size_t)c] = k;
    release(&scratch);
    return known ? rank : NULL;
}

/* ---- Python functions of questions about losses (../losses.h). ---- */

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

/* For PyArg_ParseTuple. */
static int to_problem(PyObject *capsule, void *out)
{
    return (*(loss_problem **)out = PyCapsule_GetPointer(capsule, NAME)) != NULL;
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
        !(m->moves = copy_buffer(&x->owned, moves, L)) || !(m->start = copy_buffer(&x->owned, start, (L + 1) * sizeof(int))))
        return 0;
    for (size_t l = 0; l < L; l++) {
        hits += m->moves[l] != 0;
        if (m->start[0] != 0 || m->start[l + 1] < m->start[l] || m->start[l + 1] > x->clients)
            hits = INT_MAX / 2;
    }
    if (hits > MOST_HITS)
        return refused("losses that move too many clients");
    size_t rows = (size_t)m->start[L];
    if (!(m->client = copy_buffer(&x->owned, client, rows * sizeof(int))) || !(m->rtt = copy_buffer(&x->owned, rtt, rows * S * 8)) ||
        !(m->order = copy_buffer(&x->owned, order, rows * S * sizeof(int))) || !(m->direct = copy_buffer(&x->owned, direct, L * S * 8)))
        return 0;
    for (size_t i = 0; i < rows * S; i++)
        if (m->order[i] < 0 || m->order[i] >= x->sites || m->client[i / S] < 0 || m->client[i / S] >= x->clients)
            return refused("no such site, or client, among those that move");
    return 1;
}

/* Rows of clients, RTTs between sites and weights of the waits by interval. */
static int read_intervals(PyObject *first_row, PyObject *hop, PyObject *rounds, loss_problem *x)
{
    size_t K = (size_t)x->intervals, S = (size_t)x->sites;
    if (!(x->first_row = copy_buffer(&x->owned, first_row, (K + 1) * sizeof(int))) || !(x->hop = copy_buffer(&x->owned, hop, K * S * S * 8)) ||
        !(x->rounds = copy_buffer(&x->owned, rounds, K * 8)))
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
    if (!PyArg_ParseTuple(args, "OOOO(OOO)OOOOOO!O!(iiiiiiiiii)d", &rtt, &order, &near, &relay, &first_row,
                          &hop, &rounds, &direct, &loss_of, &probability, &moved, &flags, &PyTuple_Type, &of_replicas, &PyTuple_Type,
                          &of_voters, &x->clients, &x->sites, &x->intervals, &x->losses, &x->replicas_min, &x->replicas_max, &x->voters, &x->quorum,
                          &x->leader_may_move, &x->goal, &x->ceiling))
        goto failed;
    if (x->clients < 0 || x->clients > INT_MAX - PAD || x->sites < 1 || x->intervals < 1 || x->losses < 0 || x->losses > x->sites ||
        x->replicas_max > MOST_REPLICAS || x->replicas_min < 1 || x->quorum < 1 || x->goal < 0 || x->goal > 2) {
        PyErr_SetString(PyExc_ValueError, "sizes are inconsistent");
        goto failed;
    }
    size_t S = (size_t)x->sites, C = (size_t)x->clients, P = (C + PAD - 1) / PAD * PAD;
    x->padded = (int)P;
    if (!(x->rtt = copy_transposed(&x->owned, rtt, C, S, P)) || !(x->rank = read_ranks(&x->owned, order, x->clients, x->sites, P)) ||
        !(x->near_weight = copy_padded(&x->owned, near, C, P)) || !(x->relay_weight = copy_padded(&x->owned, relay, C, P)) ||
        !read_intervals(first_row, hop, rounds, x) || !(x->direct = copy_buffer(&x->owned, direct, S * 8)) ||
        !(x->loss_of = copy_buffer(&x->owned, loss_of, S * sizeof(int))) ||
        !(x->probability = copy_buffer(&x->owned, probability, (size_t)x->losses * 8)) ||
        !read_moved(moved, x) || !(x->may_hold = copy_buffer(&x->owned, flags, S * 5)) || !read_families(&x->owned, of_replicas, &x->replica_rules, x->sites) ||
        !read_families(&x->owned, of_voters, &x->voter_rules, x->sites))
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

static PyObject *py_start(PyObject *self, PyObject *args)
{
    loss_problem *x;
    double value;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&d", to_problem, &x, &value))
        return NULL;
    x->value = value < BIG ? value : BIG;
    x->leader = -1;
    Py_RETURN_NONE;
}

static PyObject *py_descend(PyObject *self, PyObject *args)
{
    loss_problem *x;
    PyObject *list;
    int kicks, seed, n;
    double seconds;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O!iid", to_problem, &x, &PyTuple_Type, &list, &kicks, &seed, &seconds))
        return NULL;
    if ((n = read_tuple(list, x->replicas_max, x->sites, x->set + x->sites + 1)) < 0)
        return NULL;
    if (n < 1)
        return PyErr_Format(PyExc_ValueError, "no replicas");
    begin(x, &limit, seconds);
    losses_descend(x, x->set + x->sites + 1, n, kicks, (unsigned)seed);
    if (!end(x, &limit))
        return NULL;
    return PyFloat_FromDouble(x->value);
}

static PyObject *py_floor(PyObject *self, PyObject *args)
{
    loss_problem *x;
    PyObject *buffer;
    int leader, most, steps, memory;
    double seconds;
    Py_buffer view;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&iiiOd", to_problem, &x, &leader, &most, &steps, &buffer, &seconds))
        return NULL;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
        return NULL;
    if ((size_t)view.len != (size_t)x->padded * 8 || leader < 0 || leader >= x->sites || most < 1 || steps < 1) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "wrong number of multipliers, or no such leader");
        return NULL;
    }
    begin(x, &limit, seconds);
    double value = losses_floor(x, leader, most, steps, view.buf, &memory);
    PyBuffer_Release(&view);
    if (!end(x, &limit))
        return NULL;
    return memory ? PyErr_NoMemory() : PyFloat_FromDouble(value);
}

static PyObject *py_open(PyObject *self, PyObject *args)
{
    loss_problem *x;
    PyObject *successors, *buffer;
    int leader, fixed;
    Py_ssize_t record;
    Py_buffer group, view;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&iOiOn", to_problem, &x, &leader, &successors, &fixed, &buffer, &record))
        return NULL;
    if (PyObject_GetBuffer(successors, &group, PyBUF_C_CONTIGUOUS))
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

static PyObject *py_run(PyObject *self, PyObject *args)
{
    loss_problem *x;
    long nodes;
    double seconds;
    call_limit limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&ld", to_problem, &x, &nodes, &seconds))
        return NULL;
    if (!x->opened)
        return PyErr_Format(PyExc_ValueError, "no tree is open");
    begin(x, &limit, seconds);
    x->tree.pause = pause_call;
    x->tree.pause_self = &limit;
    tree_outcome outcome = tree_run(&x->tree, nodes);
    x->tree.pause = NULL;
    if (!end(x, &limit))
        return NULL;
    return outcome == TREE_NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong((long)outcome);
}

static PyObject *py_best(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x;
    if (!to_problem(capsule, &x))
        return NULL;
    PyObject *voters = tuple_of(x->voter, x->leader < 0 ? 0 : x->voter_count);
    PyObject *replicas = voters ? tuple_of(x->replicas, x->leader < 0 ? 0 : x->count) : NULL;
    if (!replicas) {
        Py_XDECREF(voters);
        return NULL;
    }
    return Py_BuildValue("(diNN)", x->value, x->leader, voters, replicas);
}

static PyObject *py_state(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x;
    if (!to_problem(capsule, &x))
        return NULL;
    const scenario_tree *t = &x->tree;
    return Py_BuildValue("(ddlll)", x->opened ? tree_least(t) : BIG, x->opened ? tree_least_normal(t) : BIG, t->nodes,
                         t->bounds, t->leaves);
}

static PyObject *py_record(PyObject *self, PyObject *capsule)
{
    (void)self;
    loss_problem *x;
    if (!to_problem(capsule, &x))
        return NULL;
    const event_stream *r = &x->tree.record;
    if (r->failed || !r->on)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)r->data, (Py_ssize_t)(r->length * sizeof(double)));
}

static PyMethodDef losses_methods[] = {
    {"losses", py_losses, METH_VARARGS, NULL},
    {"start", py_start, METH_VARARGS, NULL},
    {"descend", py_descend, METH_VARARGS, NULL},
    {"floor", py_floor, METH_VARARGS, NULL},
    {"open", py_open, METH_VARARGS, NULL},
    {"run", py_run, METH_VARARGS, NULL},
    {"best", py_best, METH_O, NULL},
    {"state", py_state, METH_O, NULL},
    {"record", py_record, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- Python functions of late operations: their voters' part, and the search of one leader (../late.h). ---- */

#define VOTERS "formulations.exact._scenarios.late_voters"

static void late_voters_free(late_voters *v)
{
    release(&v->owned);
    free(v);
}

static void free_voters(PyObject *capsule)
{
    late_voters *v = PyCapsule_GetPointer(capsule, VOTERS);
    if (v)
        late_voters_free(v);
}

static PyObject *py_late_voters(PyObject *self, PyObject *args)
{
    PyObject *order, *answered, *votes, *share, *asked;
    late_voters *v = calloc(1, sizeof *v);
    (void)self;
    if (!v)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOOOO(iiiiiiip)", &order, &answered, &votes, &share, &asked, &v->leader, &v->others,
                          &v->members, &v->least, &v->needed, &v->times, &v->kinds, &v->ordered))
        goto failed;
    if (v->others < 0 || v->members < 0 || v->least < 0 || v->least > v->members || v->needed < 0 ||
        v->needed > v->members || v->times < 1 || v->kinds < 0) {
        PyErr_SetString(PyExc_ValueError, "sizes of late voters that do not fit");
        goto failed;
    }
    size_t others = (size_t)v->others, times = (size_t)v->times, kinds = (size_t)v->kinds;
    if (!(v->site = copy_buffer(&v->owned, order, others * sizeof(int))) ||
        !(v->answered = copy_buffer(&v->owned, answered, others * times * sizeof(double))) ||
        !(v->votes = copy_buffer(&v->owned, votes, kinds * sizeof(int))) ||
        !(v->share = copy_buffer(&v->owned, share, kinds * sizeof(double))) ||
        !(v->asked = copy_buffer(&v->owned, asked, kinds * times * sizeof(double))))
        goto failed;
    if (!open_late_voters(v)) {
        PyErr_NoMemory();
        goto failed;
    }
    PyObject *capsule = PyCapsule_New(v, VOTERS, free_voters);
    if (capsule)
        return capsule;
failed:
    late_voters_free(v);
    return NULL;
}

static PyObject *py_least_late(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    const char *state;
    Py_ssize_t sites;
    int room;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oy#i", &capsule, &state, &sites, &room))
        return NULL;
    late_voters *v = PyCapsule_GetPointer(capsule, VOTERS);
    if (!v)
        return NULL;
    for (int i = 0; i < v->others; i++)
        if (v->site[i] < 0 || v->site[i] >= sites)
            return PyErr_Format(PyExc_ValueError, "a voter that is no site");
    return PyFloat_FromDouble(least_late(v, (const unsigned char *)state, room));
}

typedef struct {
    call_limit limit;
    PyObject *leaf;
} caller;

/* The caller's verdict on a set: True ends the search, a number is a new threshold of the last scenarios. */
static int ask_caller(late_problem *x, const int *replicas, int count)
{
    caller *c = x->caller;
    int found = 1;
    for (int j = 0; j < x->sites; j++)
        x->state[j] = 0;
    for (int i = 0; i < count; i++)
        x->state[replicas[i]] = 1;
    PyEval_RestoreThread(c->limit.thread);
    PyObject *answer = PyObject_CallFunction(c->leaf, "y#", (const char *)x->state, (Py_ssize_t)x->sites);
    if (!answer)
        c->limit.raised = 1;
    else if (answer == Py_None)
        found = 0;
    else if (answer != Py_True) {
        double threshold = PyFloat_AsDouble(answer);
        for (int s = x->scenarios - x->falling; s < x->scenarios; s++)
            x->scenario[s].threshold = threshold;
        c->limit.raised = PyErr_Occurred() != NULL;
        found = c->limit.raised;
    }
    Py_XDECREF(answer);
    c->limit.thread = PyEval_SaveThread();
    return found;
}

/* Read what voters cost: (leader or -1, constant, sites in order, values, their number, place, summed). */
static int take_voter_costs(PyObject *given, late_problem *x, voter_costs *of)
{
    PyObject *order, *values;
    if (!PyArg_ParseTuple(given, "idOOiip", &of->leader, &of->constant, &order, &values, &of->able, &of->place, &of->summed))
        return 0;
    if (of->able < 0 || of->able > x->sites || of->leader < -1 || of->leader >= x->sites)
        return refused("more voters than sites, or a leader that is none");
    return (of->site = copy_buffer(&x->owned, order, (size_t)of->able * sizeof(int))) &&
           (of->value = copy_buffer(&x->owned, values, (size_t)of->able * sizeof(double)));
}

/* Read what the voters of each who may lead cost. */
static int take_led(PyObject *list, late_problem *x, late_scenario *g)
{
    Py_ssize_t count = PyTuple_Size(list);
    if (count < 1 || count > x->sites)
        return refused("no leader, or more than sites");
    if (!(g->led = own(&x->owned, (size_t)count, sizeof *g->led))) {
        PyErr_NoMemory();
        return 0;
    }
    g->leds = (int)count;
    for (int i = 0; i < g->leds; i++)
        if (!take_voter_costs(PyTuple_GetItem(list, i), x, &g->led[i]))
            return 0;
    return 1;
}

/* Read late voters of each who may lead. */
static int take_voters(PyObject *list, late_problem *x, late_scenario *g)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 1 || count > x->sites)
        return refused("no leader, or more than sites");
    if (!(g->late = own(&x->owned, (size_t)count, sizeof *g->late))) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        late_voters *v = PyCapsule_GetPointer(PyList_GetItem(list, at), VOTERS);
        int known = v && v->leader >= 0 && v->leader < x->sites;
        for (int i = 0; known && i < v->others; i++)
            known = v->site[i] >= 0 && v->site[i] < x->sites;
        if (v && !known)
            PyErr_SetString(PyExc_ValueError, "a voter that is no site");
        if (!known)
            return 0;
        g->late[at] = v;
    }
    g->lates = (int)count;
    return 1;
}

/* Read the costs of a scenario; arrays that are the same object are copied once. */
static int take_costs(PyObject *costs, PyObject *scenarios, late_problem *x, int s)
{
    late_scenario *g = &x->given[s];
    for (int before = 0; before < s && costs != Py_None; before++)
        if (PyTuple_GetItem(PyTuple_GetItem(scenarios, before), 0) == costs) {
            g->cost = x->given[before].cost;
            return 1;
        }
    return costs == Py_None ||
           (g->cost = copy_transposed(&x->owned, costs, (size_t)x->clients, (size_t)x->sites, (size_t)x->padded)) != NULL;
}

/* Read a scenario from (costs by client and site or None, prices or None, constant, threshold, scale, part, lost or None, prices
 * of votes or None); part: a list of late voters, or a tuple of what voters cost, for each who may lead. */
static int take_scenario(PyObject *scenarios, late_problem *x, int s)
{
    PyObject *costs, *prices, *part, *lost, *votes;
    late_scenario *g = &x->given[s];
    if (!PyArg_ParseTuple(PyTuple_GetItem(scenarios, s), "OOdddOOO", &costs, &prices, &g->constant, &x->scenario[s].threshold,
                          &x->scenario[s].scale, &part, &lost, &votes) ||
        !take_costs(costs, scenarios, x, s))
        return 0;
    if (prices != Py_None && !(g->price = copy_buffer(&x->owned, prices, (size_t)x->sites * sizeof(double))))
        return 0;
    if (lost != Py_None && !(g->lost = copy_buffer(&x->owned, lost, (size_t)x->sites)))
        return 0;
    g->paid.place = -1;
    if (votes != Py_None && !take_voter_costs(votes, x, &g->paid))
        return 0;
    return PyList_Check(part) ? take_voters(part, x, g) : take_led(part, x, g);
}

static PyObject *py_search_thresholds(PyObject *self, PyObject *args)
{
    PyObject *orders, *scenarios, *may, *must, *rules, *result = NULL;
    late_problem x = {0};
    caller c = {0};
    double seconds;
    int root_steps, steps, good;
    Py_ssize_t record;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!OO(iiiiiiii)O!dnO", &orders, &PyTuple_Type, &scenarios, &may, &must, &x.sites, &x.clients,
                          &x.leader, &x.question.replicas_min, &x.question.replicas_max, &root_steps, &steps, &x.falling,
                          &PyTuple_Type, &rules, &seconds, &record, &c.leaf))
        return NULL;
    if (x.sites < 1 || x.clients < 0 || x.clients > INT_MAX - PAD || x.leader < 0 || x.leader >= x.sites ||
        PyTuple_Size(scenarios) < 1 || PyTuple_Size(scenarios) > INT_MAX || x.falling < 0 ||
        x.falling > PyTuple_Size(scenarios))
        return PyErr_Format(PyExc_ValueError, "sizes of a threshold search that do not fit");
    x.padded = (x.clients + PAD - 1) / PAD * PAD;
    good = (x.rank = read_ranks(&x.owned, orders, x.clients, x.sites, (size_t)x.padded)) &&
           (x.may = copy_buffer(&x.owned, may, (size_t)x.sites)) && (x.must = copy_buffer(&x.owned, must, (size_t)x.sites)) &&
           read_families(&x.owned, rules, &x.rules, x.sites);
    if (good) {
        x.scenarios = (int)PyTuple_Size(scenarios);
        x.given = own(&x.owned, (size_t)x.scenarios, sizeof *x.given);
        x.scenario = own(&x.owned, (size_t)x.scenarios, sizeof *x.scenario);
        if (!(good = !x.owned.failed))
            PyErr_NoMemory();
    }
    for (int s = 0; good && s < x.scenarios; s++)
        good = take_scenario(scenarios, &x, s);
    if (good && !late_open(&x)) {
        PyErr_NoMemory();
        good = 0;
    }
    if (good) {
        x.keeps = ask_caller;
        x.caller = &c;
        x.tree.root_steps = root_steps;
        x.tree.node_steps = steps;
        x.tree.record.on = record > 0;
        x.tree.record.most = (size_t)record;
        x.tree.pause = pause_call;
        x.tree.pause_self = &c.limit;
        begin_call(&c.limit, seconds);
        tree_outcome outcome = tree_run(&x.tree, LONG_MAX);
        const event_stream *r = &x.tree.record;
        if (end_call(&c.limit) && outcome == TREE_NO_MEMORY)
            PyErr_NoMemory();
        else if (!c.limit.raised)
            result = Py_BuildValue("(illly#)", (int)outcome, x.tree.nodes, x.tree.bounds, x.tree.leaves,
                                   r->failed ? NULL : (const char *)r->data, (Py_ssize_t)(r->length * sizeof(double)));
    }
    late_close(&x);
    return result;
}

static PyMethodDef late_methods[] = {
    {"late_voters", py_late_voters, METH_VARARGS, NULL},
    {"least_late", py_least_late, METH_VARARGS, NULL},
    {"search_thresholds", py_search_thresholds, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- Python module of the threshold search: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. ---- */

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_scenarios", "Compiled threshold search over scenarios.", 0, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scenarios(void)
{
    if (!client_loops_are_right())
        return PyErr_Format(PyExc_ImportError, "the kernel was miscompiled");
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddFunctions(made, losses_methods) || PyModule_AddFunctions(made, late_methods))) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
