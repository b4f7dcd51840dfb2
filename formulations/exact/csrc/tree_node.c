/* Nodes: the states of the tree, with their cost columns and multipliers; their detours; sparse nodes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* ---- Detours: clients that a replica takes away from a less preferred one at which they would pay less.
 *
 * Let f be the client's first fixed replica, w its cost there, and 1, 2, ..., p the free sites that the client prefers to f,
 * the most preferred first, with costs w_1, ..., w_p. With M_i = max(w, min(w_1, ..., w_i)) and M_(p+1) = w let
 *
 *   r_i = M_i - M_(i+1) >= 0.
 *
 * For any u, the client pays at least min(u, w) + sum over the chosen free sites i of ( r_i + min(0, w_i - u) ); the proof
 * is in placement/proof/costs/detours.py. So the sum of r_i over the clients is a price of the site i that depends on the state and
 * not on the multipliers: it is what the multipliers beta_ci = r_i and u_c + M_1 - w give. It binds where reads are relayed
 * to a leader, as nearly every site that is not on the way to it makes a detour.
 *
 * A site that goes out passes its detours on to those that the client prefers to it, and so the prices rise. A node keeps the
 * detours of each client as a list, and renews only what a decision has changed. */

/* List the detours of client c, as far as there is room, in order: a smaller price is valid too. Return the number of
 * sites passed. With kept >= 0, the first `kept` entries stay, and the setter of the next one is still free: the list is
 * made from that site on. With -1 the whole list is made. */
static int list_detours(const context *x, tree_node *f, int c, double fixed, int kept)
{
    size_t sites = (size_t)x->p.sites;
    const int *order = x->p.by_client + (size_t)c * sites;
    const double *cost = x->view.ordered + (size_t)c * sites;
    detour *list = f->detours + (size_t)c * MOST_DETOURS;
    int count = 0, before = -1, setter = -1, last = f->fixed_rank[c], ends = 0, k = 0;
    double most = BIG; /* M of the free site `before` */
    if (kept >= 0) {
        count = kept;
        before = setter = list[kept].setter;
        k = x->p.rank[(size_t)setter * (size_t)x->p.padded + (size_t)c];
        most = cost[k++];
    }
    int first = k;
    for (; k < last && !ends; k++) {
        int j = order[k];
        if (f->state[j] != FREE)
            continue;
        if (cost[k] < most) {
            double next = cost[k] > fixed ? cost[k] : fixed;
            if (before >= 0)
                list[count++] = (detour){setter, before, most - next};
            most = next;
            setter = j;
            ends = most == fixed || count == MOST_DETOURS - 1;
        }
        before = j;
    }
    if (before >= 0)
        list[count++] = (detour){setter, before, ends ? 0.0 : most - fixed};
    f->detour_count[c] = (unsigned char)count;
    f->detour_rank[c] = last;
    return k - first;
}

/* Bring the list of client c up to date; return the number of sites passed.
 *
 * Sites only leave. Where one that is charged left, the free site before it is charged with the same amount. Where one
 * that set M left, the list is new from the site on that set M before. */
static int renew_detours(const context *x, tree_node *f, int c, double fixed)
{
    detour *list = f->detours + (size_t)c * MOST_DETOURS;
    const int *order = x->p.by_client + (size_t)c * (size_t)x->p.sites;
    int passed = 0;
    if (f->detour_rank[c] != f->fixed_rank[c])
        return list_detours(x, f, c, fixed, -1);
    for (int i = 0; i < f->detour_count[c]; i++) {
        if (f->state[list[i].setter] != FREE)
            return passed + list_detours(x, f, c, fixed, i - 1);
        if (f->state[list[i].charged] == FREE)
            continue;
        int k = x->p.rank[(size_t)list[i].charged * (size_t)x->p.padded + (size_t)c];
        for (; f->state[order[k]] != FREE; k--)
            passed++;
        list[i].charged = order[k];
    }
    return passed;
}

static int detours_alloc(context *x, tree_node *f)
{
    size_t clients = (size_t)x->p.clients;
    if (f->detours)
        return 1;
    f->detours = own(&x->owned, clients * MOST_DETOURS + 1, sizeof(detour));
    f->detour_count = own(&x->owned, clients + 8, 1);
    f->detour_rank = own(&x->owned, clients + 2, sizeof(int));
    return f->detours && f->detour_count && f->detour_rank;
}

/* Bring the detours of a node up to date. There are none where no read is relayed or no replica is certain, nor beside
 * beta, which can say the same; a large tree soon gets beta. */
void update_detours(context *x, tree_node *f)
{
    const problem *p = &x->p;
    double *by_site = x->scratch.by_site;
    if (!p->relays || x->limits.large || x->view.leader < 0 || f->light || f->beta || f->has_beta || current_tree(x)->tight ||
        !order_costs(x) || !detours_alloc(x, f)) {
        f->has_detours = 0;
        return;
    }
    memset(by_site, 0, (size_t)p->sites * sizeof(double));
    f->detour_scale = 0.0;
    x->effort.work += 4.0 * p->clients;
    for (int c = 0; c < p->clients; c++) {
        const detour *list = f->detours + (size_t)c * MOST_DETOURS;
        double fixed = f->sparse ? f->plain_cost[c] : f->fixed_cost[c];
        x->effort.work += f->has_detours ? renew_detours(x, f, c, fixed) : list_detours(x, f, c, fixed, -1);
        f->detour_scale += fixed;
        for (int k = 0; k < f->detour_count[c]; k++) {
            by_site[list[k].charged] += list[k].amount;
            f->detour_scale += list[k].amount;
        }
    }
    for (int i = 0; i < f->free_count; i++)
        f->detour[i] = by_site[f->free_site[i]];
    f->has_detours = 1;
}

/* A child begins with the lists of its parent. */
static void inherit_detours(context *x, tree_node *child, const tree_node *parent)
{
    size_t clients = (size_t)x->p.clients;
    child->has_detours = parent->has_detours && detours_alloc(x, child);
    if (!child->has_detours)
        return;
    memcpy(child->detours, parent->detours, clients * MOST_DETOURS * sizeof(detour));
    memcpy(child->detour_count, parent->detour_count, clients);
    memcpy(child->detour_rank, parent->detour_rank, clients * sizeof(int));
}

/* ---- Sparse nodes: of a large problem, only the cells that can matter below a state.
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

#define SLACK 1e-12          /* relative: rounding of the reach is no reason to gather */

void cells_release(sparse_cells *m)
{
    release(&m->owned);
    memset(m, 0, sizeof *m);
}

/* Make room for `wanted` cells, keeping those that there are; 0 without memory. */
static int cells_reserve(context *x, sparse_cells *m, size_t wanted)
{
    size_t starts = (size_t)x->p.clients + 1, n = wanted + wanted / 2 + 1024, kept = m->capacity;
    sparse_cells grown = {.capacity = n};
    owned_memory *owned = &grown.owned;
    if (m->start && wanted <= kept)
        return 1;
    grown.start = own(owned, starts, sizeof(size_t));
    grown.site = own(owned, n, sizeof(int));
    grown.rank = own(owned, n, sizeof(int));
    grown.weight = own(owned, n, sizeof(double));
    grown.cost = own(owned, n, sizeof(double));
    grown.beta = own(owned, n, sizeof(double));
    if (!owned->failed && m->start) {
        memcpy(grown.start, m->start, starts * sizeof(size_t));
        memcpy(grown.site, m->site, kept * sizeof(int));
        memcpy(grown.rank, m->rank, kept * sizeof(int));
        memcpy(grown.weight, m->weight, kept * sizeof(double));
        memcpy(grown.cost, m->cost, kept * sizeof(double));
        memcpy(grown.beta, m->beta, kept * sizeof(double));
    }
    cells_release(owned->failed ? &grown : m);
    if (grown.capacity)
        *m = grown;
    return grown.capacity > 0;
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
void update_cells(context *x, tree_node *f, const sparse_cells *from)
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

int sparse_alloc(context *x, tree_node *f)
{
    size_t bytes = (size_t)x->p.padded * sizeof(double) + 8;
    if (!f->plain_cost)
        f->plain_cost = own(&x->owned, bytes, 1);
    if (!f->max_multiplier)
        f->max_multiplier = own(&x->owned, bytes, 1);
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

/* ---- Nodes: the states of the tree, with their cost columns and multipliers. ---- */

/* Make room for `columns` columns; a node keeps its memory when it leaves the stack. */
int node_alloc(context *x, tree_node *f, int columns)
{
    size_t sites = (size_t)x->p.sites, padded = (size_t)x->p.padded;
    size_t wanted = (columns > 0 ? (size_t)columns : 1) * padded + 1;
    if (!f->state) {
        owned_memory *owned = &x->owned;
        f->state = own(owned, sites, 1);
        f->free_site = own(owned, sites, sizeof(int));
        f->in_site = own(owned, sites, sizeof(int));
        f->column = own(owned, sites, sizeof(double *));
        f->fixed_cost = own(owned, padded + 1, sizeof(double));
        f->fixed_rank = own(owned, padded + 2, sizeof(int));
        f->u = own(owned, padded + 1, sizeof(double));
        f->offset = own(owned, padded + 1, sizeof(double));
        f->frequency = own(owned, sites, sizeof(double));
        f->base = own(owned, sites, sizeof(double));
        f->detour = own(owned, sites, sizeof(double));
    }
    if (f->capacity < wanted) {
        free(f->block);
        f->block = malloc(wanted * sizeof(double) + 8);
        f->capacity = f->block ? wanted : 0;
    }
    f->beta = NULL;
    f->has_detours = 0;
    return f->block && !x->owned.failed;
}

void node_free(tree_node *f)
{
    free(f->block);
    cells_release(&f->cells);
}

/* Take the site at `position` off the free list; its own multipliers beta leave every sum. */
void node_drop_site(context *x, tree_node *f, int position, int adjust)
{
    int last = --f->free_count, site = f->free_site[position], padded = x->p.padded;
    f->state[site] = OUT;
    f->free_site[position] = f->free_site[last];
    f->base[position] = f->base[last];
    f->detour[position] = f->detour[last];
    if (f->sparse) {
        f->outdated = 1;
        return;
    }
    f->column[position] = f->column[last];
    if (!f->beta)
        return;
    const double *beta = f->beta + (size_t)site * padded;
    const int *rank = x->p.rank + (size_t)site * padded;
    /* the bound does not fall when u follows */
    subtract_beta(f->u, f->fixed_rank, rank, beta, padded);
    for (int c = 0; c < padded; c++)
        f->u[c] = f->u[c] > 0.0 ? f->u[c] : 0.0;
    if (!adjust)
        return;
    for (int i = 0; i < f->free_count; i++)
        subtract_beta(f->column[i], x->p.rank + (size_t)f->free_site[i] * padded, rank, beta, padded);
    subtract_beta(f->fixed_cost, f->fixed_rank, rank, beta, padded);
    subtract_beta(f->offset, f->fixed_rank, rank, beta, padded);
}

/* Fix a replica at `site`: no client uses a site that it ranks after this one. */
void node_fix_in(context *x, tree_node *f, int site)
{
    const problem *p = &x->p;
    const int *rank = p->rank + (size_t)site * p->padded;
    const double *cost = costs_at(x, site);
    for (int i = 0; i < f->free_count; i++)
        if (f->free_site[i] == site) {
            node_drop_site(x, f, i, 0);
            break;
        }
    f->state[site] = IN;
    f->in_site[f->in_count++] = site;
    if (p->price)
        f->constant += prices_under(p, x->view.leader)[site];
    if (f->sparse) {
        f->outdated = 1;
        stop_at_site(rank, cost, p->padded, f->fixed_rank, f->plain_cost, f->offset);
        return;
    }
    stop_at_site(rank, cost, p->padded, f->fixed_rank, f->fixed_cost, f->offset);
    for (int i = 0; i < f->free_count; i++) {
        const int *other = p->rank + (size_t)f->free_site[i] * p->padded;
        if (!f->shared)
            mask_column(f->column[i], other, f->fixed_rank, p->padded);
        if (f->beta)
            f->base[i] = remaining_beta(f->beta + (size_t)f->free_site[i] * p->padded, other, f->fixed_rank,
                                   rank, p->padded, f->fixed_cost, f->offset, x->scratch.u);
    }
    for (int c = 0; c < p->padded; c++)
        if (f->u[c] > f->fixed_cost[c])
            f->u[c] = f->fixed_cost[c];
}

/* Give a node whose columns are the costs its own, masked ones, with all clients in them. */
void own_columns(context *x, tree_node *f)
{
    size_t padded = (size_t)x->p.padded;
    if (!node_alloc(x, f, f->free_count)) /* then they stay apart */
        return;
    for (int i = 0; i < f->free_count; i++) {
        double *column = f->block + (size_t)i * padded;
        memcpy(column, costs_at(x, f->free_site[i]), padded * sizeof(double));
        mask_column(column, x->p.rank + (size_t)f->free_site[i] * padded, f->fixed_rank, x->p.padded);
        f->column[i] = column;
    }
    f->shared = 0;
    f->light = NULL;
    x->effort.work += (double)f->free_count * x->p.padded;
}

/* Make the root: the node of everything under one leader.
 *
 * `shared`: its columns are the costs themselves, neither copied nor masked. Where the leader alone is certain a mask changes
 * nothing: u never passes the leader's own cost, and a site that a client ranks after the leader costs it no less. With more
 * certain sites it leaves out what is <= 0, so the bound is valid, but weaker.
 *
 * With a `state` (FREE, IN, OUT by site) the node is that of this state below the root instead. */
void node_make_root(context *x, tree_node *f, int leader, int shared, const unsigned char *state)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded;
    f->free_count = f->in_count = 0;
    f->constant = leader < 0 ? 0.0 : p->direct[leader];
    f->bound = 0.0;
    f->beta = NULL;
    f->light = NULL;
    f->is_new = f->root = 1;
    f->shared = shared;
    f->sparse = f->outdated = f->has_beta = f->own_record = 0;
    f->branched_site = -1;
    for (int c = 0; c < p->padded; c++) {
        f->fixed_cost[c] = c < p->clients ? BIG : 0.0;
        f->fixed_rank[c] = INT_MAX;
        f->offset[c] = 0.0;
    }
    for (int j = 0; j < p->sites; j++) {
        int fixed = state ? state[j] == IN : j == leader || p->must_hold[j];
        f->state[j] = OUT;
        f->frequency[j] = 0.5;
        f->base[j] = f->detour[j] = 0.0;
        if (fixed || (state ? state[j] == OUT : !p->may_hold[j]))
            continue;
        f->state[j] = FREE;
        double *cost = x->view.costs + (size_t)j * padded;
        f->column[f->free_count] = shared ? cost : f->block + (size_t)f->free_count * padded;
        if (!shared)
            memcpy(f->column[f->free_count], cost, padded * sizeof(double));
        f->free_site[f->free_count++] = j;
    }
    for (int j = 0; j < p->sites; j++)
        if (state ? state[j] == IN : j == leader || p->must_hold[j])
            node_fix_in(x, f, j);
}

/* `child` becomes `parent` with one more replica. */
void node_make_child(context *x, tree_node *child, const tree_node *parent, int site)
{
    size_t sites = (size_t)x->p.sites, padded = (size_t)x->p.padded;
    child->free_count = parent->free_count;
    child->in_count = parent->in_count;
    memcpy(child->state, parent->state, sites);
    memcpy(child->free_site, parent->free_site, sites * sizeof(int));
    memcpy(child->in_site, parent->in_site, sites * sizeof(int));
    child->light = parent->light;
    child->shared = parent->shared;
    for (int i = 0; i < parent->free_count && parent->shared; i++)
        child->column[i] = parent->column[i];
    for (int i = 0; i < parent->free_count && !parent->sparse && !parent->shared; i++) {
        child->column[i] = child->block + (size_t)i * padded;
        memcpy(child->column[i], parent->column[i], padded * sizeof(double));
    }
    child->sparse = parent->sparse;
    child->outdated = 0;
    child->has_beta = parent->has_beta;
    child->own_record = parent->own_record;
    if (parent->sparse) {
        memcpy(child->plain_cost, parent->plain_cost, padded * sizeof(double));
        memcpy(child->max_multiplier, parent->max_multiplier, padded * sizeof(double));
    }
    memcpy(child->fixed_cost, parent->fixed_cost, padded * sizeof(double));
    memcpy(child->fixed_rank, parent->fixed_rank, padded * sizeof(int));
    memcpy(child->u, parent->u, padded * sizeof(double));
    memcpy(child->frequency, parent->frequency, sites * sizeof(double));
    memcpy(child->base, parent->base, (size_t)parent->free_count * sizeof(double));
    child->beta = parent->beta;
    inherit_detours(x, child, parent);
    memcpy(child->offset, parent->offset, padded * sizeof(double));
    child->bound = parent->bound;
    child->constant = parent->constant;
    child->is_new = 1;
    child->root = 0;
    node_fix_in(x, child, site);
    if (parent->sparse)
        update_cells(x, child, &parent->cells);
}
