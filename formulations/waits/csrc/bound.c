/* Lower bounds on all sets that begin alike: independent clients, and Lagrangean. */
#include <math.h>
#include <string.h>
#include "sets.h"

#define ROUNDING 1e-11 /* of all that was added: what sums in doubles can be wrong by, and more */

double cutoff(const sets *x) { return x->found ? x->value * (1 + 1e-12) : INFINITY; }

/* Least near costs, waits of the nearest replica included, of each free site for each client that it
   may become nearest to; `fixed`: those of the nearest chosen site, which may stay. */
static double independent(sets *x, int depth, int from, int free)
{
    const int C = x->clients, S = x->sites;
    const double *distance = x->distance + (long)depth * C;
    const int32_t *nearest = x->nearest + (long)depth * C;
    for (int j = 0; j < x->terms; j++)
        if (x->term[j].origin == NEAR)
            for (int s = 0; s < S; s++)
                x->wait[(long)j * S + s] =
                    x->member[s] || s >= from ? least_wait(x, x->term + j, s, depth, from, free) : 0;
    for (int c = 0; c < C; c++) {
        double cost = INFINITY;
        if (depth) {
            cost = x->near_cost[(long)nearest[c] * C + c];
            for (int j = 0; j < x->terms; j++)
                if (x->term[j].origin == NEAR && x->term[j].weight[c] > 0)
                    cost += x->term[j].weight[c] * x->wait[(long)j * S + nearest[c]];
        }
        x->fixed[c] = x->price[c] = cost;
    }
    for (int s = from; s < S; s++) {
        const double *d = x->by_site + (long)s * C, *near = x->near_cost + (long)s * C;
        double *w = x->cost + (long)s * C;
        if (x->member[s] || x->out[s]) {
            for (int c = 0; c < C; c++)
                w[c] = INFINITY;
            continue;
        }
        memcpy(w, near, (size_t)C * sizeof *w);
        for (int j = 0; j < x->terms; j++)
            if (x->term[j].origin == NEAR)
                add_wait(w, x->term[j].weight, x->wait[(long)j * S + s], C);
        take_nearer(w, d, depth ? distance : x->nowhere, x->price, C);
    }
    return sum_of(x->price, C);
}

/* Sum of the `free` least prices of sites that may come. */
static double least_paid(const sets *x, int from, int free)
{
    double least[MOST_MEMBERS + 1], sum = 0;
    int count = 0;
    if (!x->priced)
        return 0;
    for (int s = from; s < x->sites; s++) {
        if (x->member[s] || x->out[s])
            continue;
        int j = count < free ? count++ : free;
        for (; j > 0 && least[j - 1] > x->paid[s]; j--)
            least[j] = least[j - 1];
        least[j] = x->paid[s];
    }
    for (int j = 0; j < count; j++)
        sum += least[j];
    return sum;
}

/* Sum of the `free` least reduced costs, with the prices of their sites, which are marked in `held`. */
static double reductions(sets *x, int from, int free, const double *price)
{
    const int C = x->clients;
    double least[MOST_MEMBERS];
    int count = 0;
    for (int s = from; s < x->sites; s++) {
        double sum = x->priced ? INFINITY : 0;
        if (!x->member[s] && !x->out[s])
            sum = reduced_cost(x->cost + (long)s * C, price, C) + x->paid[s];
        x->trial[s] = sum;
        int j = count < free ? count++ : free;
        for (; j > 0 && least[j - 1] > sum; j--)
            if (j < free) {
                least[j] = least[j - 1];
                x->held[j] = x->held[j - 1];
            }
        if (j < free) {
            least[j] = sum;
            x->held[j] = s;
        }
    }
    double sum = 0;
    for (int j = 0; j < count; j++)
        sum += least[j];
    return sum;
}

/* Prices of the clients, at most what the fixed nearest site costs each; subgradient steps. The best bound is kept by depth,
   with `rest`, which is no part of it, and what each site changes. */
static double lagrangean(sets *x, int depth, int from, int free, double rest, double enough, double target)
{
    const int C = x->clients, steps = free >= 4 ? 12 : free == 3 ? 4 : 1;
    double best = -INFINITY, size = 1;
    memcpy(x->price, x->fixed, (size_t)C * sizeof *x->price);
    for (int step = 0;; step++) {
        double less = reductions(x, from, free, x->price), sum = sum_of(x->price, C), paid = 0;
        for (int j = 0; x->priced && j < free && from + j < x->sites; j++)
            paid += x->paid[x->held[j]];
        double base = sum - ROUNDING * (sum - less + 2 * paid), bound = base + less;
        if (bound > best) {
            best = bound;
            x->base[2 * depth] = rest + base;
            x->base[2 * depth + 1] = rest + bound;
            memcpy(x->change + (long)depth * x->sites + from, x->trial + from,
                   (size_t)(x->sites - from) * sizeof *x->trial);
        }
        if (best > enough || step == steps || !(target < INFINITY))
            return best;
        for (int c = 0; c < C; c++)
            x->slope[c] = 1;
        for (int j = 0; j < free && from + j < x->sites; j++)
            subtract_served(x->cost + (long)x->held[j] * C, x->price, x->slope, C);
        double norm = hold_slopes(x->price, x->fixed, x->slope, C);
        if (norm == 0)
            return best;
        step_prices(x->price, x->slope, size * (target - bound) / norm, x->fixed, C);
        size *= 0.8;
    }
}

double prefix_bound(sets *x, int depth, int from)
{
    const int free = x->size - depth;
    double sum = x->constant + x->spent[depth], most = cutoff(x);
    x->base[2 * depth + 1] = -INFINITY;
    if (x->sites - from < free)
        return INFINITY;
    for (int j = 0; j < x->terms; j++) {
        const term *t = x->term + j;
        if (x->paired[j])
            continue;
        if (t->origin == LEADER && x->leader >= 0)
            sum += t->leader * least_wait(x, t, x->leader, depth, from, free);
        for (int c = 0; t->origin == CLIENT && c < x->clients; c++)
            if (t->weight[c] > 0)
                sum += t->weight[c] * least_client_wait(x, t, c, from, free);
    }
    if (x->waits)
        sum += waits_alone(x, depth, from, free);
    if (isinf(sum))
        return sum;
    sum -= ROUNDING * sum;
    if (sum > most)
        return sum;
    double near = independent(x, depth, from, free);
    if (isinf(near))
        return near;
    const double paid = least_paid(x, from, free);
    near += paid;
    near -= ROUNDING * near;
    if (depth && near > 0 && sum + near <= most) {
        double fixed = sum_of(x->fixed, x->clients);
        if (!isinf(fixed)) {
            double other = lagrangean(x, depth, from, free, sum, most - sum, x->found ? x->value - sum : fixed);
            near = other > near ? other : near;
        }
    }
    if (x->waits && sum + near <= most) {
        double gains = pair_gains(x, free, most - sum - near + 3 * ROUNDING * (most < INFINITY ? most : 0));
        gains -= ROUNDING * (sum + gains); /* they are differences of waits */
        sum += gains > 0 ? gains : 0;
        x->base[2 * depth] += gains > 0 ? gains : 0;
        x->base[2 * depth + 1] += gains > 0 ? gains : 0;
    }
    return sum + near;
}
