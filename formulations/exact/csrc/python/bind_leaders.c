/* Binding of the calls that take leaders: bounds at their roots, and their trees. */
#include "context_capsule.h"
#include <string.h>

/* The context of a call, its columns taken and `*count` leaders counted, none below `least`; `multipliers`
   (NULL: no column) has a row of doubles, one per client. NULL with the exception set and nothing held. */
static context *take_call(PyObject *capsule, column *c, int columns, column *multipliers, int least, int *count)
{
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (multipliers)
        multipliers->row = (size_t)x->p.clients * 8;
    *count = take_arrays(c, columns, least, x->p.sites);
    return *count < 0 ? NULL : x;
}

/* End what begin_call began, release the columns, return `done`. */
static PyObject *finish_call(context *x, column *c, int columns, int done)
{
    int fine = end_call(x);
    release_arrays(c, columns);
    return fine ? PyLong_FromLong(done) : NULL;
}

const char bound_root_doc[] =
    "bound_root(context, leader, u, iterations, swaps, warm, seconds) -> bound\n\n"
    "Find a good set for the leader by swaps, then bound the leader without branching; u is overwritten.";

PyObject *py_bound_root(PyObject *self, PyObject *args)
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
    begin_call(x, seconds);
    double bound = bound_root(x, leader, view.buf, warm, iterations, swaps);
    int fine = end_call(x);
    PyBuffer_Release(&view);
    return fine ? PyFloat_FromDouble(bound) : NULL;
}

const char bound_roots_doc[] =
    "bound_roots(context, leaders, u, warm, bounds, ends, iterations, swaps, full, work, seconds) -> done\n\n"
    "Bound leaders (int32) in turn; u (leaders x clients), bounds (float64) and ends (int64) are\n"
    "overwritten, ends by the length of the record after each leader.";

PyObject *py_bound_roots(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int iterations, swaps, full;
    double work, seconds;
    enum { LEADER, U, WARM, BOUND, END, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1}, [WARM] = {.row = 1},
                         [BOUND] = {.row = 8, .write = 1}, [END] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOiiidd", &capsule, &c[LEADER].source, &c[U].source,
                          &c[WARM].source, &c[BOUND].source, &c[END].source, &iterations, &swaps,
                          &full, &work, &seconds))
        return NULL;
    int count;
    context *x = take_call(capsule, c, COLUMNS, &c[U], -1, &count);
    if (!x)
        return NULL;
    begin_call(x, seconds);
    int done = bound_roots(x, c[LEADER].view.buf, count, c[U].view.buf, c[WARM].view.buf, iterations,
                            swaps, full, work, c[BOUND].view.buf, c[END].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

const char quick_bounds_doc[] =
    "quick_bounds(context, leaders, u, bounds, work, seconds) -> done\n\n"
    "Bound leaders (int32, none -1) by their own multipliers u (leaders x clients), which are cut to\n"
    "what can count; bounds (float64) are overwritten.";

PyObject *py_quick_bounds(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double work, seconds;
    enum { LEADER, U, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [U] = {.write = 1},
                         [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOdd", &capsule, &c[LEADER].source, &c[U].source, &c[BOUND].source,
                          &work, &seconds))
        return NULL;
    int count;
    context *x = take_call(capsule, c, COLUMNS, &c[U], 0, &count);
    if (!x)
        return NULL;
    begin_call(x, seconds);
    int done = quick_bounds(x, c[LEADER].view.buf, count, c[U].view.buf, work, c[BOUND].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

const char bounds_from_memory_doc[] =
    "bounds_from_memory(context, leaders, bounds, swaps, seconds) -> done\n\n"
    "Bound leaders (int32) at the multipliers that each was last bounded with, and improve the\n"
    "incumbent by swaps; bounds (float64) of leaders that were never bounded stay as they are.";

PyObject *py_bounds_from_memory(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int swaps;
    double seconds;
    enum { LEADER, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOid", &capsule, &c[LEADER].source, &c[BOUND].source, &swaps, &seconds))
        return NULL;
    int count;
    context *x = take_call(capsule, c, COLUMNS, NULL, -1, &count);
    if (!x)
        return NULL;
    begin_call(x, seconds);
    int done = bounds_from_memory(x, c[LEADER].view.buf, count, swaps, c[BOUND].view.buf);
    return finish_call(x, c, COLUMNS, done);
}

const char open_trees_doc[] =
    "open_trees(context, leaders, u, bounds)\n\n"
    "Open the trees of leaders (int32), in place of all others, from their multipliers u (leaders x clients);\n"
    "bounds (float64) are those known so far.";

PyObject *py_open_trees(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    enum { LEADER, U, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &c[LEADER].source, &c[U].source, &c[BOUND].source))
        return NULL;
    int count;
    context *x = take_call(capsule, c, COLUMNS, &c[U], -1, &count);
    if (!x)
        return NULL;
    open_trees(x, c[LEADER].view.buf, c[U].view.buf, c[BOUND].view.buf, count);
    release_arrays(c, COLUMNS);
    if (x->control.out_of_memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

const char tree_bounds_doc[] =
    "tree_bounds(context, leaders, bounds)\n\n"
    "Overwrite bounds (float64) by what the open trees prove for leaders (int32); BIG: nothing was there.";

PyObject *py_tree_bounds(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    enum { LEADER, BOUND, COLUMNS };
    column c[COLUMNS] = {[LEADER] = {.row = sizeof(int)}, [BOUND] = {.row = 8, .write = 1}};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &c[LEADER].source, &c[BOUND].source))
        return NULL;
    int count;
    context *x = take_call(capsule, c, COLUMNS, NULL, -1, &count);
    if (!x)
        return NULL;
    leader_bounds(x, c[LEADER].view.buf, c[BOUND].view.buf, count);
    release_arrays(c, COLUMNS);
    Py_RETURN_NONE;
}

const char decisions_learned_doc[] =
    "decisions_learned(context, leader) -> float\n\n"
    "Decisions that the tree of a leader has learned from, and still knows; for tests.";

PyObject *py_decisions_learned(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int leader;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &leader))
        return NULL;
    context *x = context_of(capsule);
    if (x && (leader < -1 || leader >= x->p.sites)) {
        PyErr_SetString(PyExc_ValueError, "no such leader");
        return NULL;
    }
    const pseudo_costs *p = x ? &x->open.tree[memory_row(x, leader)].pseudo : NULL;
    return p ? PyFloat_FromDouble(p->tries_sum[IN] + p->tries_sum[OUT]) : NULL;
}
