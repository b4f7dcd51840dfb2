/* Loops over clients that the compiler vectorises, and a check that it did so correctly.
 *
 * Lengths are multiples of PAD. Sums are blocked by hand, so that no licence to reorder them is
 * needed; what is summed under a condition goes through `scratch` first (see vectors_are_right). */
#include <string.h>

#include "kernel.h"

/* Sum of all, eight partial sums at a time. */
VECTORISED double sum_of(const double *value, int padded)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++)
            sum[k] += value[c + k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* rho[i] = sum over clients of min(0, column_i - u), eight partial sums at a time. */
VECTORISED void reduced_costs(double *const *column, int n, const double *u, int padded, double *rho)
{
    for (int i = 0; i < n; i++) {
        const double *a = column[i];
        double sum[PAD] = {0};
        for (int c = 0; c < padded; c += PAD)
            for (int k = 0; k < PAD; k++) {
                double t = a[c + k] - u[c + k];
                sum[k] += t < 0.0 ? t : 0.0;
            }
        rho[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
}

/* Sum over clients of min(0, near rtt + weight relay - u): what `gains` adds up, from the parts of the costs. */
VECTORISED double reduced_cost_from_rtts(const double *rtt, const double *near, const double *weight, double relay,
                                 const double *u, int padded)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++) {
            double t = near[c + k] * rtt[c + k] + weight[c + k] * relay - u[c + k];
            sum[k] += t < 0.0 ? t : 0.0;
        }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

VECTORISED double served_cost(const double *u, const double *fixed, int padded)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++)
            sum[k] += u[c + k] < fixed[c + k] ? u[c + k] : fixed[c + k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* cover[c] -= 1 where the selected column serves c. */
VECTORISED void subtract_covered(const double *column, const double *u, int padded, double *cover)
{
    for (int c = 0; c < padded; c++)
        cover[c] -= column[c] < u[c] ? 1.0 : 0.0;
}

/* Turn the subgradient g at u into the direction of a step, scale times g; returns the sum of scale g^2. */
VECTORISED double scaled_gradient(const double *u, const double *fixed, const double *scale, int padded, double *g)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c++) /* no branch: `&`, and a loop of its own, so that it is vectorised */
        g[c] = (g[c] > 0.0) & (u[c] >= fixed[c]) ? 0.0 : g[c];
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++) {
            double v = g[c + k], scaled = scale[c + k] * v;
            g[c + k] = scaled;
            sum[k] += scaled * v;
        }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

VECTORISED void subgradient_step(const double *from, double *to, const double *g, double *direction,
                            double keep, double step, const double *fixed, int padded)
{
    for (int c = 0; c < padded; c++) {
        double d = g[c] + keep * direction[c], v = from[c] + step * d;
        direction[c] = d;
        v = v < 0.0 ? 0.0 : v;
        to[c] = v < fixed[c] ? v : fixed[c];
    }
}

/* Lower the least bounds with and without each site, for one radius of one relaxation:
 * with[i] to base + max(0, rho[i] - top) and without[i] to base + max(0, next - rho[i]) where these are less. */
VECTORISED void lower_choice_bounds(double base, double top, double next, const double *rho, int n, double *with,
                                    double *without)
{
    for (int i = 0; i < n; i++) {
        double up = rho[i] - top, down = next - rho[i];
        up = base + (up > 0.0 ? up : 0.0);
        down = base + (down > 0.0 ? down : 0.0);
        with[i] = up < with[i] ? up : with[i];
        without[i] = down < without[i] ? down : without[i];
    }
}

/* Raise the bounds with and without each site of one radius to those of a further relaxation, as above. */
VECTORISED void raise_choice_bounds(double base, double top, double next, const double *rho, int n, double *with,
                                    double *without)
{
    for (int i = 0; i < n; i++) {
        double up = rho[i] - top, down = next - rho[i];
        up = base + (up > 0.0 ? up : 0.0);
        down = base + (down > 0.0 ? down : 0.0);
        with[i] = up > with[i] ? up : with[i];
        without[i] = down > without[i] ? down : without[i];
    }
}

/* least[i] = min(least[i], value[i]). */
VECTORISED void lower_to(const double *value, int n, double *least)
{
    for (int i = 0; i < n; i++)
        least[i] = value[i] < least[i] ? value[i] : least[i];
}

/* value[c] -= beta[c] where the client ranks the dropped site before the one in `rank`. */
VECTORISED void subtract_beta(double *value, const int *rank, const int *dropped, const double *beta,
                               int padded)
{
    for (int c = 0; c < padded; c++)
        value[c] -= rank[c] > dropped[c] ? beta[c] : 0.0;
}

/* Clients whose nearest fixed replica was farther than `site` now stop at it. */
VECTORISED void stop_at_site(const int *rank, const double *cost, int padded, int *fixed_rank,
                               double *fixed_cost, double *offset)
{
    for (int c = 0; c < padded; c++) {
        fixed_cost[c] = rank[c] < fixed_rank[c] ? cost[c] : fixed_cost[c];
        offset[c] = rank[c] < fixed_rank[c] ? 0.0 : offset[c];
        fixed_rank[c] = rank[c] < fixed_rank[c] ? rank[c] : fixed_rank[c];
    }
}

VECTORISED void mask_column(double *column, const int *rank, const int *fixed_rank, int padded)
{
    for (int c = 0; c < padded; c++)
        column[c] = rank[c] > fixed_rank[c] ? BIG : column[c];
}

/* Sum of beta over the clients that may still use the site; those that now stop at the site of
 * `site_rank` have it added to their offsets. */
VECTORISED double remaining_beta(const double *beta, const int *rank, const int *fixed_rank,
                            const int *site_rank, int padded, double *fixed_cost, double *offset,
                            double *scratch)
{
    for (int c = 0; c < padded; c++) {
        double b = rank[c] < fixed_rank[c] ? beta[c] : 0.0;
        double moved = fixed_rank[c] == site_rank[c] ? b : 0.0;
        scratch[c] = b;
        offset[c] += moved;
        fixed_cost[c] += moved;
    }
    return sum_of(scratch, padded);
}

/* Cost of the clients when a site joins a set whose nearest ranks and costs are given. */
VECTORISED double cost_with_site(const int *rank, const double *cost, const int *nearest,
                              const double *served_now, int padded, double *scratch)
{
    for (int c = 0; c < padded; c++)
        scratch[c] = rank[c] < nearest[c] ? cost[c] : served_now[c];
    return sum_of(scratch, padded);
}

VECTORISED void join_site(const int *rank, const double *cost, const int *nearest, const double *paid,
                            int padded, int *nearest_out, double *paid_out)
{
    for (int c = 0; c < padded; c++) {
        paid_out[c] = rank[c] < nearest[c] ? cost[c] : paid[c];
        nearest_out[c] = rank[c] < nearest[c] ? rank[c] : nearest[c];
    }
}

/* ---- are the loops above what the compiler made of them? ---- */

#define CHECKED 40

static double uniform(unsigned *state, int range)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)((*state >> 16) % (unsigned)range);
}

/* 1 when every loop agrees with the same thing computed element by element.
 *
 * Whole numbers, so equality is exact. One compiler (GCC 12, AVX2, a selection by an unrelated
 * comparison inside a blocked sum) has been seen to get such loops wrong; a kernel that fails here
 * is not used. */
int client_loops_are_right(void)
{
    unsigned state = 12345u;
    for (int round = 0; round < 64; round++) {
        int n = PAD * (1 + round % (CHECKED / PAD));
        double a[CHECKED], b[CHECKED], g[CHECKED], d[CHECKED], out[CHECKED], one[CHECKED], two[CHECKED];
        double scratch[CHECKED];
        int r[CHECKED], s[CHECKED], q[CHECKED], ranks[CHECKED];
        volatile double gain = 0, parts = 0, pay = 0, sum = 0, norm = 0, left = 0, joined = 0;
        const double *column[1] = {a};
        double rho[1];
        for (int c = 0; c < n; c++) {
            a[c] = uniform(&state, 9);
            b[c] = uniform(&state, 9);
            g[c] = uniform(&state, 5) - 2.0;
            d[c] = uniform(&state, 5) - 2.0;
            r[c] = (int)uniform(&state, 6);
            s[c] = (int)uniform(&state, 6);
            q[c] = (int)uniform(&state, 6);
            gain += a[c] < b[c] ? a[c] - b[c] : 0.0;
            double cost = a[c] * g[c] + 3.0 * d[c];
            parts += cost < b[c] ? cost - b[c] : 0.0;
            pay += a[c] < b[c] ? a[c] : b[c];
            sum += a[c];
            left += r[c] < s[c] ? a[c] : 0.0;
            joined += r[c] < s[c] ? a[c] : b[c];
        }
        reduced_costs((double *const *)column, 1, b, n, rho);
        int right = rho[0] == gain && served_cost(a, b, n) == pay && sum_of(a, n) == sum;
        right &= reduced_cost_from_rtts(a, g, d, 3.0, b, n) == parts;
        right &= cost_with_site(r, a, s, b, n, scratch) == joined;
        memcpy(one, b, sizeof one);
        memcpy(two, g, sizeof two);
        right &= remaining_beta(a, r, s, q, n, one, two, scratch) == left;
        for (volatile int c = 0; c < n; c++) {
            double moved = s[c] == q[c] && r[c] < s[c] ? a[c] : 0.0;
            right &= one[c] == b[c] + moved && two[c] == g[c] + moved;
        }
        memcpy(out, b, sizeof out);
        subtract_beta(out, r, s, a, n);
        for (volatile int c = 0; c < n; c++)
            right &= out[c] == b[c] - (r[c] > s[c] ? a[c] : 0.0);
        memcpy(out, b, sizeof out);
        mask_column(out, r, s, n);
        for (volatile int c = 0; c < n; c++)
            right &= out[c] == (r[c] > s[c] ? BIG : b[c]);
        memcpy(ranks, s, sizeof ranks);
        memcpy(one, b, sizeof one);
        memcpy(two, g, sizeof two);
        stop_at_site(r, a, n, ranks, one, two);
        for (volatile int c = 0; c < n; c++) {
            int nearer = r[c] < s[c];
            right &= ranks[c] == (nearer ? r[c] : s[c]) && one[c] == (nearer ? a[c] : b[c]);
            right &= two[c] == (nearer ? 0.0 : g[c]);
        }
        join_site(r, a, s, b, n, ranks, one);
        for (volatile int c = 0; c < n; c++)
            right &= ranks[c] == (r[c] < s[c] ? r[c] : s[c]) && one[c] == (r[c] < s[c] ? a[c] : b[c]);
        memcpy(out, g, sizeof out);
        subtract_covered(a, b, n, out);
        for (volatile int c = 0; c < n; c++)
            right &= out[c] == g[c] - (a[c] < b[c] ? 1.0 : 0.0);
        memcpy(out, g, sizeof out);
        double squares = scaled_gradient(a, b, d, n, out);
        for (volatile int c = 0; c < n; c++) {
            double v = g[c] > 0.0 && a[c] >= b[c] ? 0.0 : g[c];
            right &= out[c] == d[c] * v;
            norm += d[c] * v * v;
        }
        right &= squares == norm;
        memcpy(one, d, sizeof one);
        subgradient_step(a, out, g, one, 2.0, 3.0, b, n);
        for (volatile int c = 0; c < n; c++) {
            double turned = g[c] + 2.0 * d[c], v = a[c] + 3.0 * turned;
            v = v < 0.0 ? 0.0 : v;
            right &= one[c] == turned && out[c] == (v < b[c] ? v : b[c]);
        }
        if (!right)
            return 0;
    }
    return 1;
}
