/* Python binding of the search: limited API (abi3, CPython 3.11 and later), buffers in, sets out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "quorum.h"

#define STORE "formulations.quorumstore._kernel.store"
#define SEARCH "formulations.quorumstore._kernel.search"
#define MOST_SITES 32767
#define OUT "an index is out of range"

static void free_store(PyObject *capsule)
{
    store *s = PyCapsule_GetPointer(capsule, STORE);
    if (s)
        store_free(s);
}

/* The context of a search is the capsule of its store. */
static void free_search(PyObject *capsule)
{
    search *x = PyCapsule_GetPointer(capsule, SEARCH);
    PyObject *owner = PyCapsule_GetContext(capsule);
    if (x)
        search_free(x);
    Py_XDECREF(owner);
}

static int read_store(store *s, PyObject *args)
{
    PyObject *grid, *rank, *moved, *variant_of, *begin, *site, *variant, *region;
    int lost;
    if (!PyArg_ParseTuple(args, "(iiiiiiii)OOOOOOOO", &s->sites, &s->values, &s->variants,
                          &s->most_variants, &s->losses, &lost, &s->failures, &s->only_full, &grid,
                          &rank, &moved, &variant_of, &begin, &site, &variant, &region))
        return 0;
    if (s->sites < 1 || s->sites > MOST_SITES || s->values < 1 || s->variants < 0 ||
        s->most_variants < 0 || s->losses < 0 || lost < 0)
        return refused("sizes out of range");
    const size_t n = (size_t)s->sites, v = (size_t)s->variants, l = (size_t)s->losses;
    const size_t of = n * (size_t)s->most_variants, m = (size_t)lost;
    owned_memory *owned = &s->owned;
    if (!(s->grid = copy_buffer(owned, grid, (size_t)s->values * 8)) || !(s->rank = copy_buffer(owned, rank, n * n * 4)) ||
        !(s->moved = copy_buffer(owned, moved, v * n * 4)) || !(s->variant_of = copy_buffer(owned, variant_of, of * 4)) ||
        !(s->loss_begin = copy_buffer(owned, begin, (l + 1) * 4)) || !(s->loss_site = copy_buffer(owned, site, m * 4)) ||
        !(s->loss_variant = copy_buffer(owned, variant, m * 4)) || !(s->region = copy_buffer(owned, region, n * 4)))
        return 0;
    if (!in_range(s->rank, n * n, 0, s->values, OUT) || !in_range(s->moved, v * n, 0, s->values, OUT) ||
        !in_range(s->variant_of, of, -1, s->variants, OUT) || !in_range(s->loss_site, m, 0, s->sites, OUT) ||
        !in_range(s->loss_variant, m, -1, s->variants, OUT) || !in_range(s->region, n, 0, s->sites, OUT) ||
        !in_range(s->loss_begin, l + 1, 0, lost + 1, OUT))
        return 0;
    for (size_t k = 0; k < l; k++)
        if (s->loss_begin[k] > s->loss_begin[k + 1])
            return refused("losses overlap");
    return 1;
}

PyDoc_STRVAR(create_doc,
             "create(sizes, grid, rank, moved, variant_of, loss_begin, loss_site, loss_variant,\n"
             "       region) -> store");

static PyObject *create(PyObject *self, PyObject *args)
{
    (void)self;
    store *s = calloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    PyObject *capsule = read_store(s, args) ? PyCapsule_New(s, STORE, free_store) : NULL;
    if (!capsule)
        store_free(s);
    return capsule;
}

static int fitting_pairs(const store *s, const int32_t *shapes, size_t pairs)
{
    for (size_t k = 0; k < pairs; k++) {
        const int32_t *p = shapes + 4 * k;
        if (p[0] < 1 || p[0] > s->sites || p[1] < 1 || p[1] > p[0] || p[2] < 1 || p[2] > p[0] ||
            p[3] < 1)
            return refused("(N, R, W) or a regional cap is out of range");
    }
    return 1;
}

PyDoc_STRVAR(open_doc, "open(store, reads, writes, needed, contingency, moving, caps, pairs, shapes,\n"
                       "     ways, steps) -> search of one key");

static PyObject *open_search(PyObject *self, PyObject *args)
{
    PyObject *owner, *object[5], *capsule = NULL;
    void *part[5];
    owned_memory parts = {0};
    long long needed[2];
    int contingency, moving[4], caps[4], pairs;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO(LL)p(pppp)(iiii)iOOO", &owner, &object[0], &object[1],
                          &needed[0], &needed[1], &contingency, &moving[0], &moving[1], &moving[2],
                          &moving[3], &caps[0], &caps[1], &caps[2], &caps[3], &pairs, &object[2],
                          &object[3], &object[4]))
        return NULL;
    store *s = PyCapsule_GetPointer(owner, STORE);
    if (!s)
        return NULL;
    if (pairs < 1 || pairs > MOST_SITES * 64)
        return PyErr_Format(PyExc_ValueError, "no pairs, or too many");
    const size_t n = (size_t)s->sites, many = (size_t)pairs;
    size_t largest = 0;
    const int64_t wanted[2] = {needed[0], needed[1]};
    part[2] = copy_buffer(&parts, object[2], 4 * many * 4);
    if (!part[2] || !fitting_pairs(s, part[2], many))
        goto out;
    for (size_t k = 0; k < many; k++)
        if ((size_t)((int32_t *)part[2])[4 * k] > largest)
            largest = (size_t)((int32_t *)part[2])[4 * k];
    if (!(part[0] = copy_buffer(&parts, object[0], n * 8)) || !(part[1] = copy_buffer(&parts, object[1], n * 8)) ||
        !(part[3] = copy_buffer(&parts, object[3], many * 8)) ||
        !(part[4] = copy_buffer(&parts, object[4], 4 * many * (largest + 1) * 8)))
        goto out;
    const int64_t *counts[2] = {part[0], part[1]};
    search *x = search_new(s, counts, wanted, pairs, part[2], part[3], part[4]);
    if (!x) {
        PyErr_NoMemory();
        goto out;
    }
    x->contingency = contingency;
    memcpy(x->moving, moving, sizeof moving);
    memcpy(x->caps.normal, caps, sizeof x->caps.normal);
    memcpy(x->caps.worst, caps + 2, sizeof x->caps.worst);
    capsule = PyCapsule_New(x, SEARCH, free_search);
    if (!capsule) {
        search_free(x);
        goto out;
    }
    Py_INCREF(owner);
    PyCapsule_SetContext(capsule, owner);
out:
    release(&parts);
    return capsule;
}

static search *search_of(PyObject *capsule)
{
    search *x = PyCapsule_GetPointer(capsule, SEARCH);
    if (x && x->caller) {
        PyErr_SetString(PyExc_RuntimeError, "the search is running in another thread");
        return NULL;
    }
    return x;
}

/* For PyArg_ParseTuple. */
static int to_search(PyObject *capsule, void *out)
{
    return (*(search **)out = search_of(capsule)) != NULL;
}

static void enter(search *x, call_limit *limit)
{
    x->pause = pause_call;
    x->caller = limit;
    x->paused = 0;
    begin_call(limit, HUGE_VAL);
}

/* 0 when a signal handler raised or memory ran out (the exception is set). */
static int leave(search *x, call_limit *limit, int fine)
{
    fine = end_call(limit) && fine && !x->failed;
    x->caller = NULL;
    if (x->failed)
        PyErr_NoMemory();
    return fine;
}

static PyObject *answer(const search *x, int value, int pair, const int *set)
{
    const int size = pair < 0 ? 0 : x->pair[pair].size;
    PyObject *replicas = tuple_of(set, size);
    return replicas ? Py_BuildValue("(iiN)", value, pair, replicas) : NULL;
}

PyDoc_STRVAR(probe_doc, "probe(search, pair, rows): lower the incumbent by some sets of one size");

static PyObject *probe(PyObject *self, PyObject *args)
{
    search *x;
    PyObject *rows;
    Py_buffer view;
    int pair;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&iO", to_search, &x, &pair, &rows))
        return NULL;
    if (pair < 0 || pair >= x->pairs)
        return PyErr_Format(PyExc_ValueError, "no such pair");
    if (PyObject_GetBuffer(rows, &view, PyBUF_C_CONTIGUOUS))
        return NULL;
    const size_t size = (size_t)x->pair[pair].size, cells = (size_t)view.len / 4;
    const int32_t *sites = view.buf;
    int fine = (size_t)view.len % (4 * size) == 0 && in_range(sites, cells, 0, x->s->sites, OUT);
    for (size_t k = 1; fine && k < cells; k++)
        fine = k % size == 0 || sites[k - 1] < sites[k];
    if (fine)
        search_probe(x, pair, sites, cells / size);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "rows must be sets of N sites in increasing order");
    PyBuffer_Release(&view);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(find_doc, "find(search): lower the incumbent to the optimum of all pairs");

static PyObject *find(PyObject *self, PyObject *capsule)
{
    (void)self;
    search *x = search_of(capsule);
    if (!x)
        return NULL;
    call_limit limit;
    enter(x, &limit);
    int fine = search_find(x);
    if (!leave(x, &limit, fine))
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(incumbent_doc, "incumbent(search) -> (allowed grid values, pair, set)");

static PyObject *incumbent(PyObject *self, PyObject *capsule)
{
    (void)self;
    search *x = search_of(capsule);
    return x ? answer(x, x->best, x->best_pair, x->best_set) : NULL;
}

PyDoc_STRVAR(choose_doc, "choose(search) -> (allowed grid values, pair, set), first under the tie rule");

static PyObject *choose(PyObject *self, PyObject *capsule)
{
    (void)self;
    search *x = search_of(capsule);
    if (!x)
        return NULL;
    call_limit limit;
    enter(x, &limit);
    int fine = search_choose(x);
    return leave(x, &limit, fine) ? answer(x, x->best, x->tie_pair, x->tie_set) : NULL;
}

PyDoc_STRVAR(list_doc, "list(search, pair, first, limits) -> bytes: all sets within the limits whose\n"
                       "first site is `first`, uint16, in lexicographic order");

static PyObject *list(PyObject *self, PyObject *args)
{
    search *x;
    int pair, first, at[4];
    (void)self;
    if (!PyArg_ParseTuple(args, "O&ii(iiii)", to_search, &x, &pair, &first, &at[0], &at[1], &at[2],
                          &at[3]))
        return NULL;
    if (pair < 0 || pair >= x->pairs || first < 0 || first >= x->s->sites)
        return PyErr_Format(PyExc_ValueError, "no such pair or site");
    memcpy(x->limit.normal, at, sizeof x->limit.normal);
    memcpy(x->limit.worst, at + 2, sizeof x->limit.worst);
    call_limit limit;
    enter(x, &limit);
    int fine = search_list(x, pair, first);
    if (!leave(x, &limit, fine))
        return NULL;
    return PyBytes_FromStringAndSize(
        (const char *)x->rows,
        (Py_ssize_t)(x->row_count * (size_t)x->pair[pair].size * sizeof *x->rows));
}

static PyMethodDef methods[] = {
    {"create", create, METH_VARARGS, create_doc},
    {"open", open_search, METH_VARARGS, open_doc},
    {"probe", probe, METH_VARARGS, probe_doc},
    {"find", find, METH_O, find_doc},
    {"incumbent", incumbent, METH_O, incumbent_doc},
    {"choose", choose, METH_O, choose_doc},
    {"list", list, METH_VARARGS, list_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled search over replica sets.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModule_Create(&module);
}
