/* Depth-first branch and bound under one leader, resumable after a given amount of work. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Found by measuring on modelled and measured networks; none of them matters for correctness. */
#define ROOT_STEPS 120
#define WARM_ROOT_STEPS 40    /* where another tree has left multipliers */
#define NODE_STEPS 7
#define TIGHT_ROOT_STEPS 200
#define TIGHT_WARM_STEPS 25
#define TIGHT_NODE_STEPS 10
#define TIGHT_DEPTH 1
#define TIGHT_EVERY 120
#define LARGE 20000          /* free sites x clients above which the root gets more steps */
#define CLOSE_BITS 16         /* of the largest multiplier, in a recorded proof */
#define ENUMERATE_PER_SITE 6.0
#define FEW 12.0

/* ---- record of the proof: a flat list of numbers, decoded by certificate.py ---- */

void record_number(context *x, double value)
{
    stream *s = &x->record;
    if (s->failed)
        return;
    if (s->length == s->capacity) {
        size_t grown = s->capacity ? 2 * s->capacity : 4096;
        double *data = realloc(s->data, grown * sizeof(double));
        if (!data) {
            s->failed = 1;
            return;
        }
        s->data = data;
        s->capacity = grown;
    }
    s->data[s->length++] = value;
}

void record_event(context *x, double kind, double value)
{
    record_number(x, kind);
    record_number(x, value);
}

void record_vector(context *x, const double *u)
{
    for (int c = 0; c < x->p.clients; c++)
        record_number(x, u[c]);
}

void record_beta(context *x, const double *beta)
{
    size_t at = x->record.length + 1;
    double entries = 0.0;
    record_event(x, 5.0, 0.0);
    for (int j = 0; j < x->p.sites; j++)
        for (int c = 0; c < x->p.clients; c++) {
            double value = beta[(size_t)j * (size_t)x->p.padded + (size_t)c];
            if (value > 0.0) {
                record_number(x, j);
                record_number(x, c);
                record_number(x, value);
                entries++;
            }
        }
    if (!x->record.failed)
        x->record.data[at] = entries;
}

/* ---- leaves that are enumerated ---- */

/* Every way to complete the frame, by depth-first search over positions; the score is only computed in
 * full where the clients' part alone could still win. */
static void enumerate(context *x, frame *f, int lo, int hi)
{
    const problem *p = &x->p;
    int n = f->free_count, depth = 0, padded = p->padded;
    int *set = x->near_free, at[MAX_ENUMERATED + 2], *nearest = x->level_rank;
    double radius, prices[MAX_ENUMERATED + 2], *paid = x->level_cost;
    const double *price = p->price ? p->price + (size_t)(x->current < 0 ? 0 : x->current) * p->sites : NULL;
    memcpy(set, f->in_site, (size_t)f->in_count * sizeof(int));
    memcpy(nearest, f->fixed_rank, (size_t)padded * sizeof(int));
    for (int c = 0; c < padded; c++)
        paid[c] = c < p->clients ? BIG : 0.0;
    for (int i = 0; i < f->in_count; i++) {
        const int *rank = p->rank + (size_t)f->in_site[i] * padded;
        const double *cost = x->costs + (size_t)f->in_site[i] * padded;
        for (int c = 0; c < p->clients; c++)
            paid[c] = rank[c] == nearest[c] ? cost[c] : paid[c];
    }
    prices[0] = f->constant;
    at[0] = 0;
    if (lo <= 0)
        offer(x, score_of(x, set, f->in_count, &radius), set, f->in_count);
    if (hi == 0)
        return;
    while (depth >= 0) {
        if (at[depth] >= n) {
            if (--depth >= 0)
                at[depth]++;
            continue;
        }
        int site = f->free_site[at[depth]], size = f->in_count + depth + 1;
        const int *rank = p->rank + (size_t)site * padded;
        const double *cost = x->costs + (size_t)site * padded;
        set[size - 1] = site;
        prices[depth + 1] = prices[depth] + (price ? price[site] : 0.0);
        if (depth + 1 >= lo) {
            double part = prices[depth + 1] + joined_cost(rank, cost, nearest + (size_t)depth * padded,
                                                          paid + (size_t)depth * padded, padded, x->trial);
            if (part - (x->span.on ? span_shift(x, size) : 0.0) < x->score) {
                double score = score_of(x, set, size, &radius);
                if (score < x->score)
                    offer(x, score, set, size);
            }
        }
        if (depth + 1 < hi) {
            join(rank, cost, nearest + (size_t)depth * padded, paid + (size_t)depth * padded, padded,
                 nearest + (size_t)(depth + 1) * padded, paid + (size_t)(depth + 1) * padded);
            at[depth + 1] = at[depth] + 1;
            depth++;
        } else
            at[depth]++;
        x->work += 0.5 * padded;
    }
}

static double completions(int n, int lo, int hi)
{
    double total = 0.0, choose = 1.0;
    for (int k = 0; k <= hi; k++) {
        if (k >= lo)
            total += choose * (k > 0 ? k : 1);
        choose = choose * (n - k) / (k + 1.0);
        if (total > 1e12)
            break;
    }
    return total;
}

/* ---- the tree ---- */

static void push(context *x, const frame *parent, int site)
{
    frame *f = &x->stack[x->depth];
    if (!frame_alloc(x, f, parent->sparse ? 0 : parent->free_count) || (parent->sparse && !sparse_alloc(x, f))) {
        x->stop = 1;
        return;
    }
    frame_copy(x, f, parent, site);
    f->tightened = x->nodes;
    f->decided = site;
    f->side = IN;
    f->before = parent->before;
    x->depth++;
}

static void pop(context *x)
{
    --x->depth;
}

void tree_open(context *x, int leader, const double *u)
{
    costs_for_leader(x, leader);
    root_open(x, u, 0);
    if (x->stop)
        return;
    branch_forget(x);
    x->stack[0].tightened = x->nodes;
    x->stack[0].warm = x->span.on && span_warm(x, &x->stack[0]);
}

/* Put the root of the leader under work on the stack, in place of any tree; `shared` as in frame_root. */
void root_open(context *x, const double *u, int shared)
{
    while (x->depth > 0)
        pop(x);
    x->closed = BIG;
    frame *f = &x->stack[0];
    if (!frame_alloc(x, f, shared ? 0 : x->p.sites)) {
        x->stop = 1;
        return;
    }
    memset(f->u, 0, (size_t)x->p.padded * sizeof(double));
    frame_root(x, f, x->current, shared);
    /* not before: on the way to several certain sites a client's cost may be lower than in the end */
    for (int c = 0; u && c < x->p.clients; c++)
        f->u[c] = u[c] < f->fixed_cost[c] ? u[c] : f->fixed_cost[c];
    x->depth = 1;
}

/* Leave CLOSE_BITS bits of the largest multiplier, and of the others what is as large as these; 0: none is. */
int coarsen(double *u, int clients)
{
    double largest = 0.0;
    int exponent;
    for (int c = 0; c < clients; c++)
        largest = u[c] > largest ? u[c] : largest;
    if (!(largest > 0.0 && largest < BIG))
        return 0;
    frexp(largest, &exponent);
    double grain = ldexp(1.0, exponent - CLOSE_BITS);
    for (int c = 0; c < clients; c++)
        u[c] = rint(u[c] / grain) * grain;
    return 1;
}

/* Record that `f->u` closes the frame, with fewer digits where they suffice; returns its bound. */
double record_close(context *x, frame *f, double bound)
{
    double error, value;
    int count;
    memset(x->trial, 0, (size_t)x->p.padded * sizeof(double));
    memcpy(x->trial, f->u, (size_t)x->p.clients * sizeof(double));
    if (coarsen(x->trial, x->p.clients)) {
        for (int c = 0; c < x->p.clients; c++) {
            double most = f->sparse ? f->reach[c] : f->fixed_cost[c];
            x->trial[c] = x->trial[c] < most ? x->trial[c] : most;
        }
        value = evaluate_bound(x, f, x->trial, 0, &count, &error) - error;
        if (value >= x->cutoff) {
            memcpy(f->u, x->trial, (size_t)x->p.clients * sizeof(double));
            bound = value < bound ? value : bound;
        }
    }
    record_event(x, 2.0, 0.0);
    record_vector(x, f->u);
    return bound;
}

static void close_frame(context *x, double bound)
{
    frame *f = &x->stack[x->depth - 1];
    if (x->recording)
        bound = record_close(x, f, bound);
    if (bound < x->closed)
        x->closed = bound;
    x->leaves++;
    pop(x);
}

/* One visit of the frame on top: bound it, then close it, enumerate it or branch. */
static void visit(context *x)
{
    frame *f = &x->stack[x->depth - 1];
    const problem *p = &x->p;
    int rounds = f->root ? 6 : 3, iterations = f->root ? (f->warm ? WARM_ROOT_STEPS : ROOT_STEPS) : NODE_STEPS, count;
    double error, base_error, value = 0.0;
    x->nodes++;
    for (int round = 0; round < rounds; round++) {
        int lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
        int hi = p->replicas_max - f->in_count;
        if (lo < 0)
            lo = 0;
        if (hi > f->free_count)
            hi = f->free_count;
        if (x->span.on)
            span_range(x, f, &lo, &hi);
        double ways = hi >= lo && hi >= 0 && hi <= MAX_ENUMERATED ? completions(f->free_count, lo, hi) : BIG;
        int few = ways <= FEW + ENUMERATE_PER_SITE * f->free_count;
        /* where a bound is cheaper than a score, first see which sites it leaves */
        if (ways <= FEW || (few && (round > 0 || !f->sparse))) {
            enumerate(x, f, lo, hi);
            if (x->recording)
                record_event(x, 3.0, 0.0);
            x->leaves++;
            pop(x);
            return;
        }
        value = improve_bound(x, f, iterations, &error);
        if (x->relays && value < x->cutoff && round == 0 && !x->paused &&
            (f->root || (f->fresh && f->in_count <= TIGHT_DEPTH) ||
             x->nodes - f->tightened >= TIGHT_EVERY)) {
            int large = (double)f->free_count * p->padded > LARGE;
            int steps = f->root ? (large ? 2 : 1) * (f->warm ? TIGHT_WARM_STEPS : TIGHT_ROOT_STEPS) : TIGHT_NODE_STEPS;
            f->tightened = x->nodes;
            double tight = tighten(x, f, steps, &error);
            if (tight > value)
                value = tight;
            if (x->span.on && f->root && !f->sparse)
                span_keep(x, f);
        }
        branch_learn(x, f, value);
        if (value > f->bound)
            f->bound = value < x->cutoff ? value : x->cutoff;
        if (value >= x->cutoff) {
            close_frame(x, value);
            return;
        }
        if (x->paused)
            return;
        double again = evaluate_bound(x, f, f->u, 1, &count, &base_error);
        if (f->root && round == 0 && again < BIG) {
            /* a primal solution from the selection at the best multipliers */
            int *set = x->near_free, size = f->in_count;
            memcpy(set, f->in_site, (size_t)size * sizeof(int));
            for (int i = 0; i < count; i++)
                set[size++] = f->free_site[x->selected[i]];
            int *copy = x->selected + 3 * p->sites;
            memcpy(copy, set, (size_t)size * sizeof(int));
            descend(x, copy, size, 40);
            if (value >= x->cutoff) {
                close_frame(x, value);
                return;
            }
            again = evaluate_bound(x, f, f->u, 1, &count, &base_error);
        }
        int fixed = fix_by_reduced_cost(x, f, x->served + f->constant, base_error);
        if (fixed < 0) {
            close_frame(x, x->cutoff);
            return;
        }
        if (fixed == 0 && !(few && round == 0))
            break;
        iterations = f->root ? 40 : 12;
    }
    if (f->free_count == 0) {
        /* handled by the enumeration above on the next visit */
        return;
    }
    if (f->fresh)
        sparsify(x, f);
    int i = branch_site(x, f, value), site = f->free_site[i];
    frame_drop(x, f, i, 1);
    f->state[site] = FREE;
    if (x->recording)
        record_event(x, 4.0, site);
    f->decided = site;
    f->before = value;
    push(x, f, site);
    f->side = OUT;
    f->state[site] = OUT;
    f->root = f->fresh = 0;
}

/* Work on the open leader; 1 when its tree is finished. */
int tree_run(context *x, double work)
{
    double stop = x->work + work;
    while (x->depth > 0 && !x->stop && x->work < stop && !must_pause(x))
        visit(x);
    return x->depth == 0;
}

/* A lower bound of everything under the open leader, closed parts included. */
double tree_bound(const context *x)
{
    double bound = x->closed;
    for (int i = 0; i < x->depth; i++)
        if (x->stack[i].bound < bound)
            bound = x->stack[i].bound;
    return bound;
}
