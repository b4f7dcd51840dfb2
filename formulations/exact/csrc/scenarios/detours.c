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

void find_detours(const scenario_question *q, scenario_bound *b, int a)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    const int *last = b->rank_fixed + (size_t)a * P;
    const double *fixed = b->fixed + (size_t)a * P;
    double *detour = b->detour + (size_t)a * S;
    for (int i = 0; i < b->free_count; i++)
        detour[i] = 0.0;
    if (!s->order)
        return;
    for (int j = 0; j < q->sites; j++)
        b->place[j] = -1;
    for (int i = 0; i < b->free_count; i++)
        if (!s->lost || !s->lost[b->free_site[i]])
            b->place[b->free_site[i]] = i;
    for (int c = 0; c < q->clients; c++) {
        const int *order = s->order + (size_t)c * S;
        double most = BIG; /* M of the site before, at `before` */
        int before = -1;
        if (last[c] >= q->sites)
            continue; /* no replica is fixed */
        for (int k = 0; k < last[c] && most > fixed[c]; k++) {
            int i = b->place[order[k]];
            if (i < 0)
                continue;
            double cost = s->cost[(size_t)order[k] * P + (size_t)c], next = cost < most ? cost : most;
            next = next > fixed[c] ? next : fixed[c];
            if (before >= 0)
                detour[before] += most - next;
            most = next;
            before = i;
        }
        if (before >= 0)
            detour[before] += most - fixed[c];
    }
}
