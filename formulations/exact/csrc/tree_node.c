/* Nodes: the states of the tree, with their cost columns and multipliers. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Make room for `columns` columns; a node keeps its memory when it leaves the stack. */
int node_alloc(context *x, tree_node *f, int columns)
{
    size_t sites = (size_t)x->p.sites, padded = (size_t)x->p.padded;
    size_t wanted = (columns > 0 ? (size_t)columns : 1) * padded + 1;
    if (!f->state) {
        f->state = malloc(sites);
        f->free_site = malloc(sites * sizeof(int));
        f->in_site = malloc(sites * sizeof(int));
        f->column = malloc(sites * sizeof(double *));
        f->fixed_cost = malloc(padded * sizeof(double) + 8);
        f->fixed_rank = malloc(padded * sizeof(int) + 8);
        f->u = malloc(padded * sizeof(double) + 8);
        f->offset = malloc(padded * sizeof(double) + 8);
        f->frequency = malloc(sites * sizeof(double));
        f->base = malloc(sites * sizeof(double));
        f->detour = malloc(sites * sizeof(double));
    }
    if (f->capacity < wanted) {
        free(f->block);
        f->block = malloc(wanted * sizeof(double) + 8);
        f->capacity = f->block ? wanted : 0;
    }
    f->beta = NULL;
    f->has_detours = 0;
    return f->state && f->free_site && f->in_site && f->column && f->block && f->fixed_cost &&
           f->fixed_rank && f->u && f->offset && f->frequency && f->base && f->detour;
}

void node_free(tree_node *f)
{
    free(f->state);
    free(f->free_site);
    free(f->in_site);
    free(f->column);
    free(f->block);
    free(f->fixed_cost);
    free(f->fixed_rank);
    free(f->u);
    free(f->offset);
    free(f->frequency);
    free(f->base);
    free(f->detour);
    free_detours(f);
    free(f->own_beta);
    free(f->plain_cost);
    free(f->max_multiplier);
    cells_release(&f->cells);
    memset(f, 0, sizeof(*f));
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
    const double *cost = x->view.costs + (size_t)site * p->padded;
    for (int i = 0; i < f->free_count; i++)
        if (f->free_site[i] == site) {
            node_drop_site(x, f, i, 0);
            break;
        }
    f->state[site] = IN;
    f->in_site[f->in_count++] = site;
    if (p->price)
        f->constant += p->price[(size_t)(x->view.leader < 0 ? 0 : x->view.leader) * p->sites + site];
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

/* Make the root: the node of everything under one leader.
 *
 * `shared`: its columns are the costs themselves, neither copied nor masked, so it must not be branched
 * on. Where the leader alone is certain a mask changes nothing: u never passes the leader's own cost, and
 * a site that a client ranks after the leader costs it no less. With more certain sites it leaves out
 * what is <= 0, so the bound is valid, but weaker.
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
    for (int i = 0; i < parent->free_count && !parent->sparse; i++) {
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
    child->root = child->shared = 0;
    node_fix_in(x, child, site);
    if (parent->sparse)
        derive_cells(x, child, parent);
}
