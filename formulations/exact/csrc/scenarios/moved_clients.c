/* Losses whose clients turn to another site: with separate costs and orders of preference. See losses.h. */
#include <limits.h>
#include <string.h>

#include "losses.h"

int moved_prepare(loss_problem *x)
{
    moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded;
    m->count = 0;
    m->slot = malloc(((size_t)x->losses + 1) * sizeof(int));
    if (!m->slot)
        return 0;
    for (int l = 0; l < x->losses; l++)
        m->slot[l] = m->moves && m->moves[l] ? m->count++ : -1;
    if (!m->count)
        return 1;
    m->rank = malloc((size_t)m->count * S * P * sizeof(int) + 8);
    m->cost = malloc((size_t)m->count * S * P * sizeof(double) + 8);
    m->site_order = calloc((size_t)m->count, sizeof(int *));
    if (!m->rank || !m->cost || !m->site_order)
        return 0;
    for (int l = 0; l < x->losses; l++) {
        if (m->slot[l] < 0)
            continue;
        int *rank = m->rank + (size_t)m->slot[l] * S * P;
        memcpy(rank, x->rank, S * P * sizeof(int));
        for (int r = m->start[l]; r < m->start[l + 1]; r++)
            for (int k = 0; k < x->sites; k++)
                rank[(size_t)m->order[(size_t)r * S + (size_t)k] * P + (size_t)m->client[r]] = k;
        if (!(m->site_order[m->slot[l]] = sites_in_order(rank, x->clients, x->sites, P)))
            return 0;
    }
    return 1;
}

void moved_free(moved_clients *m)
{
    free(m->moves);
    free(m->start);
    free(m->client);
    free(m->rtt);
    free(m->order);
    free(m->direct);
    free(m->slot);
    for (int k = 0; k < m->count && m->site_order; k++)
        free(m->site_order[k]);
    free(m->site_order);
    free(m->rank);
    free(m->cost);
}

void moved_scenario(loss_problem *x, int loss, const double *cost, const int *leaders, int count, scenario *one)
{
    moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded, at = (size_t)m->slot[loss] * S * P;
    memcpy(m->cost + at, cost, S * P * sizeof(double));
    for (int j = 0; j < x->sites; j++) {
        double hop = 0.0;
        int before = -1;
        for (int r = m->start[loss]; r < m->start[loss + 1]; r++) {
            int c = m->client[r], interval = interval_of(x, c);
            if (interval != before)
                hop = least_hop(x, interval, j, leaders, count);
            before = interval;
            m->cost[at + (size_t)j * P + (size_t)c] =
                x->near_weight[c] * m->rtt[(size_t)r * S + (size_t)j] + x->relay_weight[c] * hop;
        }
    }
    one->cost = m->cost + at;
    one->rank = m->rank + at;
    one->order = count > 1 ? NULL : order_of_detours(&x->question, one->cost, m->site_order[m->slot[loss]]);
}

void moved_reads(loss_problem *x, int loss, const int *site, int count, replica_mask gone, double *read, double *relay)
{
    const moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded;
    const int *rank = m->rank + (size_t)m->slot[loss] * S * P;
    for (int r = m->start[loss]; r < m->start[loss + 1]; r++) {
        int c = m->client[r], before = -1, after = -1, least = INT_MAX, next = INT_MAX;
        for (int i = 0; i < count; i++) {
            size_t at = (size_t)site[i] * P + (size_t)c;
            if ((gone >> i) & 1)
                continue;
            if (x->rank[at] < least) {
                least = x->rank[at];
                before = i;
            }
            if (rank[at] < next) {
                next = rank[at];
                after = i;
            }
        }
        if (before < 0)
            continue; /* no replica is left: no quorum either */
        *read += x->near_weight[c] * (m->rtt[(size_t)r * S + (size_t)site[after]] - x->rtt[(size_t)site[before] * P + (size_t)c]);
        size_t first = (size_t)interval_of(x, c) * MOST_REPLICAS;
        relay[first + (size_t)before] -= x->relay_weight[c];
        relay[first + (size_t)after] += x->relay_weight[c];
    }
    x->effort += 2.0 * (m->start[loss + 1] - m->start[loss]) * count;
}
