/* Binding of the roots of problems with many clients, whose RTTs stay where Python has them. */
#include "context_capsule.h"
#include <limits.h>
#include <string.h>

#include "many_clients/client_groups.h"

enum { RTT, NEAR, RELAY, U, ROW, ARRAYS };

typedef struct {
    Py_buffer view[ARRAYS];
    int held;
    client_stream clients;
} stream_arrays;

static void release_stream(stream_arrays *a)
{
    while (a->held > 0)
        PyBuffer_Release(&a->view[--a->held]);
}

/* Take the arrays of a call; 0 with the exception set and nothing held. `rows` may be None. */
static int take_stream(const context *x, PyObject *const *source, int threads, stream_arrays *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < ARRAYS && !(i == ROW && source[ROW] == Py_None); i++, a->held++)
        if (PyObject_GetBuffer(source[i], &a->view[i], PyBUF_C_CONTIGUOUS | (i == U ? PyBUF_WRITABLE : 0))) {
            release_stream(a);
            return 0;
        }
    size_t clients = (size_t)a->view[U].len / 8, line = (size_t)x->p.sites * 8, rows = (size_t)a->view[RTT].len / line;
    int fits = clients <= INT_MAX && x->p.sites <= MOST_STREAMED_SITES && x->p.clients == 0 && threads >= 1;
    fits = fits && (size_t)a->view[RTT].len == rows * line && (size_t)a->view[NEAR].len == clients * 8 &&
           (size_t)a->view[RELAY].len == clients * 8 && (a->held == ARRAYS || rows == clients);
    if (fits && a->held == ARRAYS) {
        const long long *row = a->view[ROW].buf;
        fits = (size_t)a->view[ROW].len == clients * sizeof(long long);
        for (size_t c = 0; fits && c < clients; c++)
            fits = row[c] >= 0 && (size_t)row[c] < rows;
        a->clients.row = row;
    }
    if (!fits) {
        release_stream(a);
        PyErr_SetString(PyExc_ValueError, "the arrays of the clients do not fit the problem");
        return 0;
    }
    a->clients.rtt = a->view[RTT].buf;
    a->clients.near_weight = a->view[NEAR].buf;
    a->clients.relay_weight = a->view[RELAY].buf;
    a->clients.clients = (int)clients;
    a->clients.threads = threads;
    return 1;
}

/* The arguments that both calls begin with; 0 with the exception set. */
static context *stream_context(PyObject *capsule, int leader)
{
    context *x = context_of(capsule);
    if (x && (leader < -1 || leader >= x->p.sites)) {
        PyErr_SetString(PyExc_ValueError, "no such leader");
        return NULL;
    }
    return x;
}

const char stream_steps_doc[] =
    "stream_steps(context, (rtt, near, relay, u, rows), leader, iterations, threads, seconds) -> (bound, selected sites)\n\n"
    "Subgradient steps at the root of a leader over the rows of all clients; u is overwritten by the best multipliers.\n"
    "The context is that of the same problem without clients; rows (int64) or None: which rows of rtt the clients have.";

PyObject *py_stream_steps(PyObject *self, PyObject *args)
{
    PyObject *capsule, *source[ARRAYS];
    int leader, iterations, threads, set[MOST_STREAMED_SITES], size = 0;
    double seconds;
    stream_arrays a;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OOOOO)iiid", &capsule, &source[RTT], &source[NEAR], &source[RELAY], &source[U], &source[ROW],
                          &leader, &iterations, &threads, &seconds))
        return NULL;
    context *x = stream_context(capsule, leader);
    if (!x || !take_stream(x, source, threads, &a))
        return NULL;
    begin_call(x, seconds);
    double bound = improve_streamed(x, &a.clients, leader, a.view[U].buf, iterations, set, &size);
    int fine = end_call(x);
    release_stream(&a);
    PyObject *sites = fine ? PyTuple_New(size) : NULL;
    for (int i = 0; sites && i < size; i++)
        PyTuple_SetItem(sites, i, PyLong_FromLong(set[i]));
    return sites ? Py_BuildValue("(dN)", bound, sites) : NULL;
}

const char stream_fix_doc[] =
    "stream_fix(context, (rtt, near, relay, u, rows), leader, threads, seconds) -> (bound, states, closed, open)\n\n"
    "Fix sites at the root of a leader; states has a byte per site (0: free, 1: in, 2: out), closed is the least bound at\n"
    "which one was fixed, and open says whether anything is left.";

PyObject *py_stream_fix(PyObject *self, PyObject *args)
{
    PyObject *capsule, *source[ARRAYS];
    int leader, threads, open = 1;
    double seconds, closed = BIG;
    unsigned char states[MOST_STREAMED_SITES] = {0};
    stream_arrays a;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OOOOO)iid", &capsule, &source[RTT], &source[NEAR], &source[RELAY], &source[U], &source[ROW],
                          &leader, &threads, &seconds))
        return NULL;
    context *x = stream_context(capsule, leader);
    if (!x || !take_stream(x, source, threads, &a))
        return NULL;
    begin_call(x, seconds);
    double bound = fix_streamed(x, &a.clients, leader, a.view[U].buf, states, &closed, &open);
    int fine = end_call(x);
    release_stream(&a);
    return fine ? Py_BuildValue("(dy#di)", bound, (const char *)states, (Py_ssize_t)x->p.sites, closed, open) : NULL;
}

/* ---- groups of clients ---- */

static const char GROUPS_NAME[] = "formulations.exact._kernel.groups";

static void release_groups(PyObject *capsule)
{
    free_groups(PyCapsule_GetPointer(capsule, GROUPS_NAME));
}

/* The groups that a call has made; None when its time was over before, NULL when it was not fine. */
static PyObject *wrap_groups(client_groups *g, int fine)
{
    if (fine && !g)
        Py_RETURN_NONE;
    PyObject *capsule = fine ? PyCapsule_New(g, GROUPS_NAME, release_groups) : NULL;
    if (!capsule)
        free_groups(g);
    return capsule;
}

/* The states of the sites that a call names; 0 with the exception set. */
static int check_states(const context *x, const unsigned char *states, Py_ssize_t length)
{
    int fits = length == x->p.sites && length <= MOST_STREAMED_SITES && x->p.clients == 0;
    for (Py_ssize_t j = 0; fits && j < length; j++)
        fits = states[j] == FREE || states[j] == IN || states[j] == OUT;
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the states do not fit the problem");
    return fits;
}

/* The context and the groups of a call; NULL with the exception set. */
static context *take_groups(PyObject *const *source, int leader, client_groups **groups)
{
    context *x = stream_context(source[0], leader);
    *groups = x ? PyCapsule_GetPointer(source[1], GROUPS_NAME) : NULL;
    if (!*groups)
        return NULL;
    for (size_t k = 0; k < (*groups)->start[(*groups)->count]; k++)
        if ((*groups)->site[k] >= x->p.sites) {
            PyErr_SetString(PyExc_ValueError, "the groups are of another problem");
            return NULL;
        }
    return x;
}

const char stream_groups_doc[] =
    "stream_groups(context, (rtt, near, relay, u, rows), leader, states, threads, seconds) -> groups or None\n\n"
    "Add up clients who use the same replica whatever is decided below a state: a byte per site, 0 free, 1 in, 2 out.\n"
    "None after so many seconds.";

PyObject *py_stream_groups(PyObject *self, PyObject *args)
{
    PyObject *capsule, *source[ARRAYS];
    int leader, threads;
    const unsigned char *states;
    Py_ssize_t length;
    double seconds;
    stream_arrays a;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OOOOO)iy#id", &capsule, &source[RTT], &source[NEAR], &source[RELAY], &source[U], &source[ROW],
                          &leader, &states, &length, &threads, &seconds))
        return NULL;
    context *x = stream_context(capsule, leader);
    if (!x || !take_stream(x, source, threads, &a))
        return NULL;
    if (!check_states(x, states, length)) {
        release_stream(&a);
        return NULL;
    }
    begin_call(x, seconds);
    client_groups *g = group_clients(x, &a.clients, a.view[U].buf, leader, states);
    int fine = end_call(x);
    release_stream(&a);
    return wrap_groups(g, fine);
}

const char regroup_doc[] = "regroup(context, groups, leader, states, seconds) -> groups or None\n\n"
                           "The groups of a state below that of others; None after so many seconds.";

PyObject *py_regroup(PyObject *self, PyObject *args)
{
    PyObject *source[2];
    int leader;
    const unsigned char *states;
    Py_ssize_t length;
    double seconds;
    client_groups *from;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOiy#d", &source[0], &source[1], &leader, &states, &length, &seconds))
        return NULL;
    context *x = take_groups(source, leader, &from);
    if (!x || !check_states(x, states, length))
        return NULL;
    begin_call(x, seconds);
    client_groups *g = regroup_clients(x, from, leader, states);
    return wrap_groups(g, end_call(x));
}

const char bound_groups_doc[] =
    "bound_groups(context, groups, leader, states, (site, side, bound), steps, threads, seconds)\n"
    "-> (bound, states, closed, open, branching site, selected sites)\n\n"
    "Bound a state over its groups, whose multipliers become the best of so many steps, and fix sites. The triple is the\n"
    "decision that made the state (site -1: none), and the bound before it.";

PyObject *py_bound_groups(PyObject *self, PyObject *args)
{
    PyObject *source[2];
    int leader, steps, threads;
    const unsigned char *states;
    Py_ssize_t length;
    double seconds;
    unsigned char state[MOST_STREAMED_SITES];
    group_node node = {.state = state};
    client_groups *groups;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOiy#(iid)iid", &source[0], &source[1], &leader, &states, &length, &node.branched_site,
                          &node.branched_side, &node.parent_bound, &steps, &threads, &seconds))
        return NULL;
    context *x = take_groups(source, leader, &groups);
    if (!x || !check_states(x, states, length))
        return NULL;
    if (node.branched_site >= x->p.sites || (node.branched_side != IN && node.branched_side != OUT) || threads < 1) {
        PyErr_SetString(PyExc_ValueError, "no such decision");
        return NULL;
    }
    memcpy(state, states, (size_t)length);
    begin_call(x, seconds);
    double bound = bound_groups(x, groups, leader, steps, threads, &node);
    int fine = end_call(x);
    PyObject *sites = fine ? PyTuple_New(node.size) : NULL;
    for (int i = 0; sites && i < node.size; i++)
        PyTuple_SetItem(sites, i, PyLong_FromLong(node.set[i]));
    return sites ? Py_BuildValue("(dy#diiN)", bound, (const char *)state, length, node.closed, node.open, node.branching_site,
                                 sites)
                 : NULL;
}

const char groups_size_doc[] = "groups_size(groups) -> (groups, cells)";

PyObject *py_groups_size(PyObject *self, PyObject *capsule)
{
    client_groups *g = PyCapsule_GetPointer(capsule, GROUPS_NAME);
    (void)self;
    return g ? Py_BuildValue("(nn)", (Py_ssize_t)g->count, (Py_ssize_t)g->start[g->count]) : NULL;
}

const char groups_cost_doc[] = "groups_cost(context, groups, leader, chosen) -> float\n\n"
                               "Cost of the clients when these sites, a byte each, are replicas beside the certain ones.";

PyObject *py_groups_cost(PyObject *self, PyObject *args)
{
    PyObject *source[2];
    int leader;
    const unsigned char *chosen;
    Py_ssize_t length;
    double relay[MOST_STREAMED_SITES];
    client_groups *groups;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOiy#", &source[0], &source[1], &leader, &chosen, &length))
        return NULL;
    context *x = take_groups(source, leader, &groups);
    if (!x || !check_states(x, chosen, length))
        return NULL;
    relay_to_leader(x, leader, relay);
    return PyFloat_FromDouble(cost_of_groups(groups, chosen, relay));
}

const char groups_arrays_doc[] =
    "groups_arrays(groups) -> (start, site, near, relay, most, u)\n\n"
    "The cells of group i are start[i] to start[i + 1] (int64): site (a byte) and near; relay, most and u are by group.";

PyObject *py_groups_arrays(PyObject *self, PyObject *capsule)
{
    client_groups *g = PyCapsule_GetPointer(capsule, GROUPS_NAME);
    (void)self;
    if (!g)
        return NULL;
    Py_ssize_t n = g->count, cells = (Py_ssize_t)g->start[n], line = (Py_ssize_t)sizeof(double);
    return Py_BuildValue("(y#y#y#y#y#y#)", (const char *)g->start,
                         (n + 1) * (Py_ssize_t)sizeof(size_t), (const char *)g->site, cells,
                         (const char *)g->near, cells * line, (const char *)g->relay, n * line, (const char *)g->most, n * line,
                         (const char *)g->u, n * line);
}
