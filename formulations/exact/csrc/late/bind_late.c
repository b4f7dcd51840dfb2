/* Python functions of late operations: their voters' term, and the search of one leader. */
#include "bind_late.h"
#include "late_voters.h"
#include "threshold_tree.h"
#include <string.h>
#include <time.h>

#define VOTERS "formulations.exact._kernel.late_voters"

static void free_voters(PyObject *capsule)
{
    late_voters *v = PyCapsule_GetPointer(capsule, VOTERS);
    if (v) {
        close_late_voters(v);
        free(v);
    }
}

const char late_voters_doc[] =
    "late_voters(order, answered, votes, share, asked, (others, members, needed, times, kinds, ordered))\n--\n\n"
    "Hold the distributions of the voters of one leader up to one deadline.";

PyObject *py_late_voters(PyObject *self, PyObject *args)
{
    PyObject *order, *answered, *votes, *share, *asked;
    late_voters *v = calloc(1, sizeof *v);
    (void)self;
    if (!v)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOOOO(iiiiip)", &order, &answered, &votes, &share, &asked, &v->others, &v->members,
                          &v->needed, &v->times, &v->kinds, &v->ordered)) {
        free(v);
        return NULL;
    }
    if (v->others < 0 || v->members < 0 || v->needed < 0 || v->needed > v->members || v->times < 1 || v->kinds < 0) {
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

const char least_late_doc[] = "least_late(late_voters, state, room)\n--\n\nLeast share that is late; see late_voters.h.";

PyObject *py_least_late(PyObject *self, PyObject *args)
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
    PyObject *leaf;
    PyThreadState *thread;
    double deadline;
    int raised, stopped, timed_out;
} caller;

static int ask_leaf(threshold_tree *t, const unsigned char *inside)
{
    caller *c = t->caller;
    int found = STOP;
    PyEval_RestoreThread(c->thread);
    PyObject *answer = PyObject_CallFunction(c->leaf, "y#", (const char *)inside, (Py_ssize_t)t->sites);
    if (!answer)
        c->raised = 1;
    else if (answer == Py_True)
        c->stopped = 1;
    else if (answer == Py_None)
        found = GO_ON;
    else {
        t->scenario[t->scenarios - 1].threshold = PyFloat_AsDouble(answer);
        c->raised = PyErr_Occurred() != NULL;
        found = c->raised ? STOP : GO_ON;
    }
    Py_XDECREF(answer);
    c->thread = PyEval_SaveThread();
    return found;
}

static int pause_now(threshold_tree *t)
{
    caller *c = t->caller;
    struct timespec now;
    PyEval_RestoreThread(c->thread);
    c->raised = PyErr_CheckSignals() != 0;
    c->thread = PyEval_SaveThread();
    timespec_get(&now, TIME_UTC);
    c->timed_out = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec > c->deadline;
    return c->raised || c->timed_out ? STOP : GO_ON;
}

static double late_term(void *term, const unsigned char *state, int room)
{
    return least_late(term, state, room);
}

static double *padded_rows(PyObject *source, size_t sites, size_t clients, size_t padded)
{
    double *given = copy_buffer(source, sites * clients * sizeof(double));
    double *rows = given ? calloc(sites * padded + 1, sizeof(double)) : NULL;
    for (size_t j = 0; rows && j < sites; j++)
        memcpy(rows + j * padded, given + j * clients, clients * sizeof(double));
    if (given && !rows)
        PyErr_NoMemory();
    free(given);
    return rows;
}

static int *padded_ranks(PyObject *source, size_t sites, size_t clients, size_t padded)
{
    int *given = copy_buffer(source, sites * clients * sizeof(int));
    int *rows = given ? calloc(sites * padded + 1, sizeof(int)) : NULL;
    for (size_t j = 0; rows && j < sites; j++)
        memcpy(rows + j * padded, given + j * clients, clients * sizeof(int));
    if (given && !rows)
        PyErr_NoMemory();
    free(given);
    return rows;
}

/* One scenario from (costs, constant, threshold, scale, term); term: a capsule, or (order, waits, place). */
static int take_scenario(PyObject *given, threshold_tree *t, scenario *x, quorum_term *q)
{
    PyObject *costs, *term, *order, *waits;
    if (!PyArg_ParseTuple(given, "OdddO", &costs, &x->constant, &x->threshold, &x->scale, &term))
        return 0;
    x->costs = padded_rows(costs, (size_t)t->sites, (size_t)t->clients, (size_t)t->padded);
    if (!x->costs)
        return 0;
    if (!PyTuple_Check(term)) {
        late_voters *v = PyCapsule_GetPointer(term, VOTERS);
        if (!v)
            return 0;
        x->voters = late_term;
        x->term = v;
        x->late = v;
        x->first = v->site;
        x->firsts = v->others;
        x->tried = v->members;
        return 1;
    }
    if (!PyArg_ParseTuple(term, "OOii", &order, &waits, &q->able, &q->place))
        return 0;
    q->site = copy_buffer(order, (size_t)q->able * sizeof(int));
    q->wait = q->site ? copy_buffer(waits, (size_t)q->able * sizeof(double)) : NULL;
    x->voters = least_quorum_wait;
    x->term = q;
    x->wait = q;
    x->first = q->site;
    x->firsts = q->able;
    x->tried = q->place + 1;
    return q->wait != NULL;
}

const char search_thresholds_doc[] =
    "search_thresholds(rank, scenarios, may, must, (sites, clients, leader, least, most, root_steps, steps), caps, "
    "seconds, leaf) -> (outcome, nodes, bounds, leaves)\n--\n\n"
    "Search the replica sets of a leader; outcome 0: closed, 1: stopped by a leaf, 2: out of time.";

PyObject *py_search_thresholds(PyObject *self, PyObject *args)
{
    enum { MOST = 4 };
    PyObject *rank, *scenarios, *may, *must, *caps, *result = NULL;
    threshold_tree t = {0};
    scenario scenario[MOST] = {0};
    quorum_term quorum[MOST] = {0};
    caller c = {0};
    double seconds;
    struct timespec now;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!OO(iiiiiii)O!dO", &rank, &PyTuple_Type, &scenarios, &may, &must, &t.sites, &t.clients,
                          &t.leader, &t.least, &t.most, &t.root_steps, &t.steps, &PyTuple_Type, &caps, &seconds, &c.leaf))
        return NULL;
    if (t.sites < 1 || t.clients < 0 || t.leader < 0 || t.leader >= t.sites || PyTuple_Size(scenarios) < 1 ||
        PyTuple_Size(scenarios) > MOST || PyTuple_Size(caps) > MAX_LEVELS) {
        PyErr_SetString(PyExc_ValueError, "sizes of a threshold search that do not fit");
        return NULL;
    }
    t.padded = (t.clients + PAD - 1) / PAD * PAD;
    t.scenario = scenario;
    int good = (t.rank = padded_ranks(rank, (size_t)t.sites, (size_t)t.clients, (size_t)t.padded)) != NULL;
    good = good && (t.may = copy_buffer(may, (size_t)t.sites)) && (t.must = copy_buffer(must, (size_t)t.sites));
    for (; good && t.scenarios < PyTuple_Size(scenarios); t.scenarios += good)
        good = take_scenario(PyTuple_GetItem(scenarios, t.scenarios), &t, &scenario[t.scenarios], &quorum[t.scenarios]);
    for (; good && t.caps.count < PyTuple_Size(caps); t.caps.count += good) {
        PyObject *labels;
        int g = t.caps.count;
        good = PyArg_ParseTuple(PyTuple_GetItem(caps, g), "Oii", &labels, &t.caps.cap[g], &t.caps.labels[g]) &&
               (t.caps.label[g] = copy_buffer(labels, (size_t)t.sites * sizeof(int)));
        for (int j = 0; good && j < t.sites; j++)
            if (t.caps.label[g][j] < 0 || t.caps.label[g][j] >= t.caps.labels[g]) {
                PyErr_SetString(PyExc_ValueError, "a label that is no domain");
                good = 0;
            }
    }
    if (good) {
        timespec_get(&now, TIME_UTC);
        c.deadline = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
        t.leaf = ask_leaf;
        t.pause = pause_now;
        t.caller = &c;
        c.thread = PyEval_SaveThread();
        int found = search_threshold_tree(&t);
        PyEval_RestoreThread(c.thread);
        if (t.out_of_memory)
            PyErr_NoMemory();
        else if (!c.raised)
            result = Py_BuildValue("(illl)", found == GO_ON ? 0 : c.stopped ? 1 : 2, t.nodes, t.bounds, t.leaves);
    }
    for (int s = 0; s < MOST; s++) {
        free(scenario[s].costs);
        free(quorum[s].site);
        free(quorum[s].wait);
    }
    for (int g = 0; g < MAX_LEVELS; g++)
        free(t.caps.label[g]);
    free(t.rank);
    free(t.may);
    free(t.must);
    return result;
}
