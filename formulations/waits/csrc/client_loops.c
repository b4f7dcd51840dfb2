/* Loops over clients that the compiler vectorises. Sums are blocked by hand, so that no licence to reorder them is needed. */
#include <math.h>
#include <string.h>
#include "sets.h"

enum { BLOCK = 8 };

static inline double added(const double *sum)
{
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

VECTORISED double sum_of(const double *value, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++)
            sum[k] += value[c + k];
    for (int k = 0; c < count; c++, k++)
        sum[k] += value[c];
    return added(sum);
}

/* Sum of min(0, cost - price). */
VECTORISED double reduced_cost(const double *cost, const double *price, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++) {
            double less = cost[c + k] - price[c + k];
            sum[k] += less < 0 ? less : 0;
        }
    for (int k = 0; c < count; c++, k++) {
        double less = cost[c] - price[c];
        sum[k] += less < 0 ? less : 0;
    }
    return added(sum);
}

/* A wait that may last forever, which matters to nobody who does not wait. */
VECTORISED void add_wait(double *cost, const double *weight, double wait, int count)
{
    if (isinf(wait))
        for (int c = 0; c < count; c++)
            cost[c] = weight[c] > 0 ? INFINITY : cost[c];
    else
        for (int c = 0; c < count; c++)
            cost[c] += weight[c] * wait;
}

/* A site that is farther from a client than `before` is not the nearest; least = min(least, cost). */
VECTORISED void take_nearer(double *cost, const double *distance, const double *before, double *least, int count)
{
    for (int c = 0; c < count; c++) {
        double one = distance[c] > before[c] ? INFINITY : cost[c];
        cost[c] = one;
        least[c] = one < least[c] ? one : least[c];
    }
}

/* slope[c] -= 1 where a site costs less than the price. */
VECTORISED void subtract_served(const double *cost, const double *price, double *slope, int count)
{
    for (int c = 0; c < count; c++)
        slope[c] -= cost[c] < price[c] ? 1.0 : 0.0;
}

/* Prices that are at their most do not rise; returns the sum of the squares of the slopes. */
VECTORISED double hold_slopes(const double *price, const double *most, double *slope, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c < count; c++) /* `&`, and a loop of its own, so that it is vectorised */
        slope[c] = (price[c] >= most[c]) & (slope[c] > 0) ? 0 : slope[c];
    for (c = 0; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++)
            sum[k] += slope[c + k] * slope[c + k];
    for (int k = 0; c < count; c++, k++)
        sum[k] += slope[c] * slope[c];
    return added(sum);
}

VECTORISED void step_prices(double *price, const double *slope, double length, const double *most, int count)
{
    for (int c = 0; c < count; c++) {
        double other = price[c] + length * slope[c];
        other = other < 0 ? 0 : other;
        price[c] = other > most[c] ? most[c] : other;
    }
}

/* Sum of the near costs when a site joins: `cost` of clients that it is nearer to, else `stay`. */
VECTORISED double joined_cost(const double *d, const double *distance, const double *cost, const double *stay, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++) {
            double one = cost[c + k], other = stay[c + k], less = one < other ? one : other;
            other = d[c + k] < distance[c + k] ? one : other;
            sum[k] += d[c + k] == distance[c + k] ? less : other; /* one of the two wins a tie */
        }
    for (int k = 0; c < count; c++, k++) {
        double other = d[c] < distance[c] ? cost[c] : stay[c];
        sum[k] += d[c] == distance[c] && cost[c] < other ? cost[c] : other;
    }
    return added(sum);
}

/* Sum of weight times distance, capped from both sides. */
VECTORISED double capped_waits(const double *weight, const double *d, const double *low, const double *high, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++) {
            double at = d[c + k] > low[c + k] ? d[c + k] : low[c + k];
            sum[k] += weight[c + k] * (at < high[c + k] ? at : high[c + k]);
        }
    for (int k = 0; c < count; c++, k++) {
        double at = d[c] > low[c] ? d[c] : low[c];
        sum[k] += weight[c] * (at < high[c] ? at : high[c]);
    }
    return added(sum);
}

/* The need-th and the one before of the values of each client at some sites, and 0 or INFINITY where there is none. */
VECTORISED void order_statistics(const double *by_site, const int *site, int sites, int need, double *low, double *high,
                                 int count)
{
    for (int first = 0; first < count; first += BLOCK) {
        double kept[MOST_MEMBERS][BLOCK], value[BLOCK];
        size_t bytes = (size_t)(count - first < BLOCK ? count - first : BLOCK) * sizeof *value;
        for (int j = 0; j < need; j++)
            for (int k = 0; k < BLOCK; k++)
                kept[j][k] = INFINITY;
        for (int i = 0; i < sites; i++) {
            memset(value, 0, sizeof value);
            memcpy(value, by_site + (long)site[i] * count + first, bytes);
            for (int j = 0; j < need; j++)
                for (int k = 0; k < BLOCK; k++) {
                    double one = kept[j][k], other = value[k];
                    kept[j][k] = other < one ? other : one;
                    value[k] = other < one ? one : other;
                }
        }
        memcpy(high + first, kept[need - 1], bytes);
        if (need > 1)
            memcpy(low + first, kept[need - 2], bytes);
        else
            memset(low + first, 0, bytes);
    }
}
