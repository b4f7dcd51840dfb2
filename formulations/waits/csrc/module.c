/* Python binding of the search over sets: limited API (abi3, CPython 3.11 and later). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "sets.h"

#define CAPSULE "formulations.waits._kernel.sets"
#define SECONDS_BETWEEN_SIGNALS 0.02

static void release(sets *x)
{
    void *held[] = {x->original, x->by_site, x->site_rtt, x->near_order, x->client_order, x->reads,
                    x->relays, x->weights, x->labels, x->may_vote, x->must_vote, x->must_hold, x->term,
                    x->rule, x->near_cost, x->distance, x->nearest, x->member, x->wait, x->cost,
                    x->fixed, x->price, x->slope, x->held, x->stay, x->nowhere, x->low, x->high, x->rows, x->lasts, x->one, x->prefix, x->first,
                    x->pairing, x->client_gain, x->reach, x->reached, x->base, x->change, x->later, x->trial, x->out, x->list,
                    x->paid, x->spent};
    for (int j = 0; x->rows && j < x->terms; j++)
        free(x->rows[j].value);
    for (int s = 0; x->pairing && s <= x->sites; s++)
        free(x->pairing[s].pair);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        free(held[i]);
    free(x);
}

static void free_sets(PyObject *capsule)
{
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (x)
        release(x);
}

/* Terms and rules out of rows of whole numbers; 0 with the exception set. */
static int read_rows(sets *x, PyObject *terms, PyObject *leaders, PyObject *rules, int labels)
{
    enum { TERM = 2 + 4 * MOST_CLAUSES, RULE = 6 };
    size_t count = (size_t)x->terms;
    int32_t *row = copy_buffer(terms, count * TERM * 4), *of = NULL;
    double *rounds = row ? copy_buffer(leaders, count * 8) : NULL;
    int good = rounds && (of = copy_buffer(rules, (size_t)x->rules * RULE * 4));
    x->term = calloc(count + 1, sizeof *x->term);
    x->rule = calloc((size_t)x->rules + 1, sizeof *x->rule);
    for (int j = 0; good && j < x->terms; j++) {
        term *t = x->term + j;
        const int32_t *r = row + (size_t)j * TERM;
        t->origin = r[0];
        t->clauses = r[1];
        t->leader = rounds[j];
        t->weight = x->weights + (size_t)j * (size_t)x->clients;
        t->all = sum_of(t->weight, x->clients);
        good = r[0] >= LEADER && r[0] <= CLIENT && r[1] >= 1 && r[1] <= MOST_CLAUSES;
        for (int k = 0; good && k < t->clauses; k++) {
            const int32_t *c = r + 2 + 4 * k;
            good = c[0] >= MAJORITY_INSIDE && c[0] <= x->size && c[1] >= VOTERS && c[1] <= REPLICAS &&
                   c[2] >= EVERYWHERE && c[2] <= OUTSIDE && c[3] >= 0 && c[3] < labels;
            t->clause[k] = (clause){c[0], c[1], c[2], x->labels + (size_t)c[3] * (size_t)x->sites};
        }
        x->has_near |= t->origin == NEAR;
        x->has_client |= t->origin == CLIENT;
    }
    for (int k = 0; good && k < x->rules; k++) {
        const int32_t *r = of + (size_t)k * RULE;
        good = r[3] >= 0 && r[3] < MOST_DOMAINS && r[5] >= 0 && r[5] < labels;
        x->rule[k] = (rule){r[0], r[1], r[2], r[3], r[4], x->labels + (size_t)r[5] * (size_t)x->sites};
    }
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a wait or a rule is out of range");
    free(row);
    free(rounds);
    free(of);
    return good;
}

static int in_range(const int32_t *value, size_t count, int below)
{
    for (size_t i = 0; i < count; i++)
        if (value[i] < 0 || value[i] >= below)
            return 0;
    return 1;
}

static int read_sets(sets *x, PyObject *args)
{
    PyObject *o[14];
    int labels;
    if (!PyArg_ParseTuple(args, "(iiiiiii)OOOOOOOOOOOOOO", &x->sites, &x->clients, &x->size, &x->voters,
                          &x->terms, &x->rules, &labels, &o[0], &o[1], &o[2], &o[3], &o[4], &o[5],
                          &o[6], &o[7], &o[8], &o[9], &o[10], &o[11], &o[12], &o[13]))
        return 0;
    if (x->sites < 1 || x->sites > 30000 || x->clients < 1 || x->size < 1 || x->size > x->sites ||
        x->size > MOST_MEMBERS || x->voters < 1 || x->voters > x->size || x->terms < 0 ||
        x->terms > 1000 || x->rules < 0 || x->rules > 1000 || labels < 1) {
        PyErr_SetString(PyExc_ValueError, "sizes out of range");
        return 0;
    }
    const size_t S = (size_t)x->sites, C = (size_t)x->clients, D = (size_t)x->size + 1;
    if (!(x->original = copy_buffer(o[0], S * 4)) || !(x->by_site = copy_buffer(o[1], S * C * 8)) ||
        !(x->site_rtt = copy_buffer(o[2], S * S * 8)) ||
        !(x->near_order = copy_buffer(o[3], S * S * 4)) ||
        !(x->client_order = copy_buffer(o[4], C * S * 4)) || !(x->reads = copy_buffer(o[5], C * 8)) ||
        !(x->relays = copy_buffer(o[6], C * 8)) ||
        !(x->weights = copy_buffer(o[7], (size_t)x->terms * C * 8)) ||
        !(x->labels = copy_buffer(o[8], (size_t)labels * S * 4)) ||
        !(x->may_vote = copy_buffer(o[9], 3 * S)) || !(x->paid = copy_buffer(o[13], S * 8)))
        return 0;
    for (size_t s = 0; s < S; s++)
        x->priced |= x->paid[s] > 0;
    x->must_vote = malloc(S);
    x->must_hold = malloc(S);
    x->near_cost = calloc(S * C, 8);
    x->distance = calloc(D * C, 8);
    x->nearest = calloc(D * C, 4);
    x->member = calloc(S, 1);
    x->wait = calloc(S * ((size_t)x->terms + 1), 8);
    x->cost = calloc(S * C, 8);
    x->fixed = calloc(C, 8);
    x->price = calloc(C, 8);
    x->slope = calloc(C, 8);
    x->stay = calloc(C, 8);
    x->nowhere = calloc(C, 8);
    x->low = calloc((C > MOST_MEMBERS ? C : MOST_MEMBERS) * ((size_t)x->terms + 1), 8);
    x->high = calloc((C > MOST_MEMBERS ? C : MOST_MEMBERS) * ((size_t)x->terms + 1), 8);
    x->rows = calloc((size_t)x->terms + 1, sizeof *x->rows);
    x->lasts = calloc(S, 8);
    x->held = calloc(S + MOST_MEMBERS, 4);
    if (!x->must_vote || !x->must_hold || !x->near_cost || !x->distance || !x->nearest || !x->member ||
        !x->wait || !x->cost || !x->fixed || !x->price || !x->slope || !x->held || !x->stay || !x->nowhere || !x->low ||
        !x->high || !x->rows || !x->lasts) {
        PyErr_NoMemory();
        return 0;
    }
    const size_t reach = S > MOST_PAIRED_SITES ? 1 : (C + S) * S;
    const size_t waits = (C + 1) * (size_t)x->terms + 1;
    x->one = calloc(waits, sizeof *x->one);
    x->prefix = calloc(D, sizeof *x->prefix);
    x->first = calloc(D * waits, sizeof *x->first);
    x->pairing = calloc(S + 1, sizeof *x->pairing);
    x->reach = calloc(reach, sizeof *x->reach);
    x->reached = calloc(reach, 8);
    x->spent = calloc(D, 8);
    x->base = calloc(2 * D, 8);
    x->change = calloc(D * S, 8);
    x->later = calloc(D * S, 8);
    x->trial = calloc(S, 8);
    x->out = calloc(D + 1, S);
    if (!x->one || !x->spent || !x->prefix || !x->first || !x->pairing || !x->reach || !x->reached || !x->base || !x->change || !x->later ||
        !x->trial || !x->out) {
        PyErr_NoMemory();
        return 0;
    }
    for (size_t c = 0; c < C; c++)
        x->nowhere[c] = INFINITY;
    for (size_t d = 0; d < D; d++)
        x->prefix[d].first = x->first + d * waits;
    memcpy(x->must_vote, x->may_vote + S, S);
    memcpy(x->must_hold, x->may_vote + 2 * S, S);
    x->leader = -1;
    if (!in_range(x->near_order, S * S, x->sites) || !in_range(x->client_order, C * S, x->sites) ||
        !in_range(x->labels, (size_t)labels * S, MOST_DOMAINS)) {
        PyErr_SetString(PyExc_ValueError, "an index is out of range");
        return 0;
    }
    begin_reach(x);
    return read_rows(x, o[10], o[11], o[12], labels);
}

PyDoc_STRVAR(create_doc, "create(sizes, original, by_site, site_rtt, near_order, client_order, reads,\n"
                         "       relays, weights, labels, roles, terms, leaders, rules, prices) -> sets");

static PyObject *create(PyObject *self, PyObject *args)
{
    (void)self;
    sets *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    PyObject *capsule = read_sets(x, args) ? PyCapsule_New(x, CAPSULE, free_sets) : NULL;
    if (!capsule)
        release(x);
    return capsule;
}

PyDoc_STRVAR(lead_doc, "lead(sets, leader, constant): begin a tree; leader -1: nobody leads");

static PyObject *lead(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int leader;
    double constant;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oid", &capsule, &leader, &constant))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x)
        return NULL;
    if (leader < -1 || leader >= x->sites) {
        PyErr_SetString(PyExc_ValueError, "no such leader");
        return NULL;
    }
    x->leader = leader;
    x->constant = constant;
    for (int s = 0; s < x->sites; s++) {
        double there = leader < 0 ? 0 : x->site_rtt[(long)s * x->sites + leader];
        for (int c = 0; c < x->clients; c++) {
            long at = (long)s * x->clients + c;
            x->near_cost[at] = x->reads[c] * x->by_site[at] + x->relays[c] * there;
        }
    }
    begin_waits(x);
    Py_RETURN_NONE;
}

/* The state of a prefix that Python hands over; -1 with the exception set, else its length. */
static int begin(sets *x, PyObject *source)
{
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS))
        return -1;
    const int32_t *site = view.buf;
    Py_ssize_t count = view.len / 4;
    int good = count <= x->size;
    memset(x->member, 0, (size_t)x->sites);
    memset(x->out, 0, (size_t)x->sites);
    for (Py_ssize_t i = 0; good && i < count; i++) {
        good = site[i] >= 0 && site[i] < x->sites && !x->member[site[i]];
        if (good)
            push(x, (int)i, site[i]);
    }
    PyBuffer_Release(&view);
    if (good)
        return (int)count;
    PyErr_SetString(PyExc_ValueError, "not a prefix");
    return -1;
}

PyDoc_STRVAR(bound_doc, "bound(sets, prefix, first) -> lower bound on what begins like that");

static PyObject *bound(PyObject *self, PyObject *args)
{
    PyObject *capsule, *prefix;
    int from, depth;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOi", &capsule, &prefix, &from))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, prefix)) < 0)
        return NULL;
    if (!allowed(x, depth, 0))
        return PyFloat_FromDouble(INFINITY);
    return PyFloat_FromDouble(prefix_bound(x, depth, from < 0 ? 0 : from));
}

typedef struct {
    double end, signals;
    int interrupted;
    sets *x;         /* whose list is handed over, to `found`; NULL: nothing is listed */
    PyObject *found;
} watch;

enum { LISTED_AT_ONCE = 8192 };

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Hand over the list, and take the value within which sets are listed from now on; 0 with the exception set. */
static int hand_over(sets *x, PyObject *found)
{
    if (x->no_memory) {
        PyErr_NoMemory();
        return 0;
    }
    Py_ssize_t bytes = (Py_ssize_t)(x->listed * (size_t)x->size * sizeof *x->list);
    x->listed = 0;
    PyObject *answer = PyObject_CallFunction(found, "y#", (const char *)x->list, bytes);
    double value = answer ? PyFloat_AsDouble(answer) : -1;
    Py_XDECREF(answer);
    if (PyErr_Occurred())
        return 0;
    x->value = value < x->value ? value : x->value;
    return 1;
}

static int stop(void *context)
{
    watch *w = context;
    double time = now();
    if (w->x && (w->x->no_memory || w->x->listed >= LISTED_AT_ONCE) && !hand_over(w->x, w->found))
        return w->interrupted = 1;
    if (time > w->signals) {
        w->signals = time + SECONDS_BETWEEN_SIGNALS;
        if (PyErr_CheckSignals())
            return w->interrupted = 1;
    }
    return time > w->end;
}

/* Search all sets that begin with the state; 0 when `stop` said so. */
static int search(sets *x, int depth, int from, watch *w)
{
    from = from < 0 ? 0 : from;
    for (int d = 0; d <= x->size; d++)
        x->base[2 * d + 1] = -INFINITY;
    if (x->size - depth >= 2)
        prefix_bound(x, depth, from);
    return !allowed(x, depth, 0) || search_below(x, depth, from, stop, w);
}

PyDoc_STRVAR(run_doc, "run(sets, prefix, first, seconds) -> whether the search below it was completed");

static PyObject *run(PyObject *self, PyObject *args)
{
    PyObject *capsule, *prefix;
    int from, depth;
    double seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOid", &capsule, &prefix, &from, &seconds))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, prefix)) < 0)
        return NULL;
    watch w = {now() + seconds, 0, 0, NULL, NULL};
    int done = search(x, depth, from, &w);
    if (w.interrupted)
        return NULL;
    return PyBool_FromLong(done);
}

PyDoc_STRVAR(each_doc, "each(sets, prefix, value, seconds, found) -> whether all sets were listed that begin like that and\n"
                       "are within a value: found(sets as bytes) returns the value from then on");

static PyObject *each(PyObject *self, PyObject *args)
{
    PyObject *capsule, *prefix, *found;
    int depth;
    double value, seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOddO", &capsule, &prefix, &value, &seconds, &found))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, prefix)) < 0)
        return NULL;
    watch w = {now() + seconds, 0, 0, x, found};
    const int had = x->found;
    const double before = x->value;
    x->found = x->listing = 1;
    x->value = value;
    x->listed = 0;
    x->no_memory = 0;
    int done = search(x, depth, 0, &w);
    if (done && (x->listed || x->no_memory))
        w.interrupted = !hand_over(x, found);
    x->listing = 0;
    x->found = had;
    x->value = before;
    if (w.interrupted)
        return NULL;
    return PyBool_FromLong(done);
}

PyDoc_STRVAR(improve_doc, "improve(sets, set): swap sites of a complete set as long as that is better");

static PyObject *improve(PyObject *self, PyObject *args)
{
    PyObject *capsule, *set;
    int depth;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &set))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, set)) < 0)
        return NULL;
    if (depth != x->size) {
        PyErr_SetString(PyExc_ValueError, "not a complete set");
        return NULL;
    }
    descend(x);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(best_doc, "best(sets) -> (value, leader, set, voters, nodes, leaves), or None");

static PyObject *best(PyObject *self, PyObject *capsule)
{
    (void)self;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x)
        return NULL;
    if (!x->found)
        return Py_BuildValue("diy#y#LL", INFINITY, -1, "", (Py_ssize_t)0, "", (Py_ssize_t)0, x->nodes,
                             x->leaves);
    return Py_BuildValue("diy#y#LL", x->value, x->best_leader, (const char *)x->best_set,
                         (Py_ssize_t)x->size * 4, (const char *)x->best_voters,
                         (Py_ssize_t)x->voters * 4, x->nodes, x->leaves);
}

PyDoc_STRVAR(limit_doc, "limit(sets, value): know a value that the best is not above");

static PyObject *limit(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double value;
    (void)self;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &value))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x)
        return NULL;
    if (!x->found || value < x->value) {
        x->value = value;
        x->best_leader = INT_MAX; /* any set that ties comes before it */
        x->found = 1;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(pairs_doc, "pairs(sets) -> (wait, wait, weight) of the present leader, as far as bounds have asked for them");

static PyObject *pairs(PyObject *self, PyObject *capsule)
{
    (void)self;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    PyObject *list = x ? PyList_New(0) : NULL;
    for (int k = 0; list && k < x->pairing[x->leader + 1].count; k++) {
        const wait_pair *p = x->pairing[x->leader + 1].pair + k;
        PyObject *one = p->weight > 0 ? Py_BuildValue("iid", p->a, p->b, p->weight) : NULL;
        if (p->weight > 0 && (!one || PyList_Append(list, one)))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"create", create, METH_VARARGS, create_doc}, {"lead", lead, METH_VARARGS, lead_doc},
    {"bound", bound, METH_VARARGS, bound_doc},    {"run", run, METH_VARARGS, run_doc},
    {"improve", improve, METH_VARARGS, improve_doc}, {"best", best, METH_O, best_doc},
    {"limit", limit, METH_VARARGS, limit_doc},    {"pairs", pairs, METH_O, pairs_doc},
    {"each", each, METH_VARARGS, each_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Search over replica sets for operations with waits.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void);
PyMODINIT_FUNC PyInit__kernel(void)
{
    if (client_loops_are_right())
        return PyModule_Create(&module);
    PyErr_SetString(PyExc_ImportError, "the kernel was miscompiled");
    return NULL;
}
