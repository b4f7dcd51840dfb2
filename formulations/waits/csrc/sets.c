/* Enumeration of replica sets for operations with waits, where every replica votes.

   Sites are in search order, so that a set is an increasing sequence of positions after those that every set of a tree
   holds. A tree has a fixed leader, or none where no operation needs one. A beginning of sets is dropped where its bound
   exceeds the best value: each wait asks the sites chosen so far and the nearest of those that may still come, and each
   client takes its cheapest nearest replica among them. Limited API (abi3, CPython 3.11 and later). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

#define CAPSULE "formulations.waits._kernel.sets"
#define ROUNDING 1e-11 /* of all that was added: what sums in doubles can be wrong by, and more */

enum { LEADER, NEAR, CLIENT }; /* who waits */
enum { EVERYWHERE, INSIDE, OUTSIDE };
enum { ALL = 0, MAJORITY_INSIDE = -1 }; /* needs that are no number */
enum { MOST_CLAUSES = 8, MOST_MEMBERS = 12, MOST_DOMAINS = 256, NODES_BETWEEN_LOOKS = 64 };

typedef struct {
    int need, scope;
    const int32_t *label; /* domain of each site */
} clause;

typedef struct {
    int origin, clauses;
    clause clause[MOST_CLAUSES];
    const double *weight; /* rounds by client */
    double all;           /* of all clients */
} term;

typedef struct {
    int cap, distinct, domain, least;
    const int32_t *label;
} rule;

typedef struct {
    owned_memory owned;
    int sites, clients, size, terms, rules;
    int32_t *original;                  /* site index of each position: ties */
    double *by_site, *site_rtt;         /* d(c, s), sites x clients; sites x sites, the row waits */
    int32_t *near_order;                /* positions by distance of each site */
    double *reads, *relays, *weights;
    int32_t *labels;
    term *term;
    rule *rule;
    /* of the tree */
    int leader; /* position, or -1 */
    double constant;
    double *near_cost; /* sites x clients: near and relay */
    /* of the set so far, by depth: nearest site of each client and how far it is; distances of each client, ascending */
    int chosen[MOST_MEMBERS + 1];
    uint8_t *member;
    double *distance, *ascending;
    int32_t *nearest;
    double *cost, *member_wait; /* scratch */
    double *zeros, *endless;    /* a value for each client */
    double *suffix;             /* by position: the `size` least distances of each client to sites from there on, ascending */
    /* best so far */
    double value;
    int best_leader, found;
    int32_t best_set[MOST_MEMBERS];
    long long nodes, leaves;
    /* when to stop */
    call_limit limit;
    int stopped; /* 1: the time is over, or an exception is set */
} sets;

static double cutoff(const sets *x) { return x->found ? x->value * (1 + 1e-12) : INFINITY; }

/* ---- waits -------------------------------------------------------------------------------- */

static int fits(const clause *c, int origin, int site)
{
    return c->scope == EVERYWHERE || (c->label[origin] == c->label[site]) == (c->scope == INSIDE);
}

/* Answers that a clause needs of `inside` members that fit, of `size` in all. */
static int answers(const clause *c, int size, int inside)
{
    if (c->need == ALL)
        return c->scope == EVERYWHERE ? size : inside;
    return c->need == MAJORITY_INSIDE ? inside / 2 + 1 : c->need;
}

/* Wait of a site in the complete set. */
static double exact_wait(const sets *x, const term *t, int origin)
{
    const double *rtt = x->site_rtt + (size_t)origin * (size_t)x->sites;
    double latest = 0, value[MOST_MEMBERS];
    for (int k = 0; k < t->clauses; k++) {
        int count = 0;
        for (int i = 0; i < x->size; i++) {
            if (!fits(t->clause + k, origin, x->chosen[i]))
                continue;
            double d = rtt[x->chosen[i]];
            int j = count++;
            for (; j > 0 && value[j - 1] > d; j--)
                value[j] = value[j - 1];
            value[j] = d;
        }
        int need = answers(t->clause + k, x->size, count);
        if (need > count)
            return INFINITY;
        double at = need ? value[need - 1] : 0;
        latest = at > latest ? at : latest;
    }
    return latest;
}

/* Least wait of a site that is a member when `more` sites from position `from` on are chosen. */
static double least_wait(const sets *x, const term *t, int origin, int depth, int from, int more)
{
    const int32_t *order = x->near_order + (size_t)origin * (size_t)x->sites;
    const double *rtt = x->site_rtt + (size_t)origin * (size_t)x->sites;
    double latest = 0;
    for (int k = 0; k < t->clauses; k++) {
        const clause *c = t->clause + k;
        int inside = 0, left = more;
        for (int i = 0; i < depth; i++)
            inside += fits(c, origin, x->chosen[i]);
        int need = answers(c, x->size, inside);
        if (!x->member[origin]) { /* it is one of those that come, and answers at once */
            left--;
            need -= fits(c, origin, origin);
        }
        double at = 0;
        for (int i = 0; need > 0 && i < x->sites; i++) {
            int s = order[i];
            if (!fits(c, origin, s) || (s == origin && !x->member[origin]))
                continue;
            if (!x->member[s]) {
                if (s < from || left == 0)
                    continue;
                left--;
            }
            need--;
            at = rtt[s];
        }
        if (need > 0)
            return INFINITY;
        latest = at > latest ? at : latest;
    }
    return latest;
}

/* Members that a client waits for: it lies in no domain, so that all clauses ask all members. */
static int number_needed(const sets *x, const term *t)
{
    int most = 0;
    for (int k = 0; k < t->clauses; k++) {
        int need = answers(t->clause + k, x->size, 0);
        most = need > most ? need : most;
    }
    return most;
}

/* Σ weight · least wait of each client for `need` members, when `more` sites from position `from` on are chosen: of the i
   nearest ones so far and the need − i nearest ones that may come, the farther. A site of both counts twice, which is less. */
static double least_client_waits(sets *x, const term *t, int need, int depth, int from, int more)
{
    const size_t C = (size_t)x->clients, row = C * (size_t)x->size;
    const double *chosen = x->ascending + (size_t)depth * MOST_MEMBERS * C, *coming = x->suffix + (size_t)from * row;
    double sum = 0;
    if (need > depth + more)
        return INFINITY;
    for (size_t c = 0; c < C; c++)
        x->cost[c] = INFINITY;
    for (int i = need > more ? need - more : 0; i <= depth && i <= need; i++) {
        const double *a = i ? chosen + (size_t)(i - 1) * C : x->zeros;
        const double *b = i < need ? coming + (size_t)(need - i - 1) * C : x->zeros;
        for (size_t c = 0; c < C; c++) {
            double far = a[c] > b[c] ? a[c] : b[c];
            x->cost[c] = far < x->cost[c] ? far : x->cost[c];
        }
    }
    for (size_t c = 0; c < C; c++)
        sum += t->weight[c] > 0 ? t->weight[c] * x->cost[c] : 0;
    return sum;
}

/* ---- sets --------------------------------------------------------------------------------- */

/* Make a depth's state out of the one before it and the site chosen there. */
static void push(sets *x, int depth, int site)
{
    const size_t C = (size_t)x->clients, row = MOST_MEMBERS * C;
    const double *d = x->by_site + (size_t)site * C, *far = x->distance + (size_t)depth * C;
    const double *old = x->ascending + (size_t)depth * row;
    double *near = x->distance + (size_t)(depth + 1) * C, *ascending = x->ascending + (size_t)(depth + 1) * row;
    const int32_t *was = x->nearest + (size_t)depth * C;
    int32_t *is = x->nearest + (size_t)(depth + 1) * C;
    for (size_t c = 0; c < C; c++) { /* ties go to the site that comes first in the instance */
        int nearer = depth == 0 || d[c] < far[c] || (d[c] == far[c] && x->original[site] < x->original[was[c]]);
        near[c] = nearer ? d[c] : far[c];
        is[c] = nearer ? site : was[c];
    }
    for (int k = 0; k <= depth; k++)
        for (size_t c = 0; c < C; c++) {
            double low = k ? old[(size_t)(k - 1) * C + c] : 0, high = k < depth ? old[(size_t)k * C + c] : INFINITY;
            double middle = d[c] > low ? d[c] : low;
            ascending[(size_t)k * C + c] = middle < high ? middle : high;
        }
    x->chosen[depth] = site;
    x->member[site] = 1;
}

/* 1 if the counts of domains allow the set so far: caps, and where it is complete everything. */
static int allowed(const sets *x, int depth, int complete)
{
    for (int k = 0; k < x->rules; k++) {
        const rule *r = x->rule + k;
        int held[MOST_DOMAINS] = {0}, distinct = 0;
        for (int i = 0; i < depth; i++) {
            int32_t label = r->label[x->chosen[i]];
            distinct += held[label] == 0;
            if (++held[label] > r->cap)
                return 0;
        }
        if (complete && (distinct < r->distinct || (r->least && held[r->domain] < r->least)))
            return 0;
    }
    return 1;
}

static int before(const sets *x, int leader, const int32_t *set)
{
    if (leader != x->best_leader)
        return leader < x->best_leader;
    for (int i = 0; i < x->size; i++)
        if (set[i] != x->best_set[i])
            return set[i] < x->best_set[i];
    return 0;
}

/* Keep the complete set where it is better than the best, or ties and comes first by leader and sites. */
static void offer(sets *x, double value)
{
    if (!(value <= cutoff(x)) || isinf(value))
        return;
    int32_t set[MOST_MEMBERS];
    for (int i = 0; i < x->size; i++) {
        int32_t s = x->original[x->chosen[i]];
        int j = i;
        for (; j > 0 && set[j - 1] > s; j--)
            set[j] = set[j - 1];
        set[j] = s;
    }
    int leader = x->leader >= 0 ? x->original[x->leader] : set[0];
    if (!x->found || value < x->value * (1 - 1e-12) || before(x, leader, set)) {
        memcpy(x->best_set, set, sizeof set);
        x->best_leader = leader;
    }
    x->value = x->found && x->value < value ? x->value : value;
    x->found = 1;
}

/* Evaluate the complete set, its cheapest parts first. */
static void leaf(sets *x)
{
    const size_t C = (size_t)x->clients;
    const int32_t *nearest = x->nearest + (size_t)x->size * C;
    const double *ascending = x->ascending + (size_t)x->size * MOST_MEMBERS * C;
    double sum = x->constant;
    x->leaves++;
    for (size_t c = 0; c < C; c++)
        sum += x->near_cost[(size_t)nearest[c] * C + c];
    for (int j = 0; x->leader >= 0 && j < x->terms && sum <= cutoff(x); j++)
        if (x->term[j].origin == LEADER)
            sum += x->term[j].all * exact_wait(x, x->term + j, x->leader);
    for (int j = 0; j < x->terms && sum <= cutoff(x); j++) {
        const term *t = x->term + j;
        if (t->origin == CLIENT) {
            int need = number_needed(x, t);
            if (need > x->size)
                return;
            for (size_t c = 0; need && c < C; c++)
                sum += t->weight[c] * ascending[(size_t)(need - 1) * C + c];
        } else if (t->origin == NEAR) {
            for (int i = 0; i < x->size; i++)
                x->member_wait[x->chosen[i]] = 0;
            for (size_t c = 0; c < C; c++)
                x->member_wait[nearest[c]] += t->weight[c];
            for (int i = 0; i < x->size; i++)
                if (x->member_wait[x->chosen[i]] > 0)
                    sum += x->member_wait[x->chosen[i]] * exact_wait(x, t, x->chosen[i]);
        }
    }
    offer(x, sum);
}

/* Lower bound on the value of all sets that complete the first `depth` sites from position `from` on. */
static double prefix_bound(sets *x, int depth, int from)
{
    const int more = x->size - depth;
    const size_t C = (size_t)x->clients;
    const double *distance = x->distance + (size_t)depth * C, most = cutoff(x);
    double sum = x->constant;
    if (x->sites - from < more)
        return INFINITY;
    for (int j = 0; j < x->terms && sum <= most; j++) {
        const term *t = x->term + j;
        if (t->origin == LEADER && x->leader >= 0)
            sum += t->all * least_wait(x, t, x->leader, depth, from, more);
        int need = t->origin == CLIENT ? number_needed(x, t) : 0;
        if (need)
            sum += least_client_waits(x, t, need, depth, from, more);
    }
    if (sum > most)
        return sum - ROUNDING * sum;
    for (size_t c = 0; c < C; c++)
        x->cost[c] = INFINITY;
    for (int s = 0; s < x->sites; s++) { /* each client takes its cheapest site, none beyond the nearest one chosen */
        if (!x->member[s] && s < from)
            continue;
        const double *d = x->by_site + (size_t)s * C, *near = x->near_cost + (size_t)s * C;
        double wait[MOST_CLAUSES];
        const double *weight[MOST_CLAUSES];
        int waits = 0;
        for (int j = 0; j < x->terms && waits < MOST_CLAUSES; j++) /* those beyond are left out: still a bound */
            if (x->term[j].origin == NEAR) {
                weight[waits] = x->term[j].weight;
                wait[waits++] = least_wait(x, x->term + j, s, depth, from, more);
            }
        for (size_t c = 0; c < C; c++) {
            if (depth && d[c] > distance[c])
                continue;
            double cost = near[c];
            for (int k = 0; k < waits; k++)
                cost += weight[k][c] > 0 ? weight[k][c] * wait[k] : 0;
            x->cost[c] = cost < x->cost[c] ? cost : x->cost[c];
        }
    }
    for (size_t c = 0; c < C; c++)
        sum += x->cost[c];
    return isinf(sum) ? sum : sum - ROUNDING * sum;
}

/* Evaluate all sets that lack one site. Near costs and waits of leader and clients, which the set without that site leaves
   little to compute for, drop most of them. */
static void last_sites(sets *x, int depth, int from)
{
    const size_t C = (size_t)x->clients;
    const double *far = x->distance + (size_t)depth * C, *old = x->ascending + (size_t)depth * MOST_MEMBERS * C;
    const int32_t *was = x->nearest + (size_t)depth * C;
    for (size_t c = 0; depth && c < C; c++)
        x->cost[c] = x->near_cost[(size_t)was[c] * C + c];
    for (int s = from; s < x->sites; s++) {
        if (x->member[s])
            continue;
        const double *d = x->by_site + (size_t)s * C, *near = x->near_cost + (size_t)s * C;
        const double most = cutoff(x) * (1 + ROUNDING);
        double sum = x->constant;
        x->chosen[depth] = s;
        if (!allowed(x, x->size, 1))
            continue;
        for (size_t c = 0; depth && c < C; c++) {
            double least = near[c] < x->cost[c] ? near[c] : x->cost[c];
            sum += d[c] < far[c] ? near[c] : d[c] > far[c] ? x->cost[c] : least;
        }
        for (int j = 0; depth && j < x->terms && sum <= most; j++) {
            const term *t = x->term + j;
            if (t->origin == LEADER && x->leader >= 0)
                sum += t->all * exact_wait(x, t, x->leader);
            int need = t->origin == CLIENT ? number_needed(x, t) : 0;
            if (need < 1 || need > x->size)
                continue;
            const double *below = need > 1 ? old + (size_t)(need - 2) * C : x->zeros;
            const double *above = need < x->size ? old + (size_t)(need - 1) * C : x->endless;
            double waits = 0;
            for (size_t c = 0; c < C; c++) {
                double at = d[c] > below[c] ? d[c] : below[c];
                waits += t->weight[c] * (at < above[c] ? at : above[c]);
            }
            sum += waits;
        }
        if (sum > most) {
            x->leaves++;
            continue;
        }
        push(x, depth, s);
        leaf(x);
        x->member[s] = 0;
    }
}

static void search_below(sets *x, int depth, int from)
{
    const int more = x->size - depth;
    if (more == 0) {
        if (allowed(x, depth, 1))
            leaf(x);
        return;
    }
    if (++x->nodes % NODES_BETWEEN_LOOKS == 0 && (x->stopped = pause_call(&x->limit)))
        return;
    if (more == 1) {
        last_sites(x, depth, from);
        return;
    }
    for (int s = from; !x->stopped && s <= x->sites - more; s++) {
        if (x->member[s])
            continue;
        push(x, depth, s);
        if (allowed(x, depth + 1, 0) && (more < 3 || prefix_bound(x, depth + 1, s + 1) <= cutoff(x)))
            search_below(x, depth + 1, s + 1);
        x->member[s] = 0;
    }
}

/* ---- binding ------------------------------------------------------------------------------ */

static void sets_free(sets *x)
{
    release(&x->owned);
    free(x);
}

static void free_sets(PyObject *capsule)
{
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (x)
        sets_free(x);
}

/* Terms and rules out of rows of whole numbers; 0 with the exception set. */
static int read_rows(sets *x, PyObject *terms, PyObject *rules, int labels)
{
    enum { TERM = 2 + 3 * MOST_CLAUSES, RULE = 5 };
    const size_t S = (size_t)x->sites, C = (size_t)x->clients;
    owned_memory rows = {0};
    int32_t *row = copy_buffer(&rows, terms, (size_t)x->terms * TERM * 4);
    int32_t *of = row ? copy_buffer(&rows, rules, (size_t)x->rules * RULE * 4) : NULL;
    int good = of != NULL;
    for (int j = 0; good && j < x->terms; j++) {
        term *t = x->term + j;
        const int32_t *r = row + (size_t)j * TERM;
        good = r[0] >= LEADER && r[0] <= CLIENT && r[1] >= 1 && r[1] <= MOST_CLAUSES;
        t->origin = r[0];
        t->clauses = r[1];
        t->weight = x->weights + (size_t)j * C;
        for (size_t c = 0; c < C; c++)
            t->all += t->weight[c];
        for (int k = 0; good && k < t->clauses; k++) {
            const int32_t *c = r + 2 + 3 * k;
            good = c[0] >= MAJORITY_INSIDE && c[1] >= EVERYWHERE && c[1] <= OUTSIDE && c[2] >= 0 && c[2] < labels;
            if (good)
                t->clause[k] = (clause){c[0], c[1], x->labels + (size_t)c[2] * S};
        }
    }
    for (int k = 0; good && k < x->rules; k++) {
        const int32_t *r = of + (size_t)k * RULE;
        good = r[2] >= 0 && r[2] < MOST_DOMAINS && r[4] >= 0 && r[4] < labels;
        if (good)
            x->rule[k] = (rule){r[0], r[1], r[2], r[3], x->labels + (size_t)r[4] * S};
    }
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a wait or a rule is out of range");
    release(&rows);
    return good;
}

static int read_sets(sets *x, PyObject *args)
{
    PyObject *original, *by_site, *site_rtt, *near_order, *reads, *relays, *weights, *given, *terms, *rules;
    int labels;
    if (!PyArg_ParseTuple(args, "(iiiiii)OOOOOOOOOO", &x->sites, &x->clients, &x->size, &x->terms, &x->rules, &labels,
                          &original, &by_site, &site_rtt, &near_order, &reads, &relays, &weights, &given,
                          &terms, &rules))
        return 0;
    if (x->sites < 1 || x->sites > 30000 || x->clients < 1 || x->size < 1 || x->size > x->sites ||
        x->size > MOST_MEMBERS || x->terms < 0 || x->terms > 1000 || x->rules < 0 || x->rules > 1000 || labels < 1)
        return refused("sizes out of range");
    const size_t S = (size_t)x->sites, C = (size_t)x->clients, D = (size_t)x->size + 1;
    owned_memory *owned = &x->owned;
    if (!(x->original = copy_buffer(owned, original, S * 4)) || !(x->by_site = copy_buffer(owned, by_site, S * C * 8)) ||
        !(x->site_rtt = copy_buffer(owned, site_rtt, S * S * 8)) || !(x->near_order = copy_buffer(owned, near_order, S * S * 4)) ||
        !(x->reads = copy_buffer(owned, reads, C * 8)) || !(x->relays = copy_buffer(owned, relays, C * 8)) ||
        !(x->weights = copy_buffer(owned, weights, (size_t)x->terms * C * 8)) ||
        !(x->labels = copy_buffer(owned, given, (size_t)labels * S * 4)))
        return 0;
    x->term = own(owned, (size_t)x->terms, sizeof *x->term);
    x->rule = own(owned, (size_t)x->rules, sizeof *x->rule);
    x->near_cost = own(owned, S * C, 8);
    x->member = own(owned, S, 1);
    x->distance = own(owned, D * C, 8);
    x->ascending = own(owned, D * MOST_MEMBERS * C, 8);
    x->nearest = own(owned, D * C, 4);
    x->cost = own(owned, C, 8);
    x->member_wait = own(owned, S, 8);
    x->zeros = own(owned, C, 8);
    x->endless = own(owned, C, 8);
    x->suffix = own(owned, (S + 1) * (size_t)x->size * C, 8);
    if (owned->failed) {
        PyErr_NoMemory();
        return 0;
    }
    for (size_t c = 0; c < C; c++)
        x->endless[c] = INFINITY;
    for (size_t from = S + 1, row = (size_t)x->size * C; from-- > 0;) /* as in push */
        for (size_t k = 0; k < (size_t)x->size; k++)
            for (size_t c = 0; c < C; c++) {
                const double *old = x->suffix + (from + 1) * row;
                double d = from < S ? x->by_site[from * C + c] : INFINITY;
                double low = k && from < S ? old[(k - 1) * C + c] : 0, high = from < S ? old[k * C + c] : INFINITY;
                double middle = d > low ? d : low;
                x->suffix[from * row + k * C + c] = middle < high ? middle : high;
            }
    return in_range(x->near_order, S * S, 0, x->sites, "an index is out of range") &&
           in_range(x->labels, (size_t)labels * S, 0, MOST_DOMAINS, "an index is out of range") && read_rows(x, terms, rules, labels);
}

static PyObject *create(PyObject *self, PyObject *args)
{
    (void)self;
    sets *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    PyObject *capsule = read_sets(x, args) ? PyCapsule_New(x, CAPSULE, free_sets) : NULL;
    if (!capsule)
        sets_free(x);
    return capsule;
}

/* Begin a tree, and make the state of a prefix; its length, or -1 with the exception set. */
static int begin(sets *x, int leader, double constant, PyObject *source)
{
    Py_buffer view;
    if (leader < -1 || leader >= x->sites) {
        PyErr_SetString(PyExc_ValueError, "no such leader");
        return -1;
    }
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS))
        return -1;
    x->leader = leader;
    x->constant = constant;
    for (size_t s = 0, C = (size_t)x->clients; s < (size_t)x->sites; s++) {
        double there = leader < 0 ? 0 : x->site_rtt[s * (size_t)x->sites + (size_t)leader];
        for (size_t c = 0; c < C; c++)
            x->near_cost[s * C + c] = x->reads[c] * x->by_site[s * C + c] + x->relays[c] * there;
    }
    const int32_t *site = view.buf;
    Py_ssize_t count = view.len / 4;
    int good = count <= x->size;
    memset(x->member, 0, (size_t)x->sites);
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

static PyObject *bound(PyObject *self, PyObject *args)
{
    PyObject *capsule, *prefix;
    int leader, from, depth;
    double constant;
    (void)self;
    if (!PyArg_ParseTuple(args, "OidOi", &capsule, &leader, &constant, &prefix, &from))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, leader, constant, prefix)) < 0)
        return NULL;
    return PyFloat_FromDouble(allowed(x, depth, 0) ? prefix_bound(x, depth, from < 0 ? 0 : from) : INFINITY);
}

static PyObject *run(PyObject *self, PyObject *args)
{
    PyObject *capsule, *prefix;
    int leader, from, depth;
    double constant, limit, seconds;
    (void)self;
    if (!PyArg_ParseTuple(args, "OidOidd", &capsule, &leader, &constant, &prefix, &from, &limit, &seconds))
        return NULL;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x || (depth = begin(x, leader, constant, prefix)) < 0)
        return NULL;
    if (limit < INFINITY && (!x->found || limit < x->value)) {
        x->value = limit;
        x->best_leader = INT_MAX; /* any set that ties comes before it */
        x->found = 1;
    }
    x->stopped = 0;
    begin_call(&x->limit, seconds);
    if (allowed(x, depth, 0))
        search_below(x, depth, from < 0 ? 0 : from);
    return end_call(&x->limit) ? PyBool_FromLong(!x->stopped) : NULL;
}

static PyObject *best(PyObject *self, PyObject *capsule)
{
    (void)self;
    sets *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x)
        return NULL;
    int known = x->found && x->best_leader != INT_MAX;
    return Py_BuildValue("diy#LL", x->found ? x->value : INFINITY, known ? x->best_leader : -1,
                         (const char *)x->best_set, (Py_ssize_t)x->size * 4, x->nodes, x->leaves);
}

static PyMethodDef methods[] = {
    {"create", create, METH_VARARGS, NULL},
    {"bound", bound, METH_VARARGS, NULL},
    {"run", run, METH_VARARGS, NULL},
    {"best", best, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Enumeration of replica sets for operations with waits.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void);
PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&module); }
