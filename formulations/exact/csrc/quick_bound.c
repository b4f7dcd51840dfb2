/* One evaluation of the bound for each of many leaders, without their cost matrices. */
#include <string.h>

#include "kernel.h"

#define BLOCK 1024              /* clients whose weights and multipliers stay in the nearest caches */
#define TOGETHER 16             /* leaders that are looked at in one pass over the RTTs */

/* Put the root of a leader (not -1) in memory, all but its reduced costs, and its multipliers `u` (clients), cut
 * to what they are at most, in `padded` too. */
static void root_to_memory(context *x, int leader, double *u, double *padded)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, row = (size_t)leader;
    turn_to(x, leader);
    x->costed = -2;
    for (int s = 0; s < p->sites; s++)
        if (s == leader || p->must_hold[s])
            costs_of_site(x, leader, s);
    root_open(x, u, 1);
    if (x->stop)
        return;
    frame *f = &x->stack[0];
    memcpy(padded, f->u, (size_t)p->padded * sizeof(double));
    memcpy(u, f->u, (size_t)p->clients * sizeof(double));
    remember_root(x, paid(f->u, f->fixed_cost, p->padded));
    for (int s = 0; s < p->sites; s++)
        x->known_rho[row * S + (size_t)s] = p->price ? p->price[row * S + (size_t)s] : 0.0;
    x->work += (double)f->free_count * p->padded * 0.3 + p->padded * 6.0 + 200.0;
    x->iterations++;
    x->depth = 0;
}

/* Bound up to TOGETHER leaders (not -1) by their multipliers `u` (clients each), which are cut to what they take
 * at most.  The RTTs are read once for all of them: they do not fit into any cache, what is done with
 * them for one leader is soon done. */
static void glance_together(context *x, const int *leader, int count, double *u, double *bounds)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, width = (size_t)p->padded;
    if (!x->together && !(x->together = malloc(TOGETHER * width * sizeof(double) + 8))) {
        x->stop = 1;
        return;
    }
    for (int i = 0; i < count && !x->stop; i++)
        root_to_memory(x, leader[i], u + (size_t)i * (size_t)p->clients, x->together + (size_t)i * width);
    for (size_t first = 0; first < width && !x->stop; first += BLOCK) {
        int cells = (int)(width - first < BLOCK ? width - first : BLOCK);
        for (size_t s = 0; s < S; s++)
            for (int i = 0; i < count && p->may_hold[s]; i++)
                x->known_rho[(size_t)leader[i] * S + s] += gain_from_rtts(
                    p->rtt + s * width + first, p->near_weight + first, p->relay_weight + first,
                    p->site_rtt[s * S + (size_t)leader[i]], x->together + (size_t)i * width + first, cells);
    }
    for (int i = 0; i < count; i++)
        bounds[i] = x->stop ? 0.0 : recall_leader(x, leader[i]);
}

/* One leader alone; returns its bound. */
double glance_leader(context *x, int leader, double *u)
{
    double bound = 0.0;
    glance_together(x, &leader, 1, u, &bound);
    return bound;
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
    double enough = x->work + work, each = 0.3 * x->p.sites * x->p.padded + 200.0;
    while (done < count && !x->stop && (done == 0 || (x->work < enough && !must_pause(x)))) {
        double room = (enough - x->work) / each;
        int together = room < 1.0 ? 1 : room < TOGETHER ? (int)room : TOGETHER;
        if (together > count - done)
            together = count - done;
        glance_together(x, leader + done, together, u + (size_t)done * (size_t)x->p.clients, bounds + done);
        done += together;
    }
    return done;
}
