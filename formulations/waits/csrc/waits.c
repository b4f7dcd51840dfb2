/* Order statistics of waits: least values below a prefix, and the values of complete sets. */
#include <math.h>
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

int client_caps(const sets *x, const term *t, double *low, double *high)
{
    const int need = answers(t->clause, x->size, 0);
    if (t->origin != CLIENT || t->clauses != 1 || need < 1 || need > x->size)
        return 0;
    order_statistics(x->by_site, x->chosen, x->size - 1, need, low, high, x->clients);
    return 1;
}
