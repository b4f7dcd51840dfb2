/* Exact figures of one replica set, from ranks alone: in every scenario, whatever was screened. */
#include <string.h>

#include "quorum.h"

int64_t requests_of(const search *x, int side, const word *bits)
{
    const int64_t *table = x->table[side];
    int64_t sum = 0;
    for (int lane = 0; lane < x->lanes; lane++)
        sum += table[256 * lane + (int)(bits[lane >> 3] >> (8 * (lane & 7)) & 255)];
    return sum;
}

/* For each member of the set, the clients for whom it is beyond the limit. */
static void mark_beyond(search *x, const int *set, int size, int limit)
{
    for (int b = 0; b < x->balls; b++)
        if (x->ball[b].limit == limit && !x->ball[b].moved) {
            for (int m = 0; m < size; m++)
                memcpy(x->masks + (size_t)m * (size_t)x->words,
                       x->ball[b].out + (size_t)set[m] * (size_t)x->words,
                       (size_t)x->words * sizeof(word));
            return;
        }
    memset(x->masks, 0, (size_t)size * (size_t)x->words * sizeof(word));
    for (int m = 0; m < size; m++) {
        const int32_t *rank = x->rank + (size_t)set[m] * (size_t)x->clients;
        word *out = x->masks + (size_t)m * (size_t)x->words;
        for (int c = 0; c < x->clients; c++)
            out[c >> 6] |= (word)(rank[c] >= limit) << (c & 63);
    }
}

/* Clients for whom at least k members are beyond the limit, those in `taken` left out. */
static void at_least(const search *x, int size, int k, word *levels)
{
    const int words = x->words;
    memset(levels, 0, (size_t)k * (size_t)words * sizeof(word));
    for (int m = 0; m < size; m++) {
        const word *out = x->masks + (size_t)m * (size_t)words;
        if (x->taken[m])
            continue;
        for (int w = 0; w < words; w++) {
            for (int l = k - 1; l > 0; l--)
                levels[l * words + w] |= levels[(l - 1) * words + w] & out[w];
            levels[w] |= out[w];
        }
    }
}

/* Return whether clients of a lost site lack their quorum where they are redirected. */
static int lack_quorum(const search *x, const int *set, int size, const int32_t *moved, int limit, int spare)
{
    int outside = 0;
    for (int m = 0; m < size; m++)
        outside += !x->taken[m] && moved[set[m]] >= limit;
    return outside > spare;
}

/* Return whether the late requests of one side after loss `l` stay within its slack. Late requests without
   redirection depend only on which replicas are lost; they are kept for none and for one. */
static int survives_loss(search *x, const int *set, int side, int limit, int l)
{
    const store *s = x->s;
    const quorums *p = &x->pair[x->now];
    const int size = p->size, quorum = p->quorum[side], words = x->words;
    const int32_t first = s->loss_begin[l], last = s->loss_begin[l + 1];
    int hit = 0, slot = 0, moves = 0;
    for (int32_t k = first; k < last; k++) {
        int member = x->place[s->loss_site[k]], client = x->number[s->loss_site[k]];
        if (member >= 0) {
            hit++;
            slot = member + 1;
            x->taken[member] = 1;
        }
        moves |= s->loss_variant[k] >= 0 && client >= 0 && x->count[side][client] > 0;
    }
    int fine = 1;
    if ((!hit && !moves) || (!moves && hit < s->only_full))
        goto out;
    if (size - hit < quorum) {
        fine = 0;
        goto out;
    }
    if (hit > 1)
        slot = size + 1;
    word *levels = x->masks + (size_t)size * (size_t)words;
    word *missing = levels + (size_t)size * (size_t)words + (size_t)slot * (size_t)words;
    if (hit > 1 || !x->known[slot]) {
        int k = size - hit - quorum + 1;
        at_least(x, size, k, levels);
        memcpy(missing, levels + (size_t)(k - 1) * (size_t)words, (size_t)words * sizeof(word));
        x->sums[slot] = requests_of(x, side, missing);
        x->known[slot] = 1;
    }
    int64_t missed = x->sums[slot];
    for (int32_t k = first; moves && k < last; k++) {
        int client = x->number[s->loss_site[k]];
        if (s->loss_variant[k] < 0 || client < 0 || !x->count[side][client])
            continue;
        const int32_t *moved = s->moved + (size_t)s->loss_variant[k] * (size_t)s->sites;
        if (missing[client >> 6] >> (client & 63) & 1)
            missed -= x->count[side][client];
        if (lack_quorum(x, set, size, moved, limit, size - hit - quorum))
            missed += x->count[side][client];
    }
    fine = missed <= x->slack[side];
out:
    for (int32_t k = first; k < last; k++)
        if (x->place[s->loss_site[k]] >= 0)
            x->taken[x->place[s->loss_site[k]]] = 0;
    return fine;
}

static int side_within(search *x, const int *set, int side, const limits *at)
{
    const quorums *p = &x->pair[x->now];
    const int size = p->size, k = size - p->quorum[side] + 1;
    word *levels = x->masks + (size_t)size * (size_t)x->words;
    int normal = at->normal[side];
    if (x->contingency && at->worst[side] < normal)
        normal = at->worst[side];
    mark_beyond(x, set, size, normal);
    at_least(x, size, k, levels);
    if (requests_of(x, side, levels + (size_t)(k - 1) * (size_t)x->words) > x->slack[side])
        return 0;
    if (!x->contingency)
        return 1;
    if (normal != at->worst[side])
        mark_beyond(x, set, size, at->worst[side]);
    memset(x->known, 0, (size_t)size + 2);
    int *order = x->loss_order[side];
    for (int i = 0; i < x->s->losses; i++) {
        int l = order[i];
        if (!survives_loss(x, set, side, at->worst[side], l)) {
            memmove(order + 1, order, (size_t)i * sizeof *order);
            order[0] = l;
            return 0;
        }
    }
    return 1;
}

/* Return whether a set, of the size in force, obeys the limits in every scenario. */
int set_within(search *x, const int *set, const limits *at)
{
    int fine = 1;
    const int size = x->pair[x->now].size;
    for (int m = 0; m < size; m++)
        x->place[set[m]] = m;
    const int begin = x->refuting;
    for (int k = 0; k < 2 && fine; k++) {
        const int side = k ? 1 - begin : begin;
        if (x->needed[side] && !side_within(x, set, side, at)) {
            x->refuting = side;
            fine = 0;
        }
    }
    for (int m = 0; m < size; m++)
        x->place[set[m]] = -1;
    return fine;
}

/* Smallest value whose limits the set obeys, given that it obeys the limits of `known`. */
int set_value(search *x, const int *set, int known)
{
    int low = -1, high = known;
    while (high - low > 1) {
        limits at;
        int middle = low + (high - low) / 2;
        limits_at(x, middle, &at);
        if (set_within(x, set, &at))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* For every client, its ranks to the members in increasing order: one row for each k. */
static void sort_ranks(search *x, const int *set, int size)
{
    const size_t clients = (size_t)x->clients;
    for (int m = 0; m < size; m++) {
        int32_t *last = x->ranks + (size_t)m * clients;
        memcpy(last, x->rank + (size_t)set[m] * clients, clients * sizeof *last);
        for (int k = 0; k < m; k++) {
            int32_t *row = x->ranks + (size_t)k * clients;
            for (size_t c = 0; c < clients; c++) {
                int32_t first = row[c], second = last[c];
                row[c] = first < second ? first : second;
                last[c] = first < second ? second : first;
            }
        }
    }
}

static int covered(const search *x, int side, const int32_t *rank, int limit)
{
    const int64_t *count = x->count[side];
    int64_t sum = 0;
    for (int c = 0; c < x->clients; c++)
        sum += rank[c] < limit ? count[c] : 0;
    return sum >= x->needed[side];
}

/* Threshold in normal operation as a number of allowed values, given that it is at most `known`. */
static int threshold(const search *x, int side, const int32_t *rank, int known)
{
    int low = 0, high = x->needed[side] ? known : 0;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (covered(x, side, rank, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Figures of a set that obeys the limits in force, with its larger threshold as a number of allowed
   values. The mean is summed in the order of the evaluator: sites by index, reads before writes. */
int set_figures(search *x, const int *set, figures *out)
{
    const quorums *p = &x->pair[x->now];
    const double *grid = x->s->grid;
    const int32_t *rank[2];
    double total = 0.0;
    sort_ranks(x, set, p->size);
    for (int side = READ; side <= WRITE; side++)
        rank[side] = x->ranks + (size_t)(p->quorum[side] - 1) * (size_t)x->clients;
    for (int c = 0; c < x->clients; c++)
        for (int side = READ; side <= WRITE; side++)
            if (x->count[side][c])
                total = total + (double)x->count[side][c] * grid[rank[side][c]];
    out->mean = total / x->requests;
    /* Among the ties of one larger threshold the conditions leave sums that are no worse. */
    if (x->either && x->other_cap > 0 && !covered(x, READ, rank[READ], x->other_cap - 1) &&
        !covered(x, WRITE, rank[WRITE], x->other_cap - 1)) {
        out->largest = x->tie.largest;
        out->sum = x->tie.sum;
        return x->tie_cap;
    }
    int count[2];
    double value[2];
    for (int side = READ; side <= WRITE; side++) {
        count[side] = threshold(x, side, rank[side], x->limit.normal[side]);
        value[side] = count[side] ? grid[count[side] - 1] : 0.0;
    }
    out->largest = value[READ] > value[WRITE] ? value[READ] : value[WRITE];
    out->sum = value[READ] + value[WRITE];
    return count[READ] > count[WRITE] ? count[READ] : count[WRITE];
}
