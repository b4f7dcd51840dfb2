/* Sparse frames: of a large problem, only the cells that can matter below a state.
 *
 * Under a leader a client looks no farther than its nearest certain replica, and pays no more for
 * another than u lets it; on large problems few of all (client, site) cells are left then.  A sparse
 * frame lists them client by client, in each client's order, and everything that a dense frame does to
 * its columns is one pass over this list:
 *
 *   cell (c, j):  j free and preferred by c to its nearest fixed replica, and
 *                 beta_cj > 0  or  w_cj + P_cj < reach_c
 *
 * reach_c is the most that u_c may be, so that what is left out adds exactly 0 to every reduced cost.
 * It follows the fixed cost down by itself; where a new replica makes a client's fixed cost grow (a
 * detour: closest assignment), the client's cells are gathered again. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define SLACK 1e-12          /* relative: rounding of the reach is no reason to gather */

void cells_release(cells *m)
{
    free(m->start);
    free(m->site);
    free(m->rank);
    free(m->weight);
    free(m->cost);
    free(m->beta);
    memset(m, 0, sizeof *m);
}

/* Make room for `wanted` cells, keeping those that there are; 0 without memory. */
static int cells_reserve(context *x, cells *m, size_t wanted)
{
    if (!m->start) {
        m->start = malloc(((size_t)x->p.clients + 1) * sizeof(size_t));
        if (!m->start)
            return 0;
    }
    if (wanted <= m->capacity)
        return 1;
    size_t n = wanted + wanted / 2 + 1024;
    int *site = realloc(m->site, n * sizeof(int)), *rank = NULL;
    double *weight = NULL, *cost = NULL, *beta = NULL;
    if (site)
        m->site = site;
    if (site && (rank = realloc(m->rank, n * sizeof(int))))
        m->rank = rank;
    if (rank && (weight = realloc(m->weight, n * sizeof(double))))
        m->weight = weight;
    if (weight && (cost = realloc(m->cost, n * sizeof(double))))
        m->cost = cost;
    if (cost && (beta = realloc(m->beta, n * sizeof(double))))
        m->beta = beta;
    if (!beta)
        return 0;
    m->capacity = n;
    return 1;
}

static void put(cells *m, size_t at, int site, int rank, double weight, double cost, double beta)
{
    m->site[at] = site;
    m->rank[at] = rank;
    m->weight[at] = weight;
    m->cost[at] = cost;
    m->beta[at] = beta;
}

/* The costs under the current leader, a client's after another, in its order; 0 without memory. */
static int order_costs(context *x)
{
    const problem *p = &x->p;
    size_t sites = (size_t)p->sites, padded = (size_t)p->padded;
    if (x->ordered_is_current)
        return 1;
    if (!x->ordered)
        x->ordered = malloc(sites * (size_t)p->clients * sizeof(double) + 8);
    if (!x->ordered)
        return 0;
    for (size_t c = 0; c < (size_t)p->clients; c++) {
        const int *order = x->by_client + c * sites;
        double *out = x->ordered + c * sites;
        for (size_t t = 0; t < sites; t++)
            out[t] = x->costs[(size_t)order[t] * padded + c];
    }
    x->ordered_is_current = 1;
    x->work += (double)sites * p->padded * 3.0;
    return 1;
}

/* Write a client's cells below its fixed replica to `out` from `at` on; returns where they end.
 *
 * The client's multipliers beta are in x->charge. */
static size_t gather(const context *x, const frame *f, int c, double reach, cells *out, size_t at)
{
    size_t sites = (size_t)x->p.sites;
    const int *order = x->by_client + (size_t)c * sites;
    const double *weight = x->ordered + (size_t)c * sites;
    int end = f->fixed_rank[c] < x->p.sites ? f->fixed_rank[c] : x->p.sites;
    double sum = 0.0;
    for (int t = 0; t < end; t++) {
        int j = order[t];
        if (f->state[j] != FREE)
            continue;
        double beta = x->charge[j];
        if (beta > 0.0 || weight[t] + sum < reach)
            put(out, at++, j, t, weight[t], weight[t] + sum, beta);
        sum += beta;
    }
    return at;
}

/* Let the cells in x->spare, `count` of them, be those of the frame. */
static void take_spare(context *x, frame *f, size_t count)
{
    cells own = f->cells;
    x->spare.start[x->p.clients] = count;
    f->cells = x->spare;
    x->spare = own;
}

/* Sum of beta of each free site, from the sums of all sites in x->by_site. */
static void set_bases(context *x, frame *f)
{
    for (int i = 0; i < f->free_count; i++)
        f->base[i] = x->by_site[f->free_site[i]];
}

/* Bring a sparse frame up to date with its state, from the cells of `from` (its own, or its parent's).
 *
 * Sites that are not free any more leave, with their beta; what lies beyond a client's fixed replica
 * goes; u follows as in frame_drop and frame_fix_in. */
static void settle_from(context *x, frame *f, const cells *from)
{
    const problem *p = &x->p;
    cells *out = &x->spare;
    size_t at = 0, room = from->start[p->clients] + (size_t)p->sites;
    f->stale = 0;
    if (!cells_reserve(x, out, room)) {
        x->stop = 1;
        return;
    }
    memset(x->by_site, 0, (size_t)p->sites * sizeof(double));
    double steps = (double)from->start[p->clients];
    for (int c = 0; c < p->clients; c++) {
        size_t first = from->start[c], last = from->start[c + 1], begin = at;
        double sum = 0.0, dropped = 0.0;
        int end = f->fixed_rank[c];
        out->start[c] = at;
        if (at + (last - first) + (size_t)p->sites > out->capacity &&
            !cells_reserve(x, out, at + (last - first) + (size_t)p->sites)) {
            x->stop = 1;
            return;
        }
        for (size_t k = first; k < last; k++) {
            double beta = from->beta[k];
            if (f->state[from->site[k]] != FREE) {
                dropped += beta;
                continue;
            }
            if (from->rank[k] >= end)
                continue;
            put(out, at++, from->site[k], from->rank[k], from->weight[k], from->weight[k] + sum, beta);
            sum += beta;
        }
        double most = f->plain[c] + sum, reach = f->reach[c] - dropped, u = f->u[c] - dropped;
        if (most > reach + SLACK * most) {
            for (size_t k = first; k < last; k++)
                x->charge[from->site[k]] = from->beta[k];
            at = gather(x, f, c, most, out, begin);
            for (size_t k = first; k < last; k++)
                x->charge[from->site[k]] = 0.0;
            reach = most;
            steps += end < p->sites ? end : p->sites;
        }
        for (size_t k = begin; k < at; k++)
            x->by_site[out->site[k]] += out->beta[k];
        f->offset[c] = sum;
        f->fixed_cost[c] = most;
        f->reach[c] = reach < most ? reach : most;
        u = u > 0.0 ? u : 0.0;
        f->u[c] = u < f->reach[c] ? u : f->reach[c];
    }
    take_spare(x, f, at);
    set_bases(x, f);
    x->work += 2.0 * steps + 4.0 * p->padded;
}

void settle(context *x, frame *f)
{
    settle_from(x, f, &f->cells);
}

/* `child`, whose state differs from its parent's, gets what is left of the parent's cells. */
void settle_child(context *x, frame *child, const frame *parent)
{
    settle_from(x, child, &parent->cells);
}

int sparse_alloc(context *x, frame *f)
{
    size_t bytes = (size_t)x->p.padded * sizeof(double) + 8;
    if (!f->plain)
        f->plain = calloc(bytes, 1);
    if (!f->reach)
        f->reach = calloc(bytes, 1);
    return f->plain && f->reach;
}

/* Turn a dense frame into a sparse one where that pays. */
void sparsify(context *x, frame *f)
{
    const problem *p = &x->p;
    size_t at = 0, sites = (size_t)p->sites, padded = (size_t)p->padded;
    double all = (double)f->free_count * p->padded;
    if (f->sparse || f->shared || all < x->sparse_from || !order_costs(x) || !sparse_alloc(x, f))
        return;
    cells *out = &x->spare;
    if (!cells_reserve(x, out, (size_t)(x->sparse_share * all) + sites)) /* no memory: dense is fine */
        return;
    x->work += all;
    int c = 0;
    for (; c < p->clients && (double)at <= x->sparse_share * all; c++) {
        out->start[c] = at;
        for (int i = 0; i < f->free_count && f->beta; i++)
            x->charge[f->free_site[i]] = f->beta[(size_t)f->free_site[i] * padded + (size_t)c];
        f->reach[c] = f->fixed_cost[c];
        at = gather(x, f, c, f->reach[c], out, at);
        f->plain[c] = f->fixed_rank[c] < p->sites ? x->ordered[(size_t)c * sites + (size_t)f->fixed_rank[c]] : BIG;
    }
    memset(x->charge, 0, sites * sizeof(double));
    if (c < p->clients)
        return;
    take_spare(x, f, at);
    f->charged = f->beta != NULL;
    f->beta = NULL;
    f->sparse = 1;
    free(f->block);
    f->block = NULL;
    f->capacity = 0;
}

/* rho of the free sites, as `gains` gives it for columns. */
void sparse_gains(context *x, const frame *f, const double *u)
{
    const cells *m = &f->cells;
    const int *site = m->site;
    const double *cost = m->cost;
    double *sum = x->by_site;
    memset(sum, 0, (size_t)x->p.sites * sizeof(double));
    for (int c = 0; c < x->p.clients; c++) {
        double uc = u[c];
        for (size_t k = m->start[c]; k < m->start[c + 1]; k++) {
            double t = cost[k] - uc;
            sum[site[k]] += t < 0.0 ? t : 0.0;
        }
    }
    for (int i = 0; i < f->free_count; i++)
        x->rho[i] = sum[f->free_site[i]];
    x->work += 1.5 * (double)m->start[x->p.clients] + x->p.padded;
}

/* cover[c] -= number of the `count` selected positions that serve c. */
void sparse_uncover(context *x, const frame *f, const int *selected, int count, const double *u, double *cover)
{
    const cells *m = &f->cells;
    double *chosen = x->by_site;
    memset(chosen, 0, (size_t)x->p.sites * sizeof(double));
    for (int i = 0; i < count; i++)
        chosen[f->free_site[selected[i]]] = 1.0;
    for (int c = 0; c < x->p.clients; c++) {
        double uc = u[c], served = 0.0;
        for (size_t k = m->start[c]; k < m->start[c + 1]; k++)
            served += m->cost[k] < uc ? chosen[m->site[k]] : 0.0;
        cover[c] -= served;
    }
    x->work += 1.5 * (double)m->start[x->p.clients];
}

/* New multipliers beta: those of `items` cells of each client, given by site in the client's order. */
void sparse_charge(context *x, frame *f, const int *start, const int *item_site, const double *item_beta)
{
    const problem *p = &x->p;
    size_t at = 0, sites = (size_t)p->sites;
    cells *out = &x->spare;
    memset(x->by_site, 0, sites * sizeof(double));
    for (int c = 0; c < p->clients; c++) {
        double whole = 0.0;
        out->start[c] = at;
        if (!cells_reserve(x, out, at + sites)) {
            x->stop = 1;
            return;
        }
        for (int i = start[c]; i < start[c + 1]; i++) {
            whole += item_beta[i];
            x->charge[item_site[i]] = item_beta[i];
            x->by_site[item_site[i]] += item_beta[i];
        }
        double reach = f->plain[c] + whole;
        at = gather(x, f, c, reach, out, at);
        for (int i = start[c]; i < start[c + 1]; i++)
            x->charge[item_site[i]] = 0.0;
        f->offset[c] = whole;
        f->fixed_cost[c] = f->reach[c] = reach;
        if (f->u[c] > reach)
            f->u[c] = reach;
    }
    take_spare(x, f, at);
    set_bases(x, f);
    f->charged = 1;
    x->work += (double)f->free_count * p->padded;
}

/* The multipliers beta in force, as record_beta records those of a dense frame. */
void record_cells(context *x, const frame *f)
{
    size_t at = x->record.length + 1;
    double entries = 0.0;
    record_event(x, 5.0, 0.0);
    for (int c = 0; c < x->p.clients; c++)
        for (size_t k = f->cells.start[c]; k < f->cells.start[c + 1]; k++)
            if (f->cells.beta[k] > 0.0) {
                record_number(x, f->cells.site[k]);
                record_number(x, c);
                record_number(x, f->cells.beta[k]);
                entries++;
            }
    if (!x->record.failed)
        x->record.data[at] = entries;
}
