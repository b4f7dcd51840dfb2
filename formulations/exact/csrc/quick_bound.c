/* Evaluate the bound once for each of many leaders, without their cost matrices. */
#include <string.h>

#include "kernel.h"

/* Put the root of a leader (not -1) in memory, all but its reduced costs, and its multipliers `u` (clients), cut
 * to what they are at most, in `padded` too. */
static void store_quick_root(context *x, int leader, double *u, double *padded)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, row = (size_t)leader;
    costs_of_fixed_sites(x, leader);
    open_root(x, u, 1);
    if (x->control.out_of_memory)
        return;
    tree_node *f = &x->tree.stack[0];
    memcpy(padded, f->u, (size_t)p->padded * sizeof(double));
    memcpy(u, f->u, (size_t)p->clients * sizeof(double));
    store_root(x, served_cost(f->u, f->fixed_cost, p->padded));
    for (int s = 0; s < p->sites; s++)
        x->memory.rho[row * S + (size_t)s] = p->price ? p->price[row * S + (size_t)s] : 0.0;
    x->effort.work += (double)f->free_count * p->padded * 0.3 + p->padded * 6.0 + 200.0;
    x->effort.evaluations++;
    x->tree.depth = 0;
}

/* The reduced cost of a site of the clients from `first` on, where the RTT to the leader differs by client: run by run of
 * clients of one scenario. What of a run fills no padded block is added up one by one. */
static double reduced_cost_by_scenario(const problem *p, int leader, int site, const double *u, int first, int cells)
{
    const double *rtt = p->rtt + (size_t)site * (size_t)p->padded, *near = p->near_weight, *weight = p->relay_weight;
    double sum = 0.0;
    int end = first + cells < p->clients ? first + cells : p->clients;
    for (int c = first; c < end;) {
        int stop = end_of_run(p, c, end);
        double relay = relay_rtt(p, c, site, leader);
        while (c < stop) {
            int blocks = c % PAD == 0 ? (stop - c) / PAD * PAD : 0;
            if (blocks) {
                sum += reduced_cost_from_rtts(rtt + c, near + c, weight + c, relay, u + c, blocks);
                c += blocks;
                continue;
            }
            double cost = near[c] * rtt[c] + weight[c] * relay - u[c];
            sum += cost < 0.0 ? cost : 0.0;
            c++;
        }
    }
    return sum;
}

/* Bound up to LEADERS_PER_PASS leaders (not -1) by their multipliers `u` (clients each), which are cut to what they take
 * at most.  The RTTs are read once for all of them: they do not fit into any cache, and the work on
 * them for one leader is short. */
static void quick_bound_block(context *x, const int *leader, int count, double *u, double *bounds)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, width = (size_t)p->padded;
    if (!x->scratch.block_u && !(x->scratch.block_u = malloc(LEADERS_PER_PASS * width * sizeof(double) + 8))) {
        x->control.out_of_memory = 1;
        return;
    }
    for (int i = 0; i < count && !x->control.out_of_memory; i++)
        store_quick_root(x, leader[i], u + (size_t)i * (size_t)p->clients, x->scratch.block_u + (size_t)i * width);
    for (size_t first = 0; first < width && !x->control.out_of_memory; first += BLOCK_CLIENTS) {
        int cells = (int)(width - first < BLOCK_CLIENTS ? width - first : BLOCK_CLIENTS);
        for (size_t s = 0; s < S; s++)
            for (int i = 0; i < count && p->may_hold[s]; i++)
                x->memory.rho[(size_t)leader[i] * S + s] +=
                    p->scenarios > 1
                        ? reduced_cost_by_scenario(p, leader[i], (int)s, x->scratch.block_u + (size_t)i * width, (int)first,
                                                   cells)
                        : reduced_cost_from_rtts(p->rtt + s * width + first, p->near_weight + first,
                                                 p->relay_weight + first, p->relay_rtt[s * S + (size_t)leader[i]],
                                                 x->scratch.block_u + (size_t)i * width + first, cells);
    }
    for (int i = 0; i < count; i++)
        bounds[i] = x->control.out_of_memory ? 0.0 : bound_from_memory(x, leader[i]);
}

/* Return the bound of one leader alone. */
double quick_bound(context *x, int leader, double *u)
{
    double bound = 0.0;
    quick_bound_block(x, &leader, 1, u, &bound);
    return bound;
}

/* Guess multipliers `u` of a leader from good ones of another, `from`: a multiplier is about what its client
 * costs, and when the leader changes so does the relay from the nearest replica, taken to be one of the
 * incumbent's. */
void adapt_multipliers(context *x, const double *from, int other, int leader, double *u)
{
    const problem *p = &x->p;
    for (int c = 0; c < p->clients; c++) {
        size_t near = (size_t)x->best.replicas[0];
        for (int i = 1; i < x->best.count; i++) {
            size_t site = (size_t)x->best.replicas[i];
            if (p->rank[site * (size_t)p->padded + (size_t)c] < p->rank[near * (size_t)p->padded + (size_t)c])
                near = site;
        }
        double later = relay_rtt(p, c, (int)near, leader) - relay_rtt(p, c, (int)near, other);
        double changed = from[c] + p->relay_weight[c] * later;
        u[c] = changed > 0.0 ? changed : 0.0;
    }
    if (x->proof.recording) /* multipliers of a proof have few digits */
        round_multipliers(u, p->clients);
}

/* Bound leaders in turn, one evaluation each, until `work` is done or the caller's limit is reached, but always at the first;
 * returns how many. */
int quick_bounds(context *x, const int *leader, int count, double *u, double work, double *bounds)
{
    int done = 0;
    double enough = x->effort.work + work, each = 0.3 * x->p.sites * x->p.padded + 200.0;
    while (done < count && !x->control.out_of_memory && (done == 0 || (x->effort.work < enough && !must_pause(x)))) {
        double room = (enough - x->effort.work) / each;
        int block = room < 1.0 ? 1 : room < LEADERS_PER_PASS ? (int)room : LEADERS_PER_PASS;
        if (block > count - done)
            block = count - done;
        quick_bound_block(x, leader + done, block, u + (size_t)done * (size_t)x->p.clients, bounds + done);
        done += block;
    }
    return done;
}
