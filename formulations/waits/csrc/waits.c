/* Order statistics of waits: least values below a prefix, and the values of complete sets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sets.h"

static int fits(const clause *c, int origin, int site)
{
    return c->scope == EVERYWHERE || (c->label[origin] == c->label[site]) == (c->scope == INSIDE);
}

/* Answers that a clause needs of `inside` members that fit, `size` in its role. */
static int answers(const clause *c, int size, int inside)
{
    if (c->need == ALL)
        return c->scope == EVERYWHERE ? size : inside;
    return c->need == MAJORITY_INSIDE ? inside / 2 + 1 : c->need;
}

double least_wait(const sets *x, const term *t, int origin, int depth, int from, int free)
{
    const int32_t *order = x->near_order + (long)origin * x->sites;
    const double *rtt = x->site_rtt + (long)origin * x->sites;
    double latest = 0;
    for (int k = 0; k < t->clauses; k++) {
        const clause *c = t->clause + k;
        int size = c->role == VOTERS ? x->voters : x->size, inside = 0, need, left;
        /* with fewer voters than replicas those inside may be replicas alone */
        if (c->role == REPLICAS || x->voters == x->size)
            for (int i = 0; i < depth; i++)
                inside += fits(c, origin, x->chosen[i]);
        need = answers(c, size, inside);
        left = free;
        if (!x->member[origin]) { /* the origin is one of the free sites */
            left--;
            if (fits(c, origin, origin))
                need--;
        }
        double at = 0;
        int k2 = 0;
        for (; need > 0 && k2 < x->sites; k2++) {
            int s = order[k2];
            if (!fits(c, origin, s) || (s == origin && !x->member[origin]))
                continue;
            if (!x->member[s]) {
                if (s < from || x->out[s] || left == 0)
                    continue;
                left--;
            }
            need--;
            at = rtt[s];
        }
        if (need > 0)
            return INFINITY;
        latest = at > latest ? at : latest;
    }
    return latest;
}

double least_client_wait(const sets *x, const term *t, int client, int from, int free)
{
    const int32_t *order = x->client_order + (long)client * x->sites;
    double latest = 0;
    for (int k = 0; k < t->clauses; k++) {
        int need = answers(t->clause + k, x->size, 0), left = free;
        double at = 0;
        for (int i = 0; need > 0 && i < x->sites; i++) {
            int s = order[i];
            if (!x->member[s]) {
                if (s < from || x->out[s] || left == 0)
                    continue;
                left--;
            }
            need--;
            at = x->by_site[(long)s * x->clients + client];
        }
        if (need > 0)
            return INFINITY;
        latest = at > latest ? at : latest;
    }
    return latest;
}

/* The need-th smallest of `count` values, which are reordered. */
static double smallest(double *value, int count, int need)
{
    if (need == 0)
        return 0;
    if (need > count)
        return INFINITY;
    for (int i = 1; i < count; i++) {
        double v = value[i];
        int j = i;
        for (; j > 0 && value[j - 1] > v; j--)
            value[j] = value[j - 1];
        value[j] = v;
    }
    return value[need - 1];
}

double exact_wait(const sets *x, const term *t, int origin, const int *voters, int v)
{
    const double *rtt = x->site_rtt + (long)origin * x->sites;
    double latest = 0, value[MOST_MEMBERS];
    for (int k = 0; k < t->clauses; k++) {
        const clause *c = t->clause + k;
        const int *members = c->role == VOTERS ? voters : x->chosen;
        int size = c->role == VOTERS ? v : x->size, count = 0;
        for (int i = 0; i < size; i++)
            if (fits(c, origin, members[i]))
                value[count++] = rtt[members[i]];
        double at = smallest(value, count, answers(c, size, count));
        latest = at > latest ? at : latest;
    }
    return latest;
}

double exact_client_wait(const sets *x, const term *t, int client)
{
    double latest = 0, value[MOST_MEMBERS];
    for (int k = 0; k < t->clauses; k++) {
        for (int i = 0; i < x->size; i++)
            value[i] = x->by_site[(long)x->chosen[i] * x->clients + client];
        double at = smallest(value, x->size, answers(t->clause + k, x->size, 0));
        latest = at > latest ? at : latest;
    }
    return latest;
}

/* Members that a wait of one clause about all of them needs; 0: it is another one, or there are too few. */
static int number_needed(const sets *x, const term *t)
{
    int need = t->clauses == 1 && t->clause->scope == EVERYWHERE ? answers(t->clause, x->size, 0) : 0;
    return need >= 1 && need <= x->size ? need : 0;
}

int client_caps(sets *x, const term *t, double *low, double *high, order_rows *rows)
{
    const int need = t->origin == CLIENT ? number_needed(x, t) : 0, before = x->size - 2;
    if (!need)
        return 0;
    const size_t bytes = (size_t)(before > 0 ? before : 0) * sizeof *rows->site;
    if (!rows->value && !(rows->value = malloc((size_t)need * (size_t)x->clients * sizeof *rows->value)))
        return 0; /* the caps only save time */
    if (!rows->known || memcmp(rows->site, x->chosen, bytes)) { /* they differ from the last ones in the last site */
        memcpy(rows->site, x->chosen, bytes);
        rows->known = 1;
        least_values(x->by_site, rows->site, before, need, rows->value, x->clients);
    }
    order_statistics(rows->value, before >= 0 ? x->by_site + (long)x->chosen[before] * x->clients : NULL, need, low, high,
                     x->clients);
    return 1;
}

int near_caps(const sets *x, const term *t, double *low, double *high)
{
    const int need = t->origin == NEAR && x->voters == x->size ? number_needed(x, t) : 0, count = x->size - 1;
    for (int i = 0; need && i < count; i++) {
        double value[MOST_MEMBERS];
        for (int k = 0; k < count; k++)
            value[k] = x->site_rtt[(long)x->chosen[i] * x->sites + x->chosen[k]];
        high[i] = smallest(value, count, need);
        low[i] = need > 1 ? smallest(value, count, need - 1) : 0;
    }
    return need;
}

double near_sum(sets *x, const term *t, int need, const double *low, const double *high, int site, double enough)
{
    const int count = x->size - 1;
    const double *distance = x->distance + (long)count * x->clients;
    double value[MOST_MEMBERS], least = INFINITY;
    for (int i = 0; i < count; i++) {
        double d = x->site_rtt[(long)x->chosen[i] * x->sites + site];
        d = d > low[i] ? d : low[i];
        d = d < high[i] ? d : high[i];
        x->lasts[x->chosen[i]] = d;
        least = d < least ? d : least;
        value[i] = x->site_rtt[(long)site * x->sites + x->chosen[i]];
    }
    value[count] = x->site_rtt[(long)site * x->sites + site];
    double joined = smallest(value, x->size, need), sum = t->all * (joined < least ? joined : least) * (1 - 1e-12);
    return sum > enough ? sum
                        : waits_of_nearest(t->weight, x->nearest + (long)count * x->clients, x->lasts,
                                           x->by_site + (long)site * x->clients, distance, joined, x->clients);
}
