/* Lists of pairs of a client and a site, and the sums of a bound over them: the loops of
   placement/proof/costs/cheap_pairs.py, which says what is computed and why. Whole numbers of 64 bits; the
   caller sees to it that no sum leaves them (placement/proof/costs/rounded_costs.py). Shares no code with any
   search. Limited API (abi3, CPython 3.11 and later). */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CAPSULE "placement.proof._pair_sums.pairs"

/* Pairs sorted by site, those of a site by client: the ones of site j are start[j] to start[j + 1]. */
typedef struct {
    int32_t clients, sites;
    int64_t *start;
    int32_t *client;
    int32_t *place;  /* of the site in the client's order */
    int32_t *before; /* entries of beta before the pair; valid where entries are known */
    int64_t *cost;
    int entries_known;
} pairs;

static void release(pairs *x)
{
    if (!x)
        return;
    free(x->start);
    free(x->client);
    free(x->place);
    free(x->before);
    free(x->cost);
    free(x);
}

static void free_pairs(PyObject *capsule) { release(PyCapsule_GetPointer(capsule, CAPSULE)); }

/* Room for `count` pairs; NULL with the exception set. */
static pairs *allocate(int32_t clients, int32_t sites, int64_t count)
{
    const size_t n = (size_t)count + 1;
    pairs *x = calloc(1, sizeof *x);
    if (x) {
        x->clients = clients;
        x->sites = sites;
        x->start = calloc((size_t)sites + 1, sizeof *x->start);
        x->client = malloc(n * sizeof *x->client);
        x->place = malloc(n * sizeof *x->place);
        x->before = malloc(n * sizeof *x->before);
        x->cost = malloc(n * sizeof *x->cost);
        if (x->start && x->client && x->place && x->before && x->cost)
            return x;
    }
    release(x);
    PyErr_NoMemory();
    return NULL;
}

static PyObject *wrap(pairs *x)
{
    PyObject *capsule = PyCapsule_New(x, CAPSULE, free_pairs);
    if (!capsule)
        release(x);
    return capsule;
}

/* Contiguous arrays of exactly the bytes that are asked for, held for the time of a call. */
typedef struct {
    PyObject *source;
    size_t bytes;
    int write;
    Py_buffer view;
} array;

static void let_go(array *arrays, int held)
{
    while (held > 0)
        PyBuffer_Release(&arrays[--held].view);
}

/* 1, or 0 with the exception set and nothing held. */
static int hold(array *arrays, int count)
{
    for (int k = 0; k < count; k++) {
        array *a = arrays + k;
        if (PyObject_GetBuffer(a->source, &a->view, PyBUF_C_CONTIGUOUS | (a->write ? PyBUF_WRITABLE : 0))) {
            let_go(arrays, k);
            return 0;
        }
        if ((size_t)a->view.len != a->bytes) {
            PyErr_Format(PyExc_ValueError, "array %d has %zd bytes, expected %zd", k, a->view.len,
                         (Py_ssize_t)a->bytes);
            let_go(arrays, k + 1);
            return 0;
        }
    }
    return 1;
}

static int sizes_fit(int clients, int sites)
{
    if (clients >= 0 && sites >= 1 && (int64_t)clients * sites < INT64_MAX / 64)
        return 1;
    PyErr_SetString(PyExc_ValueError, "sizes out of range");
    return 0;
}

/* --- lists ----------------------------------------------------------------------------------- */

/* Costs of the pairs of one client: from a table, or near + relay * to_leader, rounded down. */
typedef struct {
    const int64_t *table;
    const double *near, *relay, *to_leader;
    const int32_t *scenario;
    double below;
    int32_t sites;
} cost_source;

/* List the sites of a client whose cost is below a limit, and the costs; return how many. */
static size_t cheap_sites(const cost_source *from, int32_t client, int64_t limit, double *sum, int32_t *site, int64_t *paid)
{
    const size_t sites = (size_t)from->sites, row = (size_t)client * sites;
    const double most = nextafter((double)limit, INFINITY);
    const double *to_leader = from->table ? NULL : from->to_leader + (size_t)from->scenario[client] * sites;
    const double *near = from->near, relay = to_leader ? from->relay[client] : 0.0;
    size_t found = 0, kept = 0;
    for (size_t j = 0; j < sites && from->table; j++)
        sum[j] = (double)from->table[row + j];
    for (size_t j = 0; j < sites && to_leader; j++)
        sum[j] = (relay * to_leader[j] + near[row + j]) * from->below;
    for (size_t j = 0; j < sites; j++) { /* doubles first, without a branch: whole numbers decide */
        site[found] = (int32_t)j;
        found += sum[j] < most;
    }
    for (size_t k = 0; k < found; k++) {
        site[kept] = site[k];
        paid[kept] = from->table ? from->table[row + (size_t)site[k]] : (int64_t)sum[site[k]];
        kept += paid[kept] < limit;
    }
    return kept;
}

static int32_t place_of(const void *rank, int width, size_t at)
{
    return width == 2 ? ((const int16_t *)rank)[at] : ((const int32_t *)rank)[at];
}

/* All pairs that cost less than a limit of the client, by site; NULL with the exception set. */
static pairs *list_pairs(const cost_source *from, const void *rank, int width, const int64_t *limit,
                         int32_t clients, int32_t sites)
{
    const size_t row = (size_t)sites;
    size_t room = 4 * row, found = 0;
    double *cost = malloc((row + 1) * sizeof *cost);
    int64_t *next = calloc(row + 1, sizeof *next);
    int64_t *end = malloc(((size_t)clients + 1) * sizeof *end); /* of the pairs of each client */
    int32_t *site = malloc(room * sizeof *site);
    int64_t *paid = malloc(room * sizeof *paid);
    pairs *x = NULL;
    if (!cost || !next || !end || !site || !paid) {
        PyErr_NoMemory();
        goto done;
    }
    for (int32_t c = 0; c < clients; c++) {
        if (found + row > room) {
            room *= 2;
            int32_t *more_sites = realloc(site, room * sizeof *site);
            site = more_sites ? more_sites : site;
            int64_t *more_paid = realloc(paid, room * sizeof *paid);
            paid = more_paid ? more_paid : paid;
            if (!more_sites || !more_paid) {
                PyErr_NoMemory();
                goto done;
            }
        }
        found += cheap_sites(from, c, limit[c], cost, site + found, paid + found);
        end[c] = (int64_t)found;
    }
    for (size_t p = 0; p < found; p++)
        next[site[p]]++;
    x = allocate(clients, sites, (int64_t)found);
    if (!x)
        goto done;
    for (int32_t j = 0; j < sites; j++) {
        x->start[j + 1] = x->start[j] + next[j];
        next[j] = x->start[j];
    }
    for (int64_t c = 0, p = 0; c < clients; c++)
        for (; p < end[c]; p++) {
            const int64_t to = next[site[p]]++;
            x->client[to] = (int32_t)c;
            x->cost[to] = paid[p];
            x->place[to] = place_of(rank, width, (size_t)c * row + (size_t)site[p]);
        }
done:
    free(cost);
    free(next);
    free(end);
    free(site);
    free(paid);
    return x;
}

static PyObject *list_table(PyObject *self, PyObject *args)
{
    array a[3] = {{0}};
    int clients, sites, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "(iii)OOO", &clients, &sites, &width, &a[0].source, &a[1].source,
                          &a[2].source) ||
        !sizes_fit(clients, sites))
        return NULL;
    const size_t cells = (size_t)clients * (size_t)sites;
    a[0].bytes = cells * (width == 2 ? 2 : 4);
    a[1].bytes = (size_t)clients * 8;
    a[2].bytes = cells * 8;
    if (!hold(a, 3))
        return NULL;
    const cost_source from = {.table = a[2].view.buf, .sites = sites};
    pairs *x = list_pairs(&from, a[0].view.buf, width, a[1].view.buf, clients, sites);
    let_go(a, 3);
    return x ? wrap(x) : NULL;
}

static PyObject *list_sums(PyObject *self, PyObject *args)
{
    array a[6] = {{0}};
    int clients, sites, width, scenarios;
    double below;
    (void)self;
    if (!PyArg_ParseTuple(args, "(iiii)dOOOOOO", &clients, &sites, &width, &scenarios, &below, &a[0].source,
                          &a[1].source, &a[2].source, &a[3].source, &a[4].source, &a[5].source) ||
        !sizes_fit(clients, sites) || !sizes_fit(scenarios, sites))
        return NULL;
    const size_t cells = (size_t)clients * (size_t)sites;
    a[0].bytes = cells * (width == 2 ? 2 : 4);
    a[1].bytes = (size_t)clients * 8;
    a[2].bytes = cells * 8;
    a[3].bytes = (size_t)clients * 8;
    a[4].bytes = (size_t)scenarios * (size_t)sites * 8;
    a[5].bytes = (size_t)clients * 4;
    if (!hold(a, 6))
        return NULL;
    const int32_t *scenario = a[5].view.buf;
    pairs *x = NULL;
    int32_t c = 0;
    while (c < clients && scenario[c] >= 0 && scenario[c] < scenarios)
        c++;
    if (c < clients)
        PyErr_SetString(PyExc_ValueError, "a scenario is out of range");
    else {
        const cost_source from = {.near = a[2].view.buf, .relay = a[3].view.buf, .to_leader = a[4].view.buf,
                                  .scenario = scenario, .below = below, .sites = sites};
        x = list_pairs(&from, a[0].view.buf, width, a[1].view.buf, clients, sites);
    }
    let_go(a, 6);
    return x ? wrap(x) : NULL;
}

/* The pairs of free sites before the client's first site of I. */
static PyObject *narrow(PyObject *self, PyObject *args)
{
    array a[2] = {{0}};
    PyObject *capsule;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &a[0].source, &a[1].source))
        return NULL;
    const pairs *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x)
        return NULL;
    a[0].bytes = (size_t)x->clients * 4;
    a[1].bytes = (size_t)x->sites;
    if (!hold(a, 2))
        return NULL;
    const int32_t *first = a[0].view.buf;
    const uint8_t *is_free = a[1].view.buf;
    int64_t kept = 0;
    for (int32_t j = 0; j < x->sites; j++)
        for (int64_t p = x->start[j]; is_free[j] && p < x->start[j + 1]; p++)
            kept += x->place[p] < first[x->client[p]];
    pairs *y = allocate(x->clients, x->sites, kept);
    if (y) {
        y->entries_known = x->entries_known;
        kept = 0;
        for (int32_t j = 0; j < x->sites; j++) {
            for (int64_t p = x->start[j]; is_free[j] && p < x->start[j + 1]; p++)
                if (x->place[p] < first[x->client[p]]) {
                    y->client[kept] = x->client[p];
                    y->place[kept] = x->place[p];
                    y->cost[kept] = x->cost[p];
                    y->before[kept++] = x->entries_known ? x->before[p] : 0;
                }
            y->start[j + 1] = kept;
        }
    }
    let_go(a, 2);
    return y ? wrap(y) : NULL;
}

/* --- sums ------------------------------------------------------------------------------------ */

/* Whether the entries of each client are some of all: 0 <= start[0] <= ... <= start[clients] = entries. */
static int entries_fit(const int64_t *start, int32_t clients, int64_t entries)
{
    int fits = start[0] == 0 && start[clients] == entries && entries < INT_MAX;
    for (int32_t c = 0; fits && c < clients; c++)
        fits = start[c] <= start[c + 1];
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "entries do not fit");
    return fits;
}

/* Count the entries of beta before each pair; `start` has the first entry of each client. */
static PyObject *place_entries(PyObject *self, PyObject *args)
{
    array a[2] = {{0}};
    PyObject *capsule;
    Py_ssize_t entries;
    (void)self;
    if (!PyArg_ParseTuple(args, "OnOO", &capsule, &entries, &a[0].source, &a[1].source))
        return NULL;
    pairs *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || entries < 0)
        return x ? PyErr_Format(PyExc_ValueError, "entries do not fit") : NULL;
    a[0].bytes = ((size_t)x->clients + 1) * 8;
    a[1].bytes = (size_t)entries * 4;
    if (!hold(a, 2))
        return NULL;
    const int64_t *start = a[0].view.buf;
    const int32_t *place = a[1].view.buf;
    const int fits = entries_fit(start, x->clients, entries);
    for (int64_t p = 0; fits && p < x->start[x->sites]; p++) {
        const int32_t c = x->client[p];
        int64_t low = start[c], high = start[c + 1];
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (place[middle] < x->place[p])
                low = middle + 1;
            else
                high = middle;
        }
        x->before[p] = (int32_t)low;
    }
    x->entries_known = fits;
    let_go(a, 2);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

/* The sum of min(0, cost + P - u) of every site, into `totals`; how many pairs count. */
static PyObject *savings(PyObject *self, PyObject *args)
{
    array a[6] = {{0}};
    PyObject *capsule;
    Py_ssize_t entries;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnOOO", &capsule, &a[0].source, &a[1].source, &a[2].source, &entries,
                          &a[3].source, &a[4].source, &a[5].source))
        return NULL;
    const pairs *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || entries < 0 || (entries && !x->entries_known))
        return x ? PyErr_Format(PyExc_ValueError, "entries are not placed") : NULL;
    a[0].bytes = (size_t)x->clients * 8;
    a[1].bytes = (size_t)x->clients * 4;
    a[2].bytes = (size_t)x->sites;
    a[3].bytes = ((size_t)x->clients + 1) * 8;
    a[4].bytes = ((size_t)entries + 1) * 8;
    a[5].bytes = (size_t)x->sites * 8;
    a[5].write = 1;
    if (!hold(a, 6))
        return NULL;
    const int64_t *u = a[0].view.buf, *start = a[3].view.buf, *prefix = a[4].view.buf;
    const int32_t *first = a[1].view.buf;
    const uint8_t *is_free = a[2].view.buf;
    int64_t *totals = a[5].view.buf, counted = 0;
    const int fits = entries_fit(start, x->clients, entries);
    for (int32_t j = 0; fits && j < x->sites; j++) {
        int64_t sum = 0;
        for (int64_t p = x->start[j]; is_free[j] && p < x->start[j + 1]; p++) {
            const int32_t c = x->client[p];
            const int counts = x->place[p] < first[c];
            int64_t saved = x->cost[p] - u[c];
            counted += counts;
            if (!counts || saved >= 0) /* P is not negative */
                continue;
            if (entries) {
                const int32_t before = x->before[p];
                saved += prefix[before <= entries ? before : entries] - prefix[start[c]];
            }
            sum += saved < 0 ? saved : 0;
        }
        totals[j] = sum;
    }
    let_go(a, 6);
    return fits ? PyLong_FromLongLong(counted) : NULL;
}

/* The sum of min(u, cost at the leader); `totals` gets the sum of min(0, cost - u) over the clients that have a site before the leader.
   As list_sums and savings for the state that holds the leader alone, without a list. */
static PyObject *start_sums(PyObject *self, PyObject *args)
{
    array a[6] = {{0}};
    int clients, sites, width, leader;
    double below;
    (void)self;
    if (!PyArg_ParseTuple(args, "(iiii)dOOOOOO", &clients, &sites, &width, &leader, &below, &a[0].source,
                          &a[1].source, &a[2].source, &a[3].source, &a[4].source, &a[5].source) ||
        !sizes_fit(clients, sites))
        return NULL;
    if (leader < 0 || leader >= sites)
        return PyErr_Format(PyExc_ValueError, "no such leader");
    const size_t row = (size_t)sites, cells = (size_t)clients * row;
    a[0].bytes = cells * (width == 2 ? 2 : 4);
    a[1].bytes = a[3].bytes = (size_t)clients * 8;
    a[2].bytes = cells * 8;
    a[4].bytes = a[5].bytes = row * 8;
    a[5].write = 1;
    double *sum = malloc(row * sizeof *sum);
    int32_t *site = malloc((row + 1) * sizeof *site), *scenario = calloc((size_t)clients + 1, sizeof *scenario);
    int64_t *paid = malloc((row + 1) * sizeof *paid), served = 0;
    const int ready = sum && site && scenario && paid;
    if (!ready)
        PyErr_NoMemory();
    const int held = ready && hold(a, 6);
    if (held) {
        const int64_t *u = a[1].view.buf;
        const double *near = a[2].view.buf, *relay = a[3].view.buf, *to_leader = a[4].view.buf;
        const cost_source from = {.near = near, .relay = relay, .to_leader = to_leader, .scenario = scenario,
                                  .below = below, .sites = sites};
        int64_t *totals = a[5].view.buf;
        memset(totals, 0, row * sizeof *totals);
        for (int32_t c = 0; c < clients; c++) {
            const size_t at = (size_t)c * row, own = at + (size_t)leader;
            const int64_t alone = (int64_t)((relay[c] * to_leader[leader] + near[own]) * below);
            const int32_t first = place_of(a[0].view.buf, width, own);
            const size_t found = cheap_sites(&from, c, u[c], sum, site, paid);
            served += u[c] < alone ? u[c] : alone;
            for (size_t k = 0; k < found; k++)
                if (place_of(a[0].view.buf, width, at + (size_t)site[k]) < first)
                    totals[site[k]] += paid[k] - u[c];
        }
        let_go(a, 6);
    }
    free(sum);
    free(site);
    free(scenario);
    free(paid);
    return held ? PyLong_FromLongLong(served) : NULL;
}

/* Add the detours of each site to `totals`: placement/proof/costs/detours.py. */
static PyObject *detours(PyObject *self, PyObject *args)
{
    array a[6] = {{0}};
    int rows, sites;
    (void)self;
    if (!PyArg_ParseTuple(args, "(ii)OOOOOO", &rows, &sites, &a[0].source, &a[1].source, &a[2].source,
                          &a[3].source, &a[4].source, &a[5].source) ||
        !sizes_fit(rows, sites))
        return NULL;
    const size_t row = (size_t)sites, cells = (size_t)rows * row;
    a[0].bytes = cells * 4;
    a[1].bytes = cells * 8;
    a[2].bytes = (size_t)rows * 4;
    a[3].bytes = (size_t)rows * 8;
    a[4].bytes = row;
    a[5].bytes = row * 8;
    a[5].write = 1;
    if (!hold(a, 6))
        return NULL;
    const int32_t *order = a[0].view.buf, *first = a[2].view.buf;
    const int64_t *cost = a[1].view.buf, *alone = a[3].view.buf;
    const uint8_t *is_free = a[4].view.buf;
    int64_t *totals = a[5].view.buf;
    int fits = 1;
    for (int32_t c = 0; fits && c < rows; c++) {
        const int32_t *site = order + (size_t)c * row;
        const int64_t *paid = cost + (size_t)c * row;
        int32_t owner = -1; /* the free site before, and M there */
        int64_t before = INT64_MAX;
        for (int32_t i = 0; fits && first[c] < sites && i < first[c]; i++) {
            fits = site[i] >= 0 && site[i] < sites;
            if (fits && is_free[site[i]]) {
                const int64_t least = paid[i] < before ? paid[i] : before;
                const int64_t own = least > alone[c] ? least : alone[c];
                if (owner >= 0)
                    totals[owner] += before - own;
                owner = site[i];
                before = own;
            }
        }
        if (owner >= 0)
            totals[owner] += before - alone[c];
    }
    let_go(a, 6);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "no such site");
    Py_RETURN_NONE;
}

static PyObject *count(PyObject *self, PyObject *capsule)
{
    (void)self;
    const pairs *x = PyCapsule_GetPointer(capsule, CAPSULE);
    return x ? PyLong_FromLongLong(x->start[x->sites]) : NULL;
}

static PyMethodDef methods[] = {
    {"list_table", list_table, METH_VARARGS, NULL},
    {"list_sums", list_sums, METH_VARARGS, NULL},
    {"narrow", narrow, METH_VARARGS, NULL},
    {"place_entries", place_entries, METH_VARARGS, NULL},
    {"savings", savings, METH_VARARGS, NULL},
    {"start_sums", start_sums, METH_VARARGS, NULL},
    {"detours", detours, METH_VARARGS, NULL},
    {"count", count, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_pair_sums", "Sums of a bound over pairs of a client and a site.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__pair_sums(void);
PyMODINIT_FUNC PyInit__pair_sums(void) { return PyModule_Create(&module); }
