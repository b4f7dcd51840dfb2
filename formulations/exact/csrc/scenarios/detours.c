/* Detours: clients that a replica takes away from a less preferred one at which they would pay less.
 *
 * Let f be the client's first fixed replica, w its cost there, and 1, 2, ..., p the free sites that the client prefers to f,
 * the most preferred first, with costs w_1, ..., w_p. With M_i = max(w, min(w_1, ..., w_i)) and M_(p+1) = w let
 *
 *   r_i = M_i - M_(i+1) >= 0.
 *
 * For any u and any set of the free sites, the client pays at least min(u, w) + sum over the sites i of the set of
 * ( r_i + min(0, w_i - u) ). Proof: let i be the first of them, where the client is served. The r of the set sum up to
 * M_i - w at most. Where M_i = w, all of them are 0, and the rest is the bound without detours. Else w_i >= M_i, which is at
 * least min(u, w) + M_i - w.
 *
 * So the sum of r_i over the clients is a price of the site i that depends on the state, but not on the multipliers. It binds
 * where reads are relayed to a leader: nearly every site that is not on the way to it makes a detour. */
#include <string.h>

#include "scenario.h"

const int *order_of_detours(const scenario_question *q, const double *cost, const int *order)
{
    size_t S = (size_t)q->sites, P = (size_t)q->padded;
    for (size_t c = 0; c < (size_t)q->clients; c++)
        for (size_t k = 1; k < S; k++)
            if (cost[(size_t)order[c * S + k - 1] * P + c] > cost[(size_t)order[c * S + k] * P + c])
                return order;
    return NULL;
}

int *sites_in_order(const int *rank, int clients, int sites, size_t padded)
{
    size_t S = (size_t)sites, C = (size_t)clients;
    int *order = malloc(C * S * sizeof(int) + 8);
    for (size_t j = 0; order && j < S; j++)
        for (size_t c = 0; c < C; c++)
            order[c * S + (size_t)rank[j * padded + c]] = (int)j;
    return order;
}

/* Add the detours of client c over the sites before that of rank `last`, where it pays `fixed`. */
static void add_detours(const scenario_question *q, const scenario *s, const int *place, int c, int last, double fixed,
                        double *detour)
{
    size_t P = (size_t)q->padded;
    const int *order = s->order + (size_t)c * (size_t)q->sites;
    double most = BIG; /* M of the free site `before` */
    int before = -1;
    for (int k = 0; k < last && most > fixed; k++) {
        int i = place[order[k]];
        if (i < 0)
            continue;
        double cost = s->cost[(size_t)order[k] * P + (size_t)c], next = cost < most ? cost : most;
        next = next > fixed ? next : fixed;
        if (before >= 0)
            detour[before] += most - next;
        most = next;
        before = i;
    }
    if (before >= 0)
        detour[before] += most - fixed;
}

/* The detours of a scenario that loses replicas of `unlost` alone, which has the same costs: only the clients of those
 * replicas have others. */
static void change_detours(const scenario_question *q, scenario_bound *b, int a, int unlost)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    const int *last = b->rank_fixed + (size_t)a * P, *before = b->rank_fixed + (size_t)unlost * P;
    double *detour = b->detour + (size_t)a * S;
    for (int j = 0; j < q->sites; j++)
        for (int i = 0; b->of_fixed[j] && !s->lost[j] && i < b->free_count; i++)
            detour[i] += b->by_fixed[(size_t)j * S + (size_t)i];
    for (int c = 0; c < q->clients; c++)
        if (last[c] != before[c] && last[c] < q->sites)
            add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], detour);
}

void find_detours(const scenario_question *q, scenario_bound *b, int a)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    const int *last = b->rank_fixed + (size_t)a * P;
    double *detour = b->detour + (size_t)a * S;
    int all = 1; /* every free site serves clients */
    for (int i = 0; i < b->free_count; i++)
        detour[i] = 0.0;
    if (!s->order)
        return;
    for (int j = 0; j < q->sites; j++)
        b->place[j] = -1;
    for (int i = 0; i < b->free_count; i++)
        if (!s->lost || !s->lost[b->free_site[i]])
            b->place[b->free_site[i]] = i;
        else
            all = 0;
    if (b->unlost >= 0 && all && s->lost && q->scenario[b->which[b->unlost]].cost == s->cost &&
        q->scenario[b->which[b->unlost]].rank == s->rank) {
        change_detours(q, b, a, b->unlost);
        return;
    }
    if (s->lost) {
        for (int c = 0; c < q->clients; c++)
            if (last[c] < q->sites) /* a replica is fixed */
                add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], detour);
        return;
    }
    memset(b->of_fixed, 0, S);
    for (int c = 0; c < q->clients; c++) {
        if (last[c] >= q->sites)
            continue;
        size_t site = (size_t)s->order[(size_t)c * S + (size_t)last[c]];
        double *own = b->by_fixed + site * S;
        if (!b->of_fixed[site])
            memset(own, 0, (size_t)b->free_count * sizeof(double));
        b->of_fixed[site] = 1;
        add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], own);
    }
    for (size_t j = 0; j < S; j++)
        for (int i = 0; b->of_fixed[j] && i < b->free_count; i++)
            detour[i] += b->by_fixed[j * S + (size_t)i];
    b->unlost = a;
}
