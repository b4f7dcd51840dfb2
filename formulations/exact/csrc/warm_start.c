/* What the multipliers of one |R| say about another.
 *
 * At given multipliers the reduced costs rho of a leader do not depend on the number of replicas, only the
 * inner problem does. So they are kept with every look at a leader, and after `resize` the bound of the new
 * size costs a selection among the sites, with no pass over the clients. */
#include <string.h>

#include "kernel.h"

#define DESCENTS 1            /* as many as the first scan of a problem makes; found by measuring */

int memory_prepare(context *x)
{
    size_t rows = (size_t)x->p.sites + 1, S = (size_t)x->p.sites;
    x->known_rho = malloc(rows * S * sizeof(double));
    x->known_near = malloc(rows * S * sizeof(int));
    x->known_served = malloc(rows * sizeof(double));
    x->known = calloc(rows, 1);
    return x->known_rho && x->known_near && x->known_served && x->known;
}

void memory_free(context *x)
{
    free(x->known_rho);
    free(x->known_near);
    free(x->known_served);
    free(x->known);
}

/* Keep x->rho, which must be that of the root `f` at f->u; `served` is the sum of min(u, fixed_cost) there. */
void remember(context *x, const frame *f, double served)
{
    size_t S = (size_t)x->p.sites, row = row_of(x, x->current);
    double *rho = x->known_rho + row * S;
    for (int i = 0; i < f->free_count; i++)
        rho[f->free_site[i]] = x->rho[i];
    remember_root(x, served);
}

/* Keep of the leader under work what does not depend on a site: the order of the sites, and `served`. */
void remember_root(context *x, double served)
{
    size_t S = (size_t)x->p.sites, row = row_of(x, x->current);
    if (x->current >= 0 && !x->known[row])
        memcpy(x->known_near + row * S, x->near_order, S * sizeof(int));
    x->known_served[row] = served;
    x->known[row] = 1;
}

/* The root of a leader as far as the inner problem looks at it: no costs, nothing about clients. */
static void root_sites(context *x, frame *f, int leader)
{
    const problem *p = &x->p;
    const double *price = p->price ? p->price + (size_t)(leader < 0 ? 0 : leader) * (size_t)p->sites : NULL;
    f->free_count = f->in_count = 0;
    f->constant = leader < 0 ? 0.0 : p->direct[leader];
    f->beta = NULL;
    f->sparse = f->stale = f->charged = 0;
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

/* Bound a leader for the present |R| by the multipliers at which it was last looked at; -BIG when it never was. */
double recall_leader(context *x, int leader)
{
    const problem *p = &x->p;
    frame *f = &x->stack[0];
    size_t S = (size_t)p->sites, row = row_of(x, leader);
    const double *rho = x->known_rho + row * S;
    int count;
    if (!x->known[row])
        return -BIG;
    x->depth = 0;
    if (!frame_alloc(x, f, 0)) {
        x->stop = 1;
        return -BIG;
    }
    x->current = leader;
    if (leader >= 0)
        memcpy(x->near_order, x->known_near + row * S, S * sizeof(int));
    root_sites(x, f, leader);
    f->open = x->span.on ? span_open(x, leader) : 0;
    for (int i = 0; i < f->free_count; i++)
        x->rho[i] = rho[f->free_site[i]];
    double served = x->known_served[row], least = inner_minimum(x, f, 0, BIG, &count);
    x->work += 8.0 * p->sites + 200.0;
    if (least >= BIG)
        return BIG;
    double error = bound_error(x, f, served, least, count);
    if (x->span.on) {
        span_close(x, f, f->constant + served, error);
        span_note(x, leader, f->open);
    }
    return f->constant + served + least - error;
}

/* Swaps from the incumbent under one leader. */
void descend_under(context *x, int leader, int swaps)
{
    int *set = x->near_free + x->p.sites, count;
    costs_for_leader(x, leader);
    count = start_set(x, set);
    if (count)
        descend(x, set, count, swaps);
}

/* Bound leaders for the present |R| by the multipliers at which they were last looked at, and improve the
 * incumbent by descents of at most `swaps` swaps under its own leader and under those of the least bounds.
 * Returns how many are bounded; bounds of those that were never looked at stay as they are. */
int recall_leaders(context *x, const int *leader, int count, int swaps, double *bounds)
{
    int done = 0;
    x->closed = BIG;
    for (int i = 0; i < count && !x->stop; i++)
        if (x->known[row_of(x, leader[i])]) {
            bounds[i] = recall_leader(x, leader[i]);
            done++;
        }
    int first = x->leader, tried[DESCENTS], tries = 0;
    if (swaps > 0 && x->score < BIG)
        descend_under(x, first, swaps);
    while (swaps > 0 && tries < DESCENTS && !must_pause(x)) {
        int least = -1;
        for (int i = 0; i < count; i++) {
            int fresh = leader[i] != first && x->known[row_of(x, leader[i])] && bounds[i] < x->cutoff;
            for (int k = 0; k < tries && fresh; k++)
                fresh = tried[k] != i;
            if (fresh && (least < 0 || bounds[i] < bounds[least]))
                least = i;
        }
        if (least < 0)
            break;
        tried[tries++] = least;
        descend_under(x, leader[least], swaps);
    }
    return done;
}
