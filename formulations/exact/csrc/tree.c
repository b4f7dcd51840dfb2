/* Depth-first branch and bound under one leader, resumable after a given amount of work. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

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

/* ---- leaves that are enumerated ---- */

static void enumerate(context *x, frame *f, int lo, int hi)
{
    int n = f->free_count, depth = 0;
    int *set = x->near_free, *at = x->order;
    double radius;
    memcpy(set, f->in_site, (size_t)f->in_count * sizeof(int));
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
        int size = f->in_count + depth + 1;
        set[size - 1] = f->free_site[at[depth]];
        if (depth + 1 >= lo) {
            double score = score_of(x, set, size, &radius);
            if (score < x->score)
                offer(x, score, set, size);
        }
        if (depth + 1 < hi) {
            at[depth + 1] = at[depth] + 1;
            depth++;
        } else
            at[depth]++;
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
    if (!frame_alloc(x, f, parent->free_count)) {
        x->stop = 1;
        return;
    }
    frame_copy(x, f, parent, site);
    x->depth++;
}

static void pop(context *x)
{
    frame_release(&x->stack[--x->depth]);
}

void tree_open(context *x, int leader, const double *u)
{
    while (x->depth > 0)
        pop(x);
    x->closed = BIG;
    costs_for_leader(x, leader);
    frame *f = &x->stack[0];
    if (!frame_alloc(x, f, x->p.sites)) {
        x->stop = 1;
        return;
    }
    memset(f->u, 0, (size_t)x->p.padded * sizeof(double));
    if (u)
        memcpy(f->u, u, (size_t)x->p.clients * sizeof(double));
    frame_root(x, f, leader);
    x->depth = 1;
}

static int branch_site(const frame *f)
{
    int best = 0;
    double least = BIG;
    for (int i = 0; i < f->free_count; i++) {
        double v = fabs(f->frequency[f->free_site[i]] - 0.55);
        if (v < least) {
            least = v;
            best = i;
        }
    }
    return best;
}

static void close_frame(context *x, double bound)
{
    frame *f = &x->stack[x->depth - 1];
    if (bound < x->closed)
        x->closed = bound;
    if (x->recording) {
        record_event(x, 2.0, 0.0);
        record_vector(x, f->u);
    }
    x->leaves++;
    pop(x);
}

/* One visit of the frame on top: bound it, then close it, enumerate it or branch. */
static void visit(context *x)
{
    frame *f = &x->stack[x->depth - 1];
    const problem *p = &x->p;
    int rounds = f->root ? 6 : 3, iterations = f->root ? 120 : 24, count;
    double error, base_error;
    x->nodes++;
    for (int round = 0; round < rounds; round++) {
        int lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
        int hi = p->replicas_max - f->in_count;
        if (lo < 0)
            lo = 0;
        if (hi > f->free_count)
            hi = f->free_count;
        if (hi >= lo && hi >= 0 && completions(f->free_count, lo, hi) <= 12.0 + 3.0 * f->free_count) {
            enumerate(x, f, lo, hi);
            if (x->recording)
                record_event(x, 3.0, 0.0);
            x->leaves++;
            pop(x);
            return;
        }
        double value = improve_bound(x, f, iterations, &error);
        if (value > f->bound)
            f->bound = value < x->cutoff ? value : x->cutoff;
        if (value >= x->cutoff) {
            close_frame(x, value);
            return;
        }
        double again = evaluate_bound(x, f, f->u, 1, &count, &base_error);
        if (f->root && again < BIG) {
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
        if (fixed == 0)
            break;
        iterations = f->root ? 40 : 12;
    }
    if (f->free_count == 0) {
        /* handled by the enumeration above on the next visit */
        return;
    }
    int i = branch_site(f), site = f->free_site[i];
    frame_drop(f, i);
    f->state[site] = FREE;
    if (x->recording)
        record_event(x, 4.0, site);
    push(x, f, site);
    f->state[site] = OUT;
    f->root = 0;
}

/* Work on the open leader; 1 when its tree is finished. */
int tree_run(context *x, double work)
{
    double stop = x->work + work;
    while (x->depth > 0 && !x->stop && x->work < stop)
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
