/* The conditions of quorum.h for the pair and the limits in force. */
#include <string.h>

#include "quorum.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Limits that configurations of at most this value obey. */
void limits_at(const search *x, int value, limits *out)
{
    const int all = least(value, x->s->values);
    *out = x->caps;
    for (int side = READ; side <= WRITE; side++) {
        if (x->moving[side])
            out->normal[side] = least(all, out->normal[side]);
        if (x->moving[2 + side])
            out->worst[side] = least(all, out->worst[side]);
        if (x->contingency)
            out->normal[side] = least(out->normal[side], out->worst[side]);
        if (x->listing == 2)
            out->normal[side] = least(out->normal[side], x->tie_cap);
    }
}

/* Latency rank of client c to the sites, by the ball's kind; NULL: no such redirection. */
static const int32_t *ranks_of(const search *x, int c, int moved)
{
    const store *s = x->s;
    const int site = x->client[c];
    if (!moved)
        return s->rank + (size_t)s->sites * (size_t)site;
    int row = s->variant_of[site * s->most_variants + moved - 1];
    return row < 0 ? NULL : s->moved + (size_t)s->sites * (size_t)row;
}

static int ball_at(search *x, int limit, int moved)
{
    for (int b = 0; b < x->balls; b++)
        if (x->ball[b].limit == limit && x->ball[b].moved == moved)
            return b;
    ball *b = &x->ball[x->balls];
    const size_t words = (size_t)x->words;
    b->limit = limit;
    b->moved = moved;
    memset(b->out, 0, (size_t)x->s->sites * words * sizeof(word));
    for (int c = 0; c < x->clients; c++) {
        const int32_t *rank = ranks_of(x, c, moved);
        word *out = b->out + (c >> 6);
        if (rank)
            for (int j = 0; j < x->s->sites; j++)
                out[(size_t)j * words] |= (word)(rank[j] >= limit) << (c & 63);
    }
    return x->balls++;
}

static int sites_within(const search *x, int c, int limit)
{
    const int32_t *rank = x->s->rank + (size_t)x->s->sites * (size_t)x->client[c];
    int inside = 0;
    for (int j = 0; j < x->s->sites; j++)
        inside += rank[j] < limit;
    return inside;
}

static void set_bit(word *bits, int c)
{
    bits[c >> 6] |= (word)1 << (c & 63);
}

static condition *new_condition(search *x, int b, int side)
{
    condition *k = &x->condition[x->conditions++];
    k->ball = b;
    k->side = side;
    k->terms = 0;
    k->must_level = 0;
    k->budget = 0.0;
    k->first = x->largest + 1;
    return k;
}

/* Most requests of clients without enough sites that may escape in one scenario, being redirected:
   the requests of the F lost sites. */
static double escaping(const search *x, int side, int limit, int quorum)
{
    double sum = 0.0, above = 0.0;
    int from = -1;
    for (int taken = 0; taken < x->s->failures; taken++) {
        /* The next largest: smaller than the last one, or as large and of a later client. */
        double next = -1.0;
        int place = -1;
        for (int c = 0; c < x->clients; c++) {
            double count = (double)x->count[side][c];
            if (count <= next || (taken && (count > above || (count == above && c <= from))) ||
                sites_within(x, c, limit) >= quorum)
                continue;
            next = count;
            place = c;
        }
        if (place < 0)
            break;
        sum += next;
        above = next;
        from = place;
    }
    return sum;
}

/* Conditions 1 (lost = 0) or 2, 3 and 5 (lost = 1) for one side. */
static void add(search *x, int side, int limit, int lost)
{
    const quorums *p = &x->pair[x->now];
    const int size = p->size, quorum = p->quorum[side], clients = x->clients;
    const size_t words = (size_t)x->words;
    const double *steps = p->steps[side][lost];
    const double slack = (double)x->slack[side];
    const int redirects = lost && x->s->variants > 0;
    condition *k = new_condition(x, ball_at(x, limit, 0), side);
    double charged = 0.0, hopeless = 0.0;
    for (int l = 0; l <= size; l++)
        if (steps[l] != 0.0) {
            k->level[k->terms] = l;
            k->factor[k->terms] = steps[l];
            memset(k->counted + (size_t)k->terms * words, 0, words * sizeof(word));
            k->terms++;
        }
    for (int c = 0; c < clients; c++) {
        double count = (double)x->count[side][c];
        if (count == 0.0)
            continue;
        int inside = sites_within(x, c, limit), outside = size - inside;
        /* So many replicas are beyond the limit in any set: charged before the first is chosen. */
        for (int l = 0; l <= outside; l++)
            charged += count * steps[l];
        for (int t = 0; t < k->terms; t++)
            if (k->level[t] > outside)
                set_bit(k->counted + (size_t)t * words, c);
        if (inside < quorum)
            hopeless += count;
    }
    k->budget = slack * (lost ? p->ways : 1.0) - charged;
    /* Sums that may exceed 2^53: a screen may keep too much. */
    if (lost && p->ways > (double)size)
        k->budget += 1e-9 * slack * p->ways;
    if (k->budget < 0.0)
        x->hopeless = 1;
    if (k->terms)
        k->first = k->level[0];
    if (!lost)
        return;
    double left = slack - hopeless + (redirects ? escaping(x, side, limit, quorum) : 0.0);
    memset(k->must, 0, words * sizeof(word));
    for (int c = 0; c < clients; c++)
        if ((double)x->count[side][c] > left && sites_within(x, c, limit) >= quorum) {
            set_bit(k->must, c);
            k->must_level = size - quorum - x->s->failures + 1;
            k->first = least(k->first, k->must_level);
        }
    for (int v = 1; v <= x->s->most_variants; v++) {
        condition *own = NULL;
        for (int c = 0; c < clients; c++) {
            double count = (double)x->count[side][c];
            if (count <= slack - hopeless || count == 0.0 || !ranks_of(x, c, v))
                continue;
            double others = hopeless - (sites_within(x, c, limit) < quorum ? count : 0.0);
            /* With several sites lost the others among the lost may escape as well. */
            if (x->s->failures > 1)
                others = 0.0;
            if (count > slack - others) {
                if (!own) {
                    own = new_condition(x, ball_at(x, limit, v), side);
                    memset(own->must, 0, words * sizeof(word));
                    own->must_level = own->first = size - quorum + 1;
                }
                set_bit(own->must, c);
            }
        }
    }
}

/* Most values a threshold may be allowed so that its sum with the larger one is no worse. */
static int other_cap(const search *x)
{
    int low = 0, high = x->s->values;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (x->tie.largest + x->s->grid[middle - 1] <= x->tie.sum)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Prepare the conditions for the limits in force; prefixes grown before are no longer valid. */
void screen_build(search *x)
{
    x->epoch++;
    x->balls = x->conditions = x->hopeless = 0;
    for (int side = READ; side <= WRITE; side++) {
        if (!x->needed[side])
            continue;
        int lost = x->contingency && x->pair[x->now].ways > 0.0;
        /* The worst scenario includes normal operation: an equal limit is tested with it. */
        if (!lost || x->limit.normal[side] < x->limit.worst[side])
            add(x, side, x->limit.normal[side], 0);
        if (lost)
            add(x, side, x->limit.worst[side], 1);
    }
    /* Order: conditions that read fewer sites first. */
    for (int i = 1; i < x->conditions; i++) {
        condition k = x->condition[i];
        int j = i;
        for (; j > 0 && x->condition[j - 1].first > k.first; j--)
            x->condition[j] = x->condition[j - 1];
        x->condition[j] = k;
    }
    x->either = x->listing == 2 && x->settled && x->tie_pair >= 0;
    if (x->either) {
        const int count = x->conditions, hopeless = x->hopeless;
        x->other_cap = other_cap(x);
        add(x, READ, x->other_cap, 0);
        add(x, WRITE, x->other_cap, 0);
        x->conditions = count;
        x->hopeless = hopeless;
    }
}
