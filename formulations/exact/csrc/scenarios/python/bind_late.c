/* Python functions of late operations: their voters' part, and the search of one leader (../late.h). */
#include "methods.h"

#include <limits.h>
#include <string.h>

#include "binding.h"
#include "late.h"

#define VOTERS "formulations.exact._scenarios.late_voters"

static void free_voters(PyObject *capsule)
{
    late_voters *v = PyCapsule_GetPointer(capsule, VOTERS);
    if (v) {
        close_late_voters(v);
        free(v);
    }
}

PyDoc_STRVAR(late_voters_doc,
    "late_voters(order, answered, votes, share, asked,\n"
    "            (leader, others, members, least, needed, times, kinds, ordered))\n--\n\n"
    "Hold the distributions of the voters of one leader up to one deadline.");

static PyObject *py_late_voters(PyObject *self, PyObject *args)
{
    PyObject *order, *answered, *votes, *share, *asked;
    late_voters *v = calloc(1, sizeof *v);
    (void)self;
    if (!v)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOOOO(iiiiiiip)", &order, &answered, &votes, &share, &asked, &v->leader, &v->others,
                          &v->members, &v->least, &v->needed, &v->times, &v->kinds, &v->ordered)) {
        free(v);
        return NULL;
    }
    if (v->others < 0 || v->members < 0 || v->least < 0 || v->least > v->members || v->needed < 0 ||
        v->needed > v->members || v->times < 1 || v->kinds < 0) {
        PyErr_SetString(PyExc_ValueError, "sizes of late voters that do not fit");
        free(v);
        return NULL;
    }
    size_t others = (size_t)v->others, times = (size_t)v->times, kinds = (size_t)v->kinds;
    if (!(v->site = copy_buffer(order, others * sizeof(int))) ||
        !(v->answered = copy_buffer(answered, others * times * sizeof(double))) ||
        !(v->votes = copy_buffer(votes, kinds * sizeof(int))) ||
        !(v->share = copy_buffer(share, kinds * sizeof(double))) ||
        !(v->asked = copy_buffer(asked, kinds * times * sizeof(double)))) {
        close_late_voters(v);
        free(v);
        return NULL;
    }
    if (!open_late_voters(v)) {
        close_late_voters(v);
        free(v);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(v, VOTERS, free_voters);
    if (!capsule) {
        close_late_voters(v);
        free(v);
    }
    return capsule;
}

PyDoc_STRVAR(least_late_doc, "least_late(late_voters, state, room)\n--\n\nLeast share that is late; see late_voters.h.");

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
        if (v->site[i] < 0 || v->site[i] >= sites) {
            PyErr_SetString(PyExc_ValueError, "a voter that is no site");
            return NULL;
        }
    return PyFloat_FromDouble(least_late(v, (const unsigned char *)state, room));
}

typedef struct {
    call_limit limit;
    PyObject *leaf;
} caller;

/* The caller's verdict on a set: True ends the search, a number is a new threshold of the last scenario. */
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
        x->scenario[x->scenarios - 1].threshold = PyFloat_AsDouble(answer);
        c->limit.raised = PyErr_Occurred() != NULL;
        found = c->limit.raised;
    }
    Py_XDECREF(answer);
    c->limit.thread = PyEval_SaveThread();
    return found;
}

/* Read late voters, a tuple of those of every interval for each who may lead. */
static int take_voters(PyObject *list, late_problem *x, late_scenario *g)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 1 || count > x->sites) {
        PyErr_SetString(PyExc_ValueError, "no leader, or more than sites");
        return 0;
    }
    Py_ssize_t intervals = PyTuple_Size(PyList_GetItem(list, 0));
    if (intervals < 1 || intervals > INT_MAX / count) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "late voters of no interval");
        return 0;
    }
    g->intervals = (int)intervals;
    if (!(g->late = calloc((size_t)(count * intervals), sizeof *g->late))) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t at = 0; at < count * intervals; at++) {
        PyObject *one = PyTuple_GetItem(PyList_GetItem(list, at / intervals), at % intervals);
        late_voters *v = one ? PyCapsule_GetPointer(one, VOTERS) : NULL;
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
            g->borrowed = 1;
            return 1;
        }
    return costs == Py_None ||
           (g->cost = copy_transposed(costs, (size_t)x->clients, (size_t)x->sites, (size_t)x->padded)) != NULL;
}

/* Read the prices of votes, in the form of the waits of a quorum. */
static int take_votes(PyObject *votes, late_problem *x, late_scenario *g)
{
    PyObject *order, *prices;
    int last, summed;
    if (!PyArg_ParseTuple(votes, "OOiip", &order, &prices, &g->paid, &last, &summed))
        return 0;
    g->votes = last + 1;
    if (g->paid < 0 || g->paid > x->sites) {
        PyErr_SetString(PyExc_ValueError, "more voters than sites");
        return 0;
    }
    return (g->paid_site = copy_buffer(order, (size_t)g->paid * sizeof(int))) &&
           (g->vote = copy_buffer(prices, (size_t)g->paid * sizeof(double)));
}

/* Read a scenario from (costs by client and site or None, prices or None, constant, threshold, scale, part, lost or None, prices
 * of votes or None); part: a list of tuples of late voters, or (sites in order, waits, their number, place, summed). */
static int take_scenario(PyObject *scenarios, late_problem *x, int s)
{
    PyObject *costs, *prices, *part, *order, *waits, *lost, *votes;
    late_scenario *g = &x->given[s];
    if (!PyArg_ParseTuple(PyTuple_GetItem(scenarios, s), "OOdddOOO", &costs, &prices, &g->constant, &x->scenario[s].threshold,
                          &x->scenario[s].scale, &part, &lost, &votes) ||
        !take_costs(costs, scenarios, x, s))
        return 0;
    if (prices != Py_None && !(g->price = copy_buffer(prices, (size_t)x->sites * sizeof(double))))
        return 0;
    if (lost != Py_None && !(g->lost = copy_buffer(lost, (size_t)x->sites)))
        return 0;
    if (votes != Py_None && !take_votes(votes, x, g))
        return 0;
    if (PyList_Check(part))
        return take_voters(part, x, g);
    if (!PyArg_ParseTuple(part, "OOiip", &order, &waits, &g->able, &g->place, &g->summed))
        return 0;
    if (g->able < 0 || g->able > x->sites) {
        PyErr_SetString(PyExc_ValueError, "more voters than sites");
        return 0;
    }
    return (g->site = copy_buffer(order, (size_t)g->able * sizeof(int))) &&
           (g->wait = copy_buffer(waits, (size_t)g->able * sizeof(double)));
}

PyDoc_STRVAR(search_thresholds_doc,
             "search_thresholds(orders, scenarios, may, must, (sites, clients, leader, least, most, root_steps, steps),\n"
             "                  rules, seconds, record, leaf) -> (outcome, nodes, bounds, leaves, record)\n--\n\n"
             "Search the replica sets of a leader; outcome: tree_outcome of scenario.h. The record (float64) is None where\n"
             "it would be longer than `record` numbers.");

static PyObject *py_search_thresholds(PyObject *self, PyObject *args)
{
    PyObject *orders, *scenarios, *may, *must, *rules, *result = NULL;
    late_problem x = {0};
    caller c = {0};
    double seconds;
    int root_steps, steps, good;
    Py_ssize_t record;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!OO(iiiiiii)O!dnO", &orders, &PyTuple_Type, &scenarios, &may, &must, &x.sites, &x.clients,
                          &x.leader, &x.question.replicas_min, &x.question.replicas_max, &root_steps, &steps, &PyTuple_Type,
                          &rules, &seconds, &record, &c.leaf))
        return NULL;
    if (x.sites < 1 || x.clients < 0 || x.clients > INT_MAX - PAD || x.leader < 0 || x.leader >= x.sites ||
        PyTuple_Size(scenarios) < 1 || PyTuple_Size(scenarios) > INT_MAX) {
        PyErr_SetString(PyExc_ValueError, "sizes of a threshold search that do not fit");
        return NULL;
    }
    x.padded = (x.clients + PAD - 1) / PAD * PAD;
    good = (x.rank = read_ranks(orders, x.clients, x.sites, (size_t)x.padded)) &&
           (x.may = copy_buffer(may, (size_t)x.sites)) && (x.must = copy_buffer(must, (size_t)x.sites)) &&
           read_families(rules, &x.rules, x.sites);
    if (good) {
        x.scenarios = (int)PyTuple_Size(scenarios);
        x.given = calloc((size_t)x.scenarios, sizeof *x.given);
        x.scenario = calloc((size_t)x.scenarios, sizeof *x.scenario);
        if (!(good = x.given && x.scenario))
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
        const threshold_record *r = &x.tree.record;
        if (end_call(&c.limit) && outcome == TREE_NO_MEMORY)
            PyErr_NoMemory();
        else if (!c.limit.raised)
            result = Py_BuildValue("(illly#)", (int)outcome, x.tree.nodes, x.tree.bounds, x.tree.leaves,
                                   r->failed ? NULL : (const char *)r->data, (Py_ssize_t)(r->length * sizeof(double)));
    }
    late_close(&x);
    return result;
}

PyMethodDef late_methods[] = {
    {"late_voters", py_late_voters, METH_VARARGS, late_voters_doc},
    {"least_late", py_least_late, METH_VARARGS, least_late_doc},
    {"search_thresholds", py_search_thresholds, METH_VARARGS, search_thresholds_doc},
    {NULL, NULL, 0, NULL},
};
