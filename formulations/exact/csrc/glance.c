/* One evaluation of the bound for each of many leaders, without their cost matrices. */
#include <string.h>

#include "kernel.h"

#define BLOCK 512               /* clients whose weights and multipliers stay in the nearest cache */

/* rho of the free sites under the leader of the frame, straight from the RTTs. */
static void gains_from_rtts(context *x, const frame *f)
{
    const problem *p = &x->p;
    const double *price = p->price ? p->price + (size_t)x->current * p->sites : NULL;
    for (int i = 0; i < f->free_count; i++)
        x->rho[i] = price ? price[f->free_site[i]] : 0.0;
    for (int first = 0; first < p->padded; first += BLOCK) {
        int width = p->padded - first < BLOCK ? p->padded - first : BLOCK;
        for (int i = 0; i < f->free_count; i++) {
            size_t site = (size_t)f->free_site[i];
            double relay = p->site_rtt[site * (size_t)p->sites + (size_t)x->current];
            x->rho[i] += gain_from_rtts(p->rtt + site * (size_t)p->padded + first, p->near_weight + first,
                                        p->relay_weight + first, relay, f->u + first, width);
        }
    }
}

/* Bound a leader (not -1) by its multipliers `u` (clients), which are cut to what it takes at most. */
double glance_leader(context *x, int leader, double *u)
{
    const problem *p = &x->p;
    int count;
    turn_to(x, leader);
    for (int s = 0; s < p->sites; s++)
        if (s == leader || p->must_hold[s])
            costs_of_site(x, leader, s);
    root_open(x, u, 1);
    if (x->stop)
        return 0.0;
    frame *f = &x->stack[0];
    gains_from_rtts(x, f);
    double served = paid(f->u, f->fixed_cost, p->padded), least = inner_minimum(x, f, 0, BIG, &count);
    remember(x, f, served);
    memcpy(u, f->u, (size_t)p->clients * sizeof(double));
    x->work += (double)f->free_count * p->padded * 0.5 + p->padded * 6.0 + 200.0;
    x->iterations++;
    x->depth = 0;
    if (least >= BIG)
        return BIG;
    return f->constant + served + least - bound_error(x, f, served, least, count);
}

/* Guess multipliers `u` of a leader from good ones of another, `from`: a multiplier is about what its client
 * costs, and when the leader changes so does the relay from the nearest replica, taken to be one of the
 * incumbent's. */
void adapt(context *x, const double *from, int other, int leader, double *u)
{
    const problem *p = &x->p;
    for (int c = 0; c < p->clients; c++) {
        size_t near = (size_t)x->replicas[0];
        for (int i = 1; i < x->replica_count; i++) {
            size_t site = (size_t)x->replicas[i];
            if (p->rank[site * (size_t)p->padded + (size_t)c] < p->rank[near * (size_t)p->padded + (size_t)c])
                near = site;
        }
        const double *to = p->site_rtt + near * (size_t)p->sites;
        double changed = from[c] + p->relay_weight[c] * (to[leader] - to[other]);
        u[c] = changed > 0.0 ? changed : 0.0;
    }
    if (x->recording) /* what goes into a proof has few digits */
        coarsen(u, p->clients);
}

/* Glance at leaders in turn, until `work` is done or the caller's limit is reached, but always at the first;
 * returns how many. */
int glance_leaders(context *x, const int *leader, int count, double *u, double work, double *bounds)
{
    int done = 0;
    double enough = x->work + work;
    while (done < count && !x->stop && (done == 0 || (x->work < enough && !must_pause(x)))) {
        bounds[done] = glance_leader(x, leader[done], u + (size_t)done * (size_t)x->p.clients);
        done++;
    }
    return done;
}
