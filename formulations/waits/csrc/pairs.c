/* Bounds on the waits of two at once, for the k nearest of all sites: of two clients, or of a client and the leader.

   If one waits until t and the other until u, the sites that come must answer both. Let the chosen sites leave `need`
   answers open to the one and `other` to the other, and `both` sites that may come lie within reach of both. Then at least
   need + other - min(both, need, other) sites come. The least t + u with no more than may come is above the sum of both
   waits alone where the two are far apart: any two majorities have a site in common. A wait is a part of several pairs, by
   weights that add up to its own; any weights give a bound. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sets.h"

/* Number of bits that are set, without a call to the library of the compiler. */
static inline int bits(uint64_t v)
{
    v -= v >> 1 & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(v * 0x0101010101010101u >> 56);
}

/* The waits of the tree that begins, and their pairs; what is known of the clients serves all leaders. */
void begin_waits(sets *x)
{
    x->waits = 0;
    for (int d = 0; d <= x->size; d++)
        x->prefix[d].known = 0;
    for (int j = 0; j < x->terms; j++) {
        const term *t = x->term + j;
        int need = 0, count = t->origin == CLIENT ? x->clients : 1;
        x->paired[j] = x->sites <= MOST_PAIRED_SITES &&
                       (t->origin == CLIENT || (t->origin == LEADER && x->leader >= 0 && t->leader > 0));
        for (int k = 0; k < t->clauses && x->paired[j]; k++) {
            const clause *c = t->clause + k;
            int of = c->need == ALL ? (c->role == VOTERS ? x->voters : x->size) : c->need;
            x->paired[j] = c->scope == EVERYWHERE && of >= 1;
            need = of > need ? of : need;
        }
        for (int c = 0; c < count && x->paired[j]; c++) {
            int who = t->origin == CLIENT ? c : x->clients + x->leader;
            double weight = t->origin == CLIENT ? t->weight[c] : t->leader;
            if (weight > 0)
                x->one[x->waits++] = (one_wait){weight, who, need, 0, 0};
        }
    }
}

void begin_reach(sets *x)
{
    if (x->sites > MOST_PAIRED_SITES)
        return;
    for (int w = 0; w < x->clients + x->sites; w++) {
        uint64_t within = 0;
        for (int i = 0; i < x->sites; i++) {
            int client = w < x->clients, o = w - x->clients;
            int s = client ? x->client_order[(long)w * x->sites + i] : x->near_order[(long)o * x->sites + i];
            within |= (uint64_t)1 << s;
            x->reach[(long)w * x->sites + i] = within;
            x->reached[(long)w * x->sites + i] =
                client ? x->by_site[(long)s * x->clients + w] : x->site_rtt[(long)o * x->sites + s];
        }
    }
}

/* Each wait alone, and the sum of all; INFINITY where the sites that may come are too few. Some of the sets of a prefix have
   no shorter waits, so that the search for the site of each begins at that of all, `above`; NULL: at the nearest site. */
VECTORISED static double alone(sets *x, uint64_t held, uint64_t coming, int more, const int *above, int *found)
{
    double sum = 0;
    for (int i = 0; i < x->waits; i++) {
        one_wait *w = x->one + i;
        const uint64_t *reach = x->reach + (long)w->who * x->sites;
        for (w->first = above ? above[i] : 0; w->first < x->sites; w->first++) {
            int open = w->need - bits(reach[w->first] & held);
            if (open <= more && open <= bits(reach[w->first] & coming))
                break;
        }
        if (w->first == x->sites)
            return INFINITY;
        found[i] = w->first;
        w->least = x->reached[(long)w->who * x->sites + w->first];
        sum += w->weight * w->least;
    }
    return sum;
}

/* Length of two waits together, beyond the sum of both alone. */
VECTORISED static double together(const sets *x, const one_wait *a, const one_wait *b, uint64_t held, uint64_t coming, int more)
{
    const int S = x->sites;
    const uint64_t *f = x->reach + (long)a->who * S, *g = x->reach + (long)b->who * S;
    const double *d = x->reached + (long)a->who * S, *e = x->reached + (long)b->who * S;
    int t = a->first, u = b->first;
    double best = INFINITY;
    int n = a->need - bits(f[t] & held), o;
    n = n < 0 ? 0 : n;
    for (; u < S; u++) { /* the least u beside the least t */
        o = b->need - bits(g[u] & held);
        o = o < 0 ? 0 : o;
        int less = n < o ? n : o, both = bits(f[t] & g[u] & coming);
        if (n + o - (both < less ? both : less) <= more)
            break;
    }
    if (u == S)
        u = S - 1; /* only a larger t may do */
    else
        best = d[t] + e[u];
    for (t++; u > b->first && t < S && d[t] + e[b->first] < best; t++) {
        n = a->need - bits(f[t] & held);
        n = n < 0 ? 0 : n;
        for (;;) {
            int next = isinf(best) ? u : u - 1;
            o = b->need - bits(g[next] & held);
            o = o < 0 ? 0 : o;
            int less = n < o ? n : o, both = bits(f[t] & g[next] & coming);
            if (n + o - (both < less ? both : less) > more)
                break;
            u = next;
            best = d[t] + e[u] < best ? d[t] + e[u] : best;
            if (u == b->first)
                break;
        }
    }
    return best - a->least - b->least;
}

typedef struct {
    double gain;
    int a, b;
} candidate;

static int more_gained(const void *one, const void *other)
{
    const candidate *p = one, *q = other;
    if (p->gain != q->gain)
        return p->gain > q->gain ? -1 : 1;
    return p->a != q->a ? p->a - q->a : p->b - q->b;
}

/* Weights of pairs under the present leader: the largest gains first, then exchanges of partners. Gains of pairs of clients
   are those below the first prefix that was asked about: they only guide the choice. */
static void match(sets *x, int leader, uint64_t held, uint64_t coming, int more)
{
    const int n = x->waits;
    pairing *p = x->pairing + leader + 1;
    int count = 0, found = 0, clients = 0;
    p->known = 1;
    for (int i = 0; i < n; i++)
        clients += x->one[i].who < x->clients;
    size_t cells = (size_t)n * (size_t)n, kept = (size_t)clients * (size_t)clients;
    double *gain = malloc((cells + (size_t)n) * sizeof *gain), *left = gain + cells;
    wait_pair *pair = malloc((2 * (size_t)n + 1) * sizeof *pair);
    candidate *of = malloc((cells / 2 + 1) * sizeof *of);
    int first = x->client_gain == NULL;
    if (first)
        x->client_gain = malloc((kept + 1) * sizeof *gain);
    if (!gain || !pair || !of || !x->client_gain) {
        free(gain);
        free(pair);
        free(of);
        return;
    }
    for (int i = 0, a = 0; i < n; i++) {
        int client = x->one[i].who < x->clients;
        left[i] = x->one[i].weight;
        gain[(size_t)i * n + i] = 0;
        for (int j = 0, b = 0; j < i; j++) {
            int both = client && x->one[j].who < x->clients;
            double *known = x->client_gain + (size_t)a * clients + b;
            double value = both && !first ? *known
                                          : together(x, x->one + i, x->one + j, held, coming, more);
            if (both)
                *known = value;
            gain[(size_t)i * n + j] = gain[(size_t)j * n + i] = value;
            if (value > 0)
                of[found++] = (candidate){value, i, j};
            b += x->one[j].who < x->clients;
        }
        a += client;
    }
    qsort(of, (size_t)found, sizeof *of, more_gained);
    for (int k = 0; k < found && count < 2 * n; k++) {
        int a = of[k].a, b = of[k].b;
        double weight = left[a] < left[b] ? left[a] : left[b];
        if (!(weight > 0))
            continue;
        left[a] -= weight;
        left[b] -= weight;
        pair[count++] = (wait_pair){a, b, weight};
    }
    free(of);
    int better = count;
    for (int round = 0; better && round < 50; round++) {
        better = 0;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++) {
                wait_pair *q = pair + i, *r = pair + j;
                if (i == j || q->weight <= 0 || r->weight <= 0 || count == 2 * n)
                    continue;
                int a = q->a, b = q->b, c = r->a, d = r->b;
                if (a == c || a == d || b == c || b == d)
                    continue;
                double now = gain[(size_t)a * n + b] + gain[(size_t)c * n + d];
                double first = gain[(size_t)a * n + c] + gain[(size_t)b * n + d];
                double second = gain[(size_t)a * n + d] + gain[(size_t)b * n + c];
                if (!(first > now * (1 + 1e-9) || second > now * (1 + 1e-9)))
                    continue;
                double weight = q->weight < r->weight ? q->weight : r->weight;
                wait_pair rest = q->weight < r->weight ? *r : *q;
                rest.weight -= weight;
                *q = first >= second ? (wait_pair){a, c, weight} : (wait_pair){a, d, weight};
                *r = first >= second ? (wait_pair){b, d, weight} : (wait_pair){b, c, weight};
                if (rest.weight > 0)
                    pair[count++] = rest;
                better = 1;
            }
    }
    for (int i = 1; i < count; i++) { /* the largest parts of the bound first */
        wait_pair q = pair[i];
        double part = q.weight * gain[(size_t)q.a * n + q.b];
        int j = i;
        for (; j > 0 && pair[j - 1].weight * gain[(size_t)pair[j - 1].a * n + pair[j - 1].b] < part; j--)
            pair[j] = pair[j - 1];
        pair[j] = q;
    }
    for (int k = 0; k < count; k++) /* their sums are below the weights of the waits, however they are rounded */
        pair[k].weight *= 1 - 1e-12;
    p->pair = pair;
    p->count = count;
    free(gain);
}

/* 1 when the sets of `a` are some of those of `b`. */
static int is_within(const wait_prefix *a, const wait_prefix *b)
{
    uint64_t more = a->held & ~b->held;
    return b->known && !(b->held & ~a->held) && !((more | a->coming) & ~b->coming) && a->more + bits(more) == b->more;
}

double waits_alone(sets *x, int depth, int from, int more)
{
    wait_prefix *own = x->prefix + depth, *above = own - 1;
    x->held_bits = x->coming_bits = 0;
    for (int s = 0; s < x->sites; s++)
        if (x->member[s])
            x->held_bits |= (uint64_t)1 << s;
        else if (s >= from && !x->out[s])
            x->coming_bits |= (uint64_t)1 << s;
    *own = (wait_prefix){0, more, x->held_bits, x->coming_bits, own->first};
    double sum = alone(x, own->held, own->coming, more, depth && is_within(own, above) ? above->first : NULL, own->first);
    own->known = sum < INFINITY;
    return sum;
}

double pair_gains(sets *x, int more, double enough)
{
    pairing *p = x->pairing + x->leader + 1;
    double sum = 0;
    if (x->waits < 2 || x->waits > MOST_PAIRED_WAITS)
        return 0;
    if (!p->known)
        match(x, x->leader, x->held_bits, x->coming_bits, more);
    for (int k = 0; k < p->count && sum <= enough; k++) {
        const wait_pair *q = p->pair + k;
        if (q->weight > 0)
            sum += q->weight * together(x, x->one + q->a, x->one + q->b, x->held_bits, x->coming_bits, more);
    }
    return sum;
}
