/* Sparse nodes: of a large problem, only the cells that can matter below a state.
 *
 * Under a leader a client uses no site beyond its nearest certain replica, and pays no more for
 * another than u lets it; on large problems few of all (client, site) cells are left then.  A sparse
 * node lists them client by client, in each client's order, and everything that a dense node does to
 * its columns is one pass over this list:
 *
 *   cell (c, j):  j free and preferred by c to its nearest fixed replica, and
 *                 beta_cj > 0  or  w_cj + P_cj < reach_c
 *
 * reach_c is the most that u_c may be, so that omitted cells add exactly 0 to every reduced cost.
 * It follows the fixed cost down by itself; where a new replica makes a client's fixed cost grow (a
 * detour: closest assignment), the client's cells are gathered again from the matrix. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define SLACK 1e-12          /* relative: rounding of the reach is no reason to gather */

void cells_release(sparse_cells *m)
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
static int cells_reserve(context *x, sparse_cells *m, size_t wanted)
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

static void put_cell(sparse_cells *m, size_t at, int site, int rank, double weight, double cost, double beta)
{
    m->site[at] = site;
    m->rank[at] = rank;
    m->weight[at] = weight;
    m->cost[at] = cost;
    m->beta[at] = beta;
}

/* Write a client's cells below its fixed replica to `out` from `at` on; returns where they end.
 *
 * The client's multipliers beta are in x->scratch.beta_by_site. */
static size_t gather_cells(const context *x, const tree_node *f, int c, double reach, sparse_cells *out, size_t at)
{
    size_t sites = (size_t)x->p.sites;
    const int *order = x->p.by_client + (size_t)c * sites;
    const double *weight = x->view.ordered + (size_t)c * sites;
    int end = f->fixed_rank[c] < x->p.sites ? f->fixed_rank[c] : x->p.sites;
    double sum = 0.0;
    for (int t = 0; t < end; t++) {
        int j = order[t];
        if (f->state[j] != FREE)
            continue;
        double beta = x->scratch.beta_by_site[j];
        if (beta > 0.0 || weight[t] + sum < reach)
            put_cell(out, at++, j, t, weight[t], weight[t] + sum, beta);
        sum += beta;
    }
    return at;
}

/* Give a node the cells in x->scratch.cells, `count` of them. */
static void adopt_scratch_cells(context *x, tree_node *f, size_t count)
{
    sparse_cells own = f->cells;
    x->scratch.cells.start[x->p.clients] = count;
    f->cells = x->scratch.cells;
    x->scratch.cells = own;
}

/* Sum of beta of each free site, from the sums of all sites in x->scratch.by_site. */
static void set_bases(context *x, tree_node *f)
{
    for (int i = 0; i < f->free_count; i++)
        f->base[i] = x->scratch.by_site[f->free_site[i]];
}

/* Bring a sparse node up to date with its state, from the cells of `from` (its own, or its parent's).
 *
 * Sites that are not free any more leave, with their beta; what lies beyond a client's fixed replica
 * goes; u follows as in frame_drop and frame_fix_in. */
static void rebuild_cells(context *x, tree_node *f, const sparse_cells *from)
{
    const problem *p = &x->p;
    sparse_cells *out = &x->scratch.cells;
    size_t at = 0, room = from->start[p->clients] + (size_t)p->sites;
    f->outdated = 0;
    if (!cells_reserve(x, out, room)) {
        x->control.out_of_memory = 1;
        return;
    }
    memset(x->scratch.by_site, 0, (size_t)p->sites * sizeof(double));
    double steps = (double)from->start[p->clients];
    for (int c = 0; c < p->clients; c++) {
        size_t first = from->start[c], last = from->start[c + 1], begin = at;
        double sum = 0.0, dropped = 0.0;
        int end = f->fixed_rank[c];
        out->start[c] = at;
        if (at + (last - first) + (size_t)p->sites > out->capacity &&
            !cells_reserve(x, out, at + (last - first) + (size_t)p->sites)) {
            x->control.out_of_memory = 1;
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
            put_cell(out, at++, from->site[k], from->rank[k], from->weight[k], from->weight[k] + sum, beta);
            sum += beta;
        }
        double most = f->plain_cost[c] + sum, reach = f->max_multiplier[c] - dropped, u = f->u[c] - dropped;
        if (most > reach + SLACK * most) {
            for (size_t k = first; k < last; k++)
                x->scratch.beta_by_site[from->site[k]] = from->beta[k];
            at = gather_cells(x, f, c, most, out, begin);
            for (size_t k = first; k < last; k++)
                x->scratch.beta_by_site[from->site[k]] = 0.0;
            reach = most;
            steps += end < p->sites ? end : p->sites;
        }
        for (size_t k = begin; k < at; k++)
            x->scratch.by_site[out->site[k]] += out->beta[k];
        f->offset[c] = sum;
        f->fixed_cost[c] = most;
        f->max_multiplier[c] = reach < most ? reach : most;
        u = u > 0.0 ? u : 0.0;
        f->u[c] = u < f->max_multiplier[c] ? u : f->max_multiplier[c];
    }
    adopt_scratch_cells(x, f, at);
    set_bases(x, f);
    x->effort.work += 2.0 * steps + 4.0 * p->padded;
}

void update_cells(context *x, tree_node *f)
{
    rebuild_cells(x, f, &f->cells);
}

/* `child`, whose state differs from its parent's, gets the cells of its parent that can still matter. */
void derive_cells(context *x, tree_node *child, const tree_node *parent)
{
    rebuild_cells(x, child, &parent->cells);
}

int sparse_alloc(context *x, tree_node *f)
{
    size_t bytes = (size_t)x->p.padded * sizeof(double) + 8;
    if (!f->plain_cost)
        f->plain_cost = calloc(bytes, 1);
    if (!f->max_multiplier)
        f->max_multiplier = calloc(bytes, 1);
    return f->plain_cost && f->max_multiplier;
}

/* Turn a dense node into a sparse one where that pays. */
void make_sparse(context *x, tree_node *f)
{
    const problem *p = &x->p;
    size_t at = 0, sites = (size_t)p->sites, padded = (size_t)p->padded;
    double all = (double)f->free_count * p->padded;
    if (f->sparse || f->shared || all < x->limits.sparse_from || !order_costs(x) || !sparse_alloc(x, f))
        return;
    sparse_cells *out = &x->scratch.cells;
    if (!cells_reserve(x, out, (size_t)(x->limits.sparse_share * all) + sites)) /* no memory: dense is fine */
        return;
    x->effort.work += all;
    int c = 0;
    for (; c < p->clients && (double)at <= x->limits.sparse_share * all; c++) {
        out->start[c] = at;
        for (int i = 0; i < f->free_count && f->beta; i++)
            x->scratch.beta_by_site[f->free_site[i]] = f->beta[(size_t)f->free_site[i] * padded + (size_t)c];
        f->max_multiplier[c] = f->fixed_cost[c];
        at = gather_cells(x, f, c, f->max_multiplier[c], out, at);
        f->plain_cost[c] = f->fixed_rank[c] < p->sites ? x->view.ordered[(size_t)c * sites + (size_t)f->fixed_rank[c]] : BIG;
    }
    memset(x->scratch.beta_by_site, 0, sites * sizeof(double));
    if (c < p->clients)
        return;
    adopt_scratch_cells(x, f, at);
    f->has_beta = f->beta != NULL;
    f->beta = NULL;
    f->sparse = 1;
    free(f->block);
    f->block = NULL;
    f->capacity = 0;
}

/* rho of the free sites, as `gains` gives it for columns. */
void sparse_reduced_costs(context *x, const tree_node *f, const double *u)
{
    const sparse_cells *m = &f->cells;
    const int *site = m->site;
    const double *cost = m->cost;
    double *sum = x->scratch.by_site;
    memset(sum, 0, (size_t)x->p.sites * sizeof(double));
    for (int c = 0; c < x->p.clients; c++) {
        double uc = u[c];
        for (size_t k = m->start[c]; k < m->start[c + 1]; k++) {
            double t = cost[k] - uc;
            sum[site[k]] += t < 0.0 ? t : 0.0;
        }
    }
    for (int i = 0; i < f->free_count; i++)
        x->inner.rho[i] = sum[f->free_site[i]];
    x->effort.work += 1.5 * (double)m->start[x->p.clients] + x->p.padded;
}

/* cover[c] -= number of the `count` selected positions that serve c. */
void sparse_subtract_covered(context *x, const tree_node *f, const int *selected, int count, const double *u, double *cover)
{
    const sparse_cells *m = &f->cells;
    double *chosen = x->scratch.by_site;
    memset(chosen, 0, (size_t)x->p.sites * sizeof(double));
    for (int i = 0; i < count; i++)
        chosen[f->free_site[selected[i]]] = 1.0;
    for (int c = 0; c < x->p.clients; c++) {
        double uc = u[c], served = 0.0;
        for (size_t k = m->start[c]; k < m->start[c + 1]; k++)
            served += m->cost[k] < uc ? chosen[m->site[k]] : 0.0;
        cover[c] -= served;
    }
    x->effort.work += 1.5 * (double)m->start[x->p.clients];
}

/* New multipliers beta: those of some cells of each client, given by site in the client's order; they count where the
 * site is free and nearer than the client's fixed replica. */
void sparse_set_beta(context *x, tree_node *f, const int *start, const int *item_site, const double *item_beta)
{
    const problem *p = &x->p;
    size_t at = 0, sites = (size_t)p->sites;
    sparse_cells *out = &x->scratch.cells;
    memset(x->scratch.by_site, 0, sites * sizeof(double));
    for (int c = 0; c < p->clients; c++) {
        double whole = 0.0;
        out->start[c] = at;
        if (!cells_reserve(x, out, at + sites)) {
            x->control.out_of_memory = 1;
            return;
        }
        for (int i = start[c]; i < start[c + 1]; i++) {
            size_t site = (size_t)item_site[i];
            if (f->state[site] != FREE || p->rank[site * (size_t)p->padded + (size_t)c] >= f->fixed_rank[c])
                continue;
            whole += item_beta[i];
            x->scratch.beta_by_site[site] = item_beta[i];
            x->scratch.by_site[site] += item_beta[i];
        }
        double reach = f->plain_cost[c] + whole;
        at = gather_cells(x, f, c, reach, out, at);
        for (int i = start[c]; i < start[c + 1]; i++)
            x->scratch.beta_by_site[item_site[i]] = 0.0;
        f->offset[c] = whole;
        f->fixed_cost[c] = f->max_multiplier[c] = reach;
        if (f->u[c] > reach)
            f->u[c] = reach;
    }
    adopt_scratch_cells(x, f, at);
    set_bases(x, f);
    f->has_beta = 1;
    x->effort.work += (double)f->free_count * p->padded;
}

/* Make the node of a state sparse, which has no columns of its own yet, with the beta of another node of its tree; 0 where
 * that does not pay. */
int make_sparse_from_state(context *x, tree_node *f, const beta_list *beta)
{
    const problem *p = &x->p;
    size_t at = 0;
    double all = (double)f->free_count * p->padded, cells = 0.0;
    for (int c = 0; c < p->clients; c++)
        cells += f->fixed_rank[c] < p->sites ? f->fixed_rank[c] : p->sites;
    if (all < x->limits.sparse_from || cells * f->free_count > x->limits.sparse_share * all * p->sites || !order_costs(x) ||
        !sparse_alloc(x, f) || !cells_reserve(x, &x->scratch.cells, (size_t)cells + 1))
        return 0;
    memcpy(f->plain_cost, f->fixed_cost, (size_t)p->padded * sizeof(double));
    f->sparse = 1;
    f->shared = 0;
    x->effort.work += cells;
    if (beta->start) {
        sparse_set_beta(x, f, beta->start, beta->site, beta->value);
        return 1;
    }
    memcpy(f->max_multiplier, f->fixed_cost, (size_t)p->padded * sizeof(double));
    for (int c = 0; c < p->clients; c++) {
        x->scratch.cells.start[c] = at;
        at = gather_cells(x, f, c, f->fixed_cost[c], &x->scratch.cells, at);
    }
    adopt_scratch_cells(x, f, at);
    return 1;
}
