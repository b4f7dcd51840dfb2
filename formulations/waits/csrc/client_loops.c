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

/* Add a wait that may last forever; clients of weight 0 do not wait. */
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

/* ---- are the loops above what the compiler made of them? ---- */

enum { CHECKED = 3 * BLOCK + 5 };

static double uniform(unsigned *state, int range)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)((*state >> 16) % (unsigned)range);
}

/* 1 when every loop agrees with the same thing computed element by element, as in ../../exact/csrc/client_loops.c. Whole
 * numbers, so equality is exact. A kernel that fails here is not used. */
int client_loops_are_right(void)
{
    unsigned state = 12345u;
    for (int round = 0; round < 64; round++) {
        int n = 1 + round % CHECKED, sites = 1 + round % 5, need = 1 + round % 4, right = 1;
        double a[CHECKED], b[CHECKED], d[CHECKED], e[CHECKED], g[CHECKED], out[CHECKED], one[CHECKED], two[CHECKED];
        double table[4], by_site[5 * CHECKED], row[4 * CHECKED];
        int32_t nearest[CHECKED];
        int chosen[5] = {0, 1, 2, 3, 4};
        volatile double sum = 0, reduced = 0, joined = 0, capped = 0, waits = 0, norm = 0;
        for (int k = 0; k < 4; k++)
            table[k] = uniform(&state, 6);
        for (int k = 0; k < 5 * n; k++)
            by_site[k] = uniform(&state, 9);
        for (int c = 0; c < n; c++) {
            a[c] = uniform(&state, 6);
            b[c] = uniform(&state, 6);
            d[c] = uniform(&state, 4);
            e[c] = uniform(&state, 4);
            g[c] = uniform(&state, 5) - 2.0;
            nearest[c] = (int32_t)uniform(&state, 4);
            double low = d[c] < e[c] ? d[c] : e[c], high = d[c] < e[c] ? e[c] : d[c], at = table[nearest[c]];
            sum += a[c];
            reduced += a[c] < b[c] ? a[c] - b[c] : 0.0;
            joined += d[c] < e[c] || (d[c] == e[c] && a[c] < b[c]) ? a[c] : b[c];
            waits += a[c] * (d[c] < e[c] || (d[c] == e[c] && 3.0 < at) ? 3.0 : at);
            capped += a[c] * (b[c] < low ? low : b[c] > high ? high : b[c]);
            one[c] = low;
            two[c] = high;
        }
        right &= sum_of(a, n) == sum && reduced_cost(a, b, n) == reduced && joined_cost(d, e, a, b, n) == joined;
        right &= capped_waits(a, b, one, two, n) == capped && waits_of_nearest(a, nearest, table, d, e, 3.0, n) == waits;
        memcpy(out, a, sizeof out);
        add_wait(out, d, 2.0, n);
        for (volatile int c = 0; c < n; c++)
            right &= out[c] == a[c] + 2.0 * d[c];
        add_wait(out, d, INFINITY, n);
        memcpy(one, b, sizeof one);
        take_nearer(out, d, e, one, n);
        for (volatile int c = 0; c < n; c++) {
            double cost = d[c] > e[c] || d[c] > 0 ? INFINITY : a[c];
            right &= out[c] == cost && one[c] == (cost < b[c] ? cost : b[c]);
        }
        memcpy(out, g, sizeof out);
        subtract_served(a, b, out, n);
        for (volatile int c = 0; c < n; c++)
            right &= out[c] == g[c] - (a[c] < b[c] ? 1.0 : 0.0);
        memcpy(out, g, sizeof out);
        double squares = hold_slopes(a, b, out, n);
        for (volatile int c = 0; c < n; c++) {
            double slope = a[c] >= b[c] && g[c] > 0 ? 0.0 : g[c];
            right &= out[c] == slope;
            norm += slope * slope;
        }
        memcpy(out, a, sizeof out);
        step_prices(out, g, 3.0, b, n);
        for (volatile int c = 0; c < n; c++) {
            double price = a[c] + 3.0 * g[c];
            right &= squares == norm && out[c] == (price < 0 ? 0 : price > b[c] ? b[c] : price);
        }
        least_values(by_site, chosen, sites, need, row, n);
        order_statistics(row, NULL, need, one, two, n);
        order_statistics(row, a, need, out, d, n);
        for (volatile int c = 0; c < n; c++) {
            int below = 0, same = 0, least = 0, equal = 0; /* values below the need-th, and as small */
            for (int i = 0; i < sites; i++) {
                below += by_site[i * n + c] < two[c];
                same += by_site[i * n + c] <= two[c];
                least += by_site[i * n + c] < one[c];
                equal += by_site[i * n + c] <= one[c];
            }
            right &= need > sites ? isinf(two[c]) : below < need && same >= need;
            right &= need == 1 ? one[c] == 0 : need - 1 > sites ? isinf(one[c]) : least < need - 1 && equal >= need - 1;
            double more = a[c] > one[c] ? a[c] : one[c];
            right &= d[c] == (more < two[c] ? more : two[c]);
            right &= need == 1 ? out[c] == 0 : out[c] <= one[c] && (out[c] == one[c] || out[c] >= a[c]);
        }
        if (!right)
            return 0;
    }
    return 1;
}
