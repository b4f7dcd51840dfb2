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

/* Sum of weights times the wait of the nearest site: `lasts` of the present one, `joined` of a site at distance d. */
VECTORISED double waits_of_nearest(const double *weight, const int32_t *nearest, const double *lasts, const double *d,
                                   const double *distance, double joined, int count)
{
    double sum[BLOCK] = {0};
    int c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        for (int k = 0; k < BLOCK; k++) {
            double stay = lasts[nearest[c + k]], less = joined < stay ? joined : stay;
            double at = d[c + k] < distance[c + k] ? joined : stay;
            sum[k] += weight[c + k] * (d[c + k] == distance[c + k] ? less : at); /* one of the two wins a tie */
        }
    for (int k = 0; c < count; c++, k++) {
        double stay = lasts[nearest[c]], at = d[c] < distance[c] ? joined : stay;
        sum[k] += weight[c] * (d[c] == distance[c] && joined < stay ? joined : at);
    }
    return added(sum);
}

/* The `need` least values of each client at some sites, ascending, a row for each place; INFINITY where there are fewer. */
VECTORISED void least_values(const double *by_site, const int *site, int sites, int need, double *row, int count)
{
    for (long k = 0; k < (long)need * count; k++)
        row[k] = INFINITY;
    for (int first = 0; first < count; first += BLOCK) {
        int last = count - first < BLOCK ? count - first : BLOCK;
        for (int i = 0; i < sites; i++) {
            double value[BLOCK];
            memcpy(value, by_site + (long)site[i] * count + first, (size_t)last * sizeof *value);
            for (int j = 0; j < need; j++) {
                double *kept = row + (long)j * count + first;
                for (int k = 0; k < last; k++) {
                    double one = kept[k], other = value[k];
                    kept[k] = other < one ? other : one;
                    value[k] = other < one ? one : other;
                }
            }
        }
    }
}

/* The need-th value of each client and the one before, 0 or INFINITY where there is none, with those of one more site. */
VECTORISED void order_statistics(const double *row, const double *more, int need, double *low, double *high, int count)
{
    const double *last = row + (long)(need - 1) * count, *before = last - count, *earlier = before - count;
    for (int c = 0; c < count; c++) {
        double value = more ? more[c] : INFINITY;
        double one = need > 1 ? before[c] : 0, two = need > 2 ? earlier[c] : 0;
        double next = value > one ? value : one, now = value > two ? value : two;
        high[c] = next < last[c] ? next : last[c];
        low[c] = need == 1 ? 0 : now < one ? now : one;
    }
}
