/* Bounds of many leaders together, from the multipliers of one of them, in O(sites (clients log clients + leaders)).
 *
 * ../certificate_events.py has the lemma. Let s be the site that serves client c under the leader whose multipliers u are
 * given, k. Under leader l the multiplier is u_c + B_c (d(s, l) - d(s, k)), and with t = d(j, l) - d(s, l) + d(s, k)
 *
 *     cost at j - multiplier = B_c t - (u_c - A_c d(c, j)).
 *
 * So the part of rho_j that the clients of s add is one function of the number t, for all leaders:
 * F(t) = sum of min(0, B_c t - (u_c - A_c d(c, j))), with a break at t = (u_c - A_c d(c, j)) / B_c for each client. */
#include <math.h>
#include <string.h>

#include "kernel.h"

#define MOST_INTERVALS 256 /* intervals of t */
#define MOST_CUT 64        /* clients of a leader whose multipliers are cut in the pass over all leaders ... */
#define CUT_SHARE 0.98     /* ... fewer, where they have this share of all that is cut */

/* Clients whose multipliers are more than they cost at the leader, and none to the end of a block of PAD. */
typedef struct {
    int count, client[MOST_CUT];
    double u[MOST_CUT], cut[MOST_CUT]; /* their multipliers before and after the cut */
    double doubt;              /* what rounding changes of a sum over them */
} cut_list;

/* Clients by the site that serves them. */
typedef struct {
    owned_memory owned;
    int groups, listed;        /* sites that serve; leaders */
    int *site, *start;         /* groups, groups + 1 */
    int *client;               /* clients, group by group */
    double *near, *relay, *u;  /* A, B, u of these */
    double *moved;             /* groups x listed: d(s, l) - d(s, k) */
    double *away;              /* listed: t of a site and a group */
    double *to;                /* listed: d(j, l) of a site */
    double slope[MOST_INTERVALS], level[MOST_INTERVALS]; /* sums of B and of u - A d over the breaks of each interval of t */
    double value[MOST_INTERVALS + 1]; /* F at the ends of the intervals */
    double *rho;               /* ROWS x listed: of some sites */
    cut_list *cuts;            /* listed: the clients that are cut most */
    double *near_cost;         /* clients: A d(c, j) of a site */
    const double *given;       /* clients: u */
    double *cut;               /* padded: u of a leader */
    int *group;                /* clients: place of the serving site */
} shared_work;

#define ROWS 8             /* sites whose rho is written to the rows of the leaders at once */

static void take_memory(shared_work *w, const problem *p, size_t groups, size_t listed)
{
    size_t clients = (size_t)p->clients;
    owned_memory *owned = &w->owned;
    w->site = own(owned, groups, sizeof(int));
    w->start = own(owned, groups + 1, sizeof(int));
    w->client = own(owned, clients, sizeof(int));
    w->group = own(owned, clients, sizeof(int));
    w->cut = own(owned, (size_t)p->padded, 8);
    w->near = own(owned, clients, 8);
    w->relay = own(owned, clients, 8);
    w->u = own(owned, clients, 8);
    w->moved = own(owned, groups * listed, 8);
    w->away = own(owned, listed, 8);
    w->to = own(owned, listed + groups, 8);
    w->rho = own(owned, ROWS * listed, 8);
    w->cuts = own(owned, listed, sizeof(cut_list));
    w->near_cost = own(owned, clients, 8);
}

/* Write the cheapest of some sites for each client, under the leader whose costs are in the view. */
static void serve_clients(const context *x, const int *set, int count, int *serving)
{
    size_t width = (size_t)x->p.padded;
    for (size_t c = 0; c < (size_t)x->p.clients; c++) {
        int best = set[0];
        for (int i = 1; i < count; i++)
            if (x->view.costs[(size_t)set[i] * width + c] < x->view.costs[(size_t)best * width + c])
                best = set[i];
        serving[c] = best;
    }
}

/* Sort the clients by the site that serves them, one of `set`. */
static void group_clients(const context *x, shared_work *w, const int *set, int count, const int *serving, const double *u,
                          int reference, const int *leader)
{
    const problem *p = &x->p;
    int at = 0;
    w->groups = 0;
    for (int i = 0; i < count; i++) {
        double *moved = w->moved + (size_t)w->groups * (size_t)w->listed;
        w->start[w->groups] = at;
        for (int c = 0; c < p->clients; c++)
            if (serving[c] == set[i]) {
                w->client[at] = c;
                w->group[c] = w->groups;
                w->near[at] = p->near_weight[c];
                w->relay[at] = p->relay_weight[c];
                w->u[at++] = u[c];
            }
        if (at == w->start[w->groups])
            continue;
        for (int k = 0; k < w->listed; k++)
            moved[k] = relay_rtt(p, 0, set[i], leader[k]) - relay_rtt(p, 0, set[i], reference);
        w->site[w->groups++] = set[i];
    }
    w->start[w->groups] = at;
}

/* t of a site and a group under each leader, and the range of all. */
VECTORISED static void find_away(const double *to, const double *moved, int n, double *away, double *least, double *most)
{
    double low = BIG, high = -BIG;
    for (int k = 0; k < n; k++) {
        double t = to[k] - moved[k];
        away[k] = t;
        low = t < low ? t : low;
        high = t > high ? t : high;
    }
    *least = low;
    *most = high;
}

/* rho[k] += the function with these values at the ends of equal intervals, linear in between. */
VECTORISED static void add_chords(const double *away, int n, double least, double scale, int intervals, const double *value,
                                  double *rho)
{
    for (int k = 0; k < n; k++) {
        double place = (away[k] - least) * scale;
        int i = (int)place;
        i = i < intervals ? i : intervals - 1;
        rho[k] += value[i] + (place - i) * (value[i + 1] - value[i]);
    }
}

VECTORISED static void add_line(const double *away, int n, double slope, double level, double *rho)
{
    for (int k = 0; k < n; k++)
        rho[k] += slope * away[k] - level;
}

/* Add F of one group and site to rho of every listed leader, or a little less: F is concave, so it is nowhere below its chords.
 * The sum of the absolute values of its terms is returned. */
static double add_group(const problem *p, shared_work *w, int group, int site, double *rho)
{
    const double *rtt = p->rtt + (size_t)site * (size_t)p->padded;
    double least, most, slope = 0.0, level = 0.0, size = 0.0;
    int breaks = 0, intervals = MOST_INTERVALS;
    find_away(w->to, w->moved + (size_t)group * (size_t)w->listed, w->listed, w->away, &least, &most);
    double farthest = fabs(least) > fabs(most) ? fabs(least) : fabs(most), scale = intervals / (most - least);
    for (int i = w->start[group]; i < w->start[group + 1]; i++) {
        double saved = w->u[i] - w->near[i] * rtt[w->client[i]], relay = w->relay[i];
        if (saved <= relay * least)
            continue; /* under no leader cheaper than its multiplier */
        size += relay * farthest + fabs(saved);
        if (saved >= relay * most) { /* under each */
            slope += relay;
            level += saved;
            continue;
        }
        if (!breaks++) {
            memset(w->slope, 0, MOST_INTERVALS * sizeof(double));
            memset(w->level, 0, MOST_INTERVALS * sizeof(double));
        }
        int at = (int)((saved / relay - least) * scale);
        at = at < 0 ? 0 : at < intervals ? at : intervals - 1;
        w->slope[at] += relay;
        w->level[at] += saved;
    }
    if (!breaks) {
        if (size > 0.0)
            add_line(w->away, w->listed, slope, level, rho);
        return size;
    }
    for (int b = intervals; b >= 0; b--) { /* a break within an interval counts at its beginning */
        w->value[b] = slope * (least + b / scale) - level;
        if (b) {
            slope += w->slope[b - 1];
            level += w->level[b - 1];
        }
    }
    add_chords(w->away, w->listed, least, scale, intervals, w->value, rho);
    return size;
}

/* Cut the multipliers of a leader to the cost at the leader, which always serves; `excess` (clients) is what that takes away,
 * with a minus. Returns the sum of the multipliers. */
static double cut_multipliers(const problem *p, shared_work *w, int k, int leader, double *excess)
{
    const double *rtt = p->rtt + (size_t)leader * (size_t)p->padded;
    for (int c = 0; c < p->clients; c++) {
        double moved = w->moved[(size_t)w->group[c] * (size_t)w->listed + (size_t)k];
        double fixed = p->near_weight[c] * rtt[c], v = w->given[c] + p->relay_weight[c] * moved;
        v = v > 0.0 ? v : 0.0;
        w->cut[c] = v < fixed ? v : fixed;
        excess[c] = w->cut[c] - v;
    }
    return sum_of(w->cut, p->padded);
}

/* List the clients of each leader that are cut most. */
static void list_cuts(context *x, shared_work *w, const int *leader)
{
    int chosen[MOST_CUT];
    double *excess = x->scratch.u;
    for (int k = 0; k < w->listed; k++) {
        cut_list *list = &w->cuts[k];
        double size = 0.0, left = 0.0;
        x->memory.stored[leader[k]] = 0; /* until rho of all sites fits: the pass may be stopped */
        x->memory.served[leader[k]] = cut_multipliers(&x->p, w, k, leader[k], excess);
        int found = smallest(excess, x->p.clients, MOST_CUT, chosen), count = 0;
        for (int c = 0; c < x->p.clients; c++)
            left += excess[c];
        memset(list, 0, sizeof *list);
        for (double enough = (1.0 - CUT_SHARE) * left; count < found && left < enough; count++) {
            int c = chosen[count];
            list->client[count] = c;
            list->u[count] = w->cut[c] - excess[c];
            list->cut[count] = w->cut[c];
            size += list->u[count];
            left -= excess[c];
        }
        list->count = (count + PAD - 1) / PAD * PAD;
        list->doubt = 8.0 * UNIT_ROUNDOFF * (count + 4.0) * size;
    }
}

/* Return what the cut of the listed clients adds to rho of a site with these costs A d(c, j), at d(j, leader) = `to`. */
VECTORISED static double gain_of_cuts(const cut_list *list, const double *near_cost, const double *relay, double to)
{
    double sum[PAD] = {0};
    for (int i = 0; i < list->count; i += PAD)
        for (int k = 0; k < PAD; k++) {
            int c = list->client[i + k];
            double cost = near_cost[c] + relay[c] * to, u = list->u[i + k], cut = list->cut[i + k];
            cost = cost > cut ? cost : cut;
            double more = u - cost;
            sum[k] += more > 0.0 ? more : 0.0;
        }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* Add to rho of a site, under every leader, what the cut of the listed clients adds at least. */
static void add_cuts(const problem *p, const shared_work *w, double *rho)
{
    for (int k = 0; k < w->listed; k++) {
        double more = gain_of_cuts(&w->cuts[k], w->near_cost, p->relay_weight, w->to[k]) - w->cuts[k].doubt;
        rho[k] += more > 0.0 ? more : 0.0;
    }
}

/* Bound leaders, none of them -1, by the multipliers `u` (clients) of another one, `reference`: u is cut to what they are at
 * most, and the site that serves each client is written to `serving` (clients).
 * Returns how many are bounded: all, or 0 when the limit of the call is reached. RTTs are those of one scenario. */
int shared_bounds(context *x, int reference, double *u, const int *leader, int count, int *serving, double *bounds)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites;
    int *set = x->scratch.sites + p->sites, size, chosen;
    double error;
    costs_for_leader(x, reference);
    open_root(x, u, 0, NULL);
    if (x->control.out_of_memory)
        return 0;
    tree_node *f = &x->tree.stack[0];
    evaluate_bound(x, f, f->u, 0, &chosen, &error);
    memcpy(u, f->u, (size_t)p->clients * sizeof(double));
    size = selected_set(x, f, chosen, set);
    x->tree.depth = 0;
    serve_clients(x, set, size, serving);
    shared_work w = {.listed = count};
    take_memory(&w, p, (size_t)size, (size_t)count);
    if (w.owned.failed) {
        x->control.out_of_memory = 1;
        release(&w.owned);
        return 0;
    }
    w.given = u;
    group_clients(x, &w, set, size, serving, u, reference, leader);
    list_cuts(x, &w, leader);
    for (size_t first = 0; first < S && !must_pause(x); first += ROWS) {
        size_t rows = S - first < ROWS ? S - first : ROWS;
        memset(w.rho, 0, ROWS * (size_t)count * sizeof(double));
        double slack[ROWS] = {0};
        for (size_t r = 0; r < rows; r++) {
            for (int k = 0; k < count; k++)
                w.to[k] = relay_rtt(p, 0, (int)(first + r), leader[k]);
            for (int g = 0; g < w.groups && p->may_hold[first + r]; g++)
                slack[r] += add_group(p, &w, g, (int)(first + r), w.rho + r * (size_t)count);
            for (int c = 0; c < p->clients; c++)
                w.near_cost[c] = p->near_weight[c] * p->rtt[(first + r) * (size_t)p->padded + (size_t)c];
            if (p->may_hold[first + r])
                add_cuts(p, &w, w.rho + r * (size_t)count);
            slack[r] *= 4.0 * UNIT_ROUNDOFF * (p->clients + MOST_INTERVALS);
        }
        for (size_t k = 0; k < (size_t)count; k++) {
            double *rho = x->memory.rho + (size_t)leader[k] * S + first;
            const double *price = p->price ? p->price + (size_t)leader[k] * S + first : NULL;
            for (size_t r = 0; r < rows; r++)
                rho[r] = w.rho[r * (size_t)count + k] - slack[r] + (price ? price[r] : 0.0);
        }
        x->effort.work += (double)rows * (3.0 * p->clients + 6.0 * w.groups * count);
    }
    int done = x->control.paused ? 0 : count;
    for (int k = 0; k < done; k++) {
        x->memory.stored[leader[k]] = 1;
        x->effort.evaluations++;
        bounds[k] = bound_from_memory(x, leader[k], &chosen);
    }
    release(&w.owned);
    return done;
}
