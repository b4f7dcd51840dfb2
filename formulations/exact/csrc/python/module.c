/* Python binding of the kernel: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#include "context_capsule.h"
#include <stdlib.h>
#include <string.h>

static void capsule_free(PyObject *capsule)
{
    context *x = PyCapsule_GetPointer(capsule, NAME);
    if (x)
        context_free(x);
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
        out->label[k] = buffer_copied(labels, (size_t)sites * sizeof(int));
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
    if (!(p->rtt = buffer_copied(rtt, S * P * 8)) || !(p->rank = buffer_copied(rank, S * P * 4)) ||
        !(p->near_weight = buffer_copied(near, P * 8)) || !(p->relay_weight = buffer_copied(relay, P * 8)) ||
        !(p->site_rtt = buffer_copied(site_rtt, S * S * 8)) || !(p->direct = buffer_copied(direct, S * 8)) ||
        !(p->may_hold = buffer_copied(flags, S * 5)) ||
        (price != Py_None && !(p->price = buffer_copied(price, S * S * 8))) ||
        !read_levels(rcaps, &p->replica_caps, sites) || !read_levels(vcaps, &p->voter_caps, sites)) {
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

PyDoc_STRVAR(resize_doc, "resize(context, least, most): ask for other numbers of replicas");

static PyObject *resize_problem(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int least, most;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &least, &most))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (least < 1 || most < least || most > x->p.sites) {
        PyErr_SetString(PyExc_ValueError, "not a range of numbers of replicas");
        return NULL;
    }
    resize(x, least, most);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(tolerate_doc, "tolerate(context, gap): close nodes this near to the incumbent, relatively");

static PyObject *tolerate(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double gap;
    (void)self;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &gap))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (!(gap >= 0.0)) {
        PyErr_SetString(PyExc_ValueError, "not a relative gap");
        return NULL;
    }
    x->tolerance = gap;
    set_cutoff(x);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(frames_doc, "frames(context, cells, share): from how many cells on frames are sparse, below which share");

static PyObject *frames(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    double least, share;
    (void)self;
    if (!PyArg_ParseTuple(args, "Odd", &capsule, &least, &share))
        return NULL;
    context *x = context_of(capsule);
    if (!x)
        return NULL;
    if (!(least >= 0.0) || !(share >= 0.0 && share <= 1.0)) {
        PyErr_SetString(PyExc_ValueError, "not a number of cells, or not a share");
        return NULL;
    }
    x->sparse_from = least;
    x->sparse_share = share;
    Py_RETURN_NONE;
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
    for (Py_ssize_t i = 0; i < n; i++) {
        long site = PyLong_AsLong(PyTuple_GetItem(list, i));
        if (PyErr_Occurred())
            return NULL;
        if (site < 0 || site >= x->p.sites) {
            PyErr_SetString(PyExc_ValueError, "no such site");
            return NULL;
        }
        set[i] = (int)site;
    }
    x->current = leader;
    offer(x, score, set, (int)n);
    x->costed = -2; /* nothing else is of that leader */
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
    {"scans", scans, METH_VARARGS, scans_doc},
    {"glances", glances, METH_VARARGS, glances_doc},
    {"recall", recall, METH_VARARGS, recall_doc},
    {"span", span_of, METH_VARARGS, span_doc},
    {"resize", resize_problem, METH_VARARGS, resize_doc},
    {"tolerate", tolerate, METH_VARARGS, tolerate_doc},
    {"frames", frames, METH_VARARGS, frames_doc},
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
    if (!vectors_are_right()) {
        PyErr_SetString(PyExc_ImportError, "the kernel was miscompiled");
        return NULL;
    }
    return PyModule_Create(&module);
}
