/* The problem under one leader: the cost of every client at every site, and the sites by distance. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* d(site, leader) at the time of a client's row; 0 without a leader. */
double relay_rtt(const problem *p, int client, int site, int leader)
{
    if (leader < 0 || site == leader)
        return 0.0;
    size_t S = (size_t)p->sites, at = (size_t)site * S + (size_t)leader;
    return p->scenarios > 1 ? p->scenario_rtt[(size_t)p->scenario[client] * S * S + at] : p->site_rtt[at];
}

/* End of the run of clients from `first` on, before `end`, that are of one scenario: these are in order. */
int end_of_run(const problem *p, int first, int end)
{
    int c = first + 1;
    if (p->scenarios == 1 || p->scenario[end - 1] == p->scenario[first])
        return end;
    while (p->scenario[c] == p->scenario[first])
        c++;
    return c;
}

/* costs[j][c] = A_c d(c, j) + B_c d(j, leader), for one site j. */
static void costs_of_site(context *x, int leader, int j)
{
    const problem *p = &x->p;
    int several = p->scenarios > 1 && p->relays && leader >= 0;
    double relay = leader < 0 || j == leader || several ? 0.0 : p->site_rtt[(size_t)j * p->sites + leader];
    const double *rtt = p->rtt + (size_t)j * p->padded;
    double *out = x->view.costs + (size_t)j * p->padded;
    x->view.costed[j] = 1;
    for (int c = 0; c < p->padded; c++)
        out[c] = p->near_weight[c] * rtt[c] + p->relay_weight[c] * relay;
    for (int first = 0, end = 0; several && first < p->clients; first = end) {
        end = end_of_run(p, first, p->clients);
        relay = relay_rtt(p, first, j, leader);
        for (int c = first; c < end; c++)
            out[c] += p->relay_weight[c] * relay;
    }
}

/* Sum over the scenarios of D d(leader, site). */
static double total_rtt(const problem *p, int leader, int site)
{
    size_t S = (size_t)p->sites, at = (size_t)leader * S + (size_t)site;
    double total = 0.0;
    for (int k = 0; k < p->scenarios; k++)
        total += p->scenario_weight[k] * p->scenario_rtt[(size_t)k * S * S + at];
    return total;
}

/* Select a leader, with the sites by distance from it (ties: site order). */
void select_leader(context *x, int leader)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites;
    x->view.leader = leader;
    x->view.ordered_is_current = 0;
    if (leader < 0)
        return;
    int *order = x->memory.near_order + (size_t)leader * S;
    if (!x->memory.ordered[leader]) {
        const double *d = p->site_rtt + (size_t)leader * S;
        keyed *sorted = (keyed *)x->scratch.key;
        for (int s = 0; s < p->sites; s++)
            sorted[s] = (keyed){s == leader ? 0.0 : p->scenarios > 1 ? total_rtt(p, leader, s) : d[s], s};
        merge_runs(sorted, p->sites, sorted + p->sites);
        for (int i = 0; i < p->sites; i++)
            order[i] = sorted[i].position;
        x->memory.ordered[leader] = 1;
    }
    memcpy(x->view.near_order, order, S * sizeof(int));
}

/* Select a leader with the costs of all sites. */
void costs_for_leader(context *x, int leader)
{
    int complete = x->view.costed_leader == leader && x->view.moved == 0.0;
    for (int j = 0; j < x->p.sites && !complete; j++)
        costs_of_site(x, leader, j);
    x->view.costed_leader = leader;
    x->view.moved = 0.0;
    if (!complete || x->view.leader != leader)
        select_leader(x, leader);
}

/* The same after the transfers of its tree. */
void costs_of_tree(context *x, int leader)
{
    const cost_transfers *transfers = &tree_of(x, leader)->transfers;
    if (x->view.moved > 0.0 && x->view.costed_leader == leader && x->view.leader == leader)
        return;
    costs_for_leader(x, leader);
    if (transfers->count > 0 && !transfer_costs(x, transfers))
        x->control.out_of_memory = 1;
}

/* The costs before any transfers: the costs of a configuration. */
const double *paid_costs(const context *x)
{
    return x->view.moved > 0.0 ? x->view.paid : x->view.costs;
}

/* Select a leader with the costs of the certain sites alone, the leader among them. */
void costs_of_fixed_sites(context *x, int leader)
{
    select_leader(x, leader);
    x->view.costed_leader = -2;
    x->view.moved = 0.0;
    memset(x->view.costed, 0, (size_t)x->p.sites);
    for (int s = 0; s < x->p.sites; s++)
        if (s == leader || x->p.must_hold[s])
            costs_of_site(x, leader, s);
}

/* The costs at a site under the current leader, who may have been selected without them. */
const double *costs_at(context *x, int site)
{
    if (!x->view.costed[site])
        costs_of_site(x, x->view.leader, site);
    return x->view.costs + (size_t)site * (size_t)x->p.padded;
}

/* The costs of all sites under a leader who may have been selected without them. */
void complete_costs(context *x)
{
    if (x->view.costed_leader != x->view.leader)
        costs_for_leader(x, x->view.leader);
}

/* Select a leader without any costs: for a configuration from outside. */
void leader_without_costs(context *x, int leader)
{
    x->view.leader = leader;
    x->view.costed_leader = -2;
}

/* The costs under the current leader, a client's after another, in its order; 0 without memory. */
int order_costs(context *x)
{
    const problem *p = &x->p;
    size_t sites = (size_t)p->sites, padded = (size_t)p->padded;
    complete_costs(x);
    if (x->view.ordered_is_current)
        return 1;
    if (!x->view.ordered)
        x->view.ordered = malloc(sites * (size_t)p->clients * sizeof(double) + 8);
    if (!x->view.ordered)
        return 0;
    for (size_t c = 0; c < (size_t)p->clients; c++) {
        const int *order = x->p.by_client + c * sites;
        double *out = x->view.ordered + c * sites;
        for (size_t t = 0; t < sites; t++)
            out[t] = x->view.costs[(size_t)order[t] * padded + c];
    }
    x->view.ordered_is_current = 1;
    x->effort.work += (double)sites * p->padded * 3.0;
    return 1;
}
