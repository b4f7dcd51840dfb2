/* Bounds of leaders for another |R| by the multipliers of the last one.
 *
 * At given multipliers the reduced costs rho of a leader do not depend on the number of replicas, only the
 * inner problem does. So they are kept whenever a leader is bounded, and after set_replica_range the bound of the new
 * size costs a selection among the sites, with no pass over the clients. */
#include <string.h>

#include "kernel.h"

/* The row of a leader in arrays by leader. */
size_t memory_row(const context *x, int leader)
{
    return leader < 0 ? (size_t)x->p.sites : (size_t)leader;
}

int memory_prepare(context *x)
{
    size_t rows = (size_t)x->p.sites + 1, S = (size_t)x->p.sites;
    x->memory.rho = malloc(rows * S * sizeof(double));
    x->memory.near_order = malloc(rows * S * sizeof(int));
    x->memory.served = malloc(rows * sizeof(double));
    x->memory.stored = calloc(rows, 1);
    return x->memory.rho && x->memory.near_order && x->memory.served && x->memory.stored;
}

void memory_free(context *x)
{
    free(x->memory.rho);
    free(x->memory.near_order);
    free(x->memory.served);
    free(x->memory.stored);
}

/* Keep x->inner.rho, which must be that of the root `f` at f->u; `served` is the sum of min(u, fixed_cost) there. */
void store_reduced_costs(context *x, const tree_node *f, double served)
{
    size_t S = (size_t)x->p.sites, row = memory_row(x, x->view.leader);
    double *rho = x->memory.rho + row * S;
    for (int i = 0; i < f->free_count; i++)
        rho[f->free_site[i]] = x->inner.rho[i];
    store_root(x, served);
}

/* Keep of the leader under work what does not depend on a site: the order of the sites, and `served`. */
void store_root(context *x, double served)
{
    size_t S = (size_t)x->p.sites, row = memory_row(x, x->view.leader);
    if (x->view.leader >= 0 && !x->memory.stored[row])
        memcpy(x->memory.near_order + row * S, x->view.near_order, S * sizeof(int));
    x->memory.served[row] = served;
    x->memory.stored[row] = 1;
}

/* Make the root of a leader as far as the inner problem needs it: no costs, nothing about clients. */
static void root_without_costs(context *x, tree_node *f, int leader)
{
    const problem *p = &x->p;
    const double *price = p->price ? p->price + (size_t)(leader < 0 ? 0 : leader) * (size_t)p->sites : NULL;
    f->free_count = f->in_count = 0;
    f->constant = leader < 0 ? 0.0 : p->direct[leader];
    f->beta = NULL;
    f->sparse = f->outdated = f->has_beta = f->has_detours = 0;
    for (int s = 0; s < p->sites; s++) {
        if (s == leader || p->must_hold[s]) {
            f->state[s] = IN;
            f->in_site[f->in_count++] = s;
            f->constant += price ? price[s] : 0.0;
        } else if (p->may_hold[s]) {
            f->state[s] = FREE;
            f->base[f->free_count] = 0.0;
            f->free_site[f->free_count++] = s;
        } else
            f->state[s] = OUT;
    }
}

/* Bound a leader for the present |R| by the multipliers that it was last bounded with; -BIG when there are none. */
double bound_from_memory(context *x, int leader)
{
    const problem *p = &x->p;
    tree_node *f = &x->tree.stack[0];
    size_t S = (size_t)p->sites, row = memory_row(x, leader);
    const double *rho = x->memory.rho + row * S;
    int count;
    if (!x->memory.stored[row])
        return -BIG;
    x->tree.depth = 0;
    if (!node_alloc(x, f, 0)) {
        x->control.out_of_memory = 1;
        return -BIG;
    }
    x->view.leader = leader;
    if (leader >= 0)
        memcpy(x->view.near_order, x->memory.near_order + row * S, S * sizeof(int));
    root_without_costs(x, f, leader);
    for (int i = 0; i < f->free_count; i++)
        x->inner.rho[i] = rho[f->free_site[i]];
    double served = x->memory.served[row];
    closing_minimum(x, served, f->constant);
    double least = inner_minimum(x, f, 0, BIG, &count);
    x->effort.work += 8.0 * p->sites + 200.0;
    if (least >= BIG)
        return BIG;
    double error = bound_error(x, f, served, least, count);
    return f->constant + served + least - error;
}

/* Swaps from the incumbent under one leader. */
void descend_under_leader(context *x, int leader, int swaps)
{
    int *set = x->scratch.sites + x->p.sites, count;
    costs_for_leader(x, leader);
    count = start_set(x, set);
    if (count)
        swap_descent(x, set, count, swaps);
}

/* Bound leaders for the present |R| by the multipliers that each was last bounded with, and improve the
 * incumbent by descents of at most `swaps` swaps under its own leader and under those of the least bounds.
 * Returns how many are bounded; bounds of those that were never bounded stay as they are. */
int bounds_from_memory(context *x, const int *leader, int count, int swaps, double *bounds)
{
    int done = 0;
    x->tree.closed = BIG;
    for (int i = 0; i < count && !x->control.out_of_memory; i++)
        if (x->memory.stored[memory_row(x, leader[i])]) {
            bounds[i] = bound_from_memory(x, leader[i]);
            done++;
        }
    int first = x->best.leader, tried[DESCENTS], tries = 0;
    if (swaps > 0 && x->best.score < BIG)
        descend_under_leader(x, first, swaps);
    while (swaps > 0 && tries < DESCENTS && !must_pause(x)) {
        int least = -1;
        for (int i = 0; i < count; i++) {
            int fresh = leader[i] != first && x->memory.stored[memory_row(x, leader[i])] && bounds[i] < x->best.cutoff;
            for (int k = 0; k < tries && fresh; k++)
                fresh = tried[k] != i;
            if (fresh && (least < 0 || bounds[i] < bounds[least]))
                least = i;
        }
        if (least < 0)
            break;
        tried[tries++] = least;
        descend_under_leader(x, leader[least], swaps);
    }
    return done;
}
