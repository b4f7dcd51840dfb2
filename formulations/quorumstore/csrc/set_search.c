/* Memory of a search, and its passes over all pairs: find the best value, then decide ties. */
#include <stdlib.h>
#include <string.h>

#include "quorum.h"

void store_free(store *s)
{
    release(&s->owned);
    free(s);
}

void search_free(search *x)
{
    free(x->rows);
    release(&x->owned);
    free(x);
}

/* Entries with bits above those of the last client are never read. */
static void make_tables(search *x)
{
    for (int side = READ; side <= WRITE; side++) {
        int64_t *table = x->table[side];
        for (int c = 0; c < x->clients; c++) {
            int64_t *mine = table + 256 * (c / 8);
            const int bit = 1 << (c % 8);
            for (int bits = bit; bits < 2 * bit; bits++)
                mine[bits] = mine[bits - bit] + x->count[side][c];
        }
    }
}

static void make_conditions(search *x)
{
    const size_t words = (size_t)x->words, levels = (size_t)x->largest + 1;
    x->ball = own(&x->owned, (size_t)x->most_conditions, sizeof *x->ball);
    x->condition = own(&x->owned, (size_t)x->most_conditions, sizeof *x->condition);
    for (int i = 0; i < x->most_conditions && !x->owned.failed; i++) {
        condition *k = &x->condition[i];
        x->ball[i].out = own(&x->owned, (size_t)x->s->sites * words, sizeof(word));
        k->level = own(&x->owned, levels, sizeof *k->level);
        k->factor = own(&x->owned, levels, sizeof *k->factor);
        k->counted = own(&x->owned, levels * words, sizeof(word));
        k->must = own(&x->owned, words, sizeof(word));
    }
}

static void make_pairs(search *x, int pairs, const int32_t *shapes, const double *ways,
                      const double *steps)
{
    const size_t width = (size_t)x->largest + 1;
    x->pairs = pairs;
    x->pair = own(&x->owned, (size_t)pairs, sizeof *x->pair);
    x->steps = own(&x->owned, (size_t)pairs * 4 * width, sizeof *x->steps);
    if (x->owned.failed)
        return;
    memcpy(x->steps, steps, (size_t)pairs * 4 * width * sizeof *steps);
    for (int i = 0; i < pairs; i++) {
        quorums *p = &x->pair[i];
        p->size = shapes[4 * i];
        p->quorum[READ] = shapes[4 * i + 1];
        p->quorum[WRITE] = shapes[4 * i + 2];
        p->region_cap = shapes[4 * i + 3];
        p->ways = ways[i];
        for (int k = 0; k < 4; k++)
            p->steps[k / 2][k % 2] = x->steps + (size_t)(4 * i + k) * width;
    }
}

/* Requests by site and side; shapes: N, R, W and the cap on replicas of a region, for each pair;
   steps: reads normally, reads after losses, writes likewise. NULL: out of memory. */
search *search_new(const store *s, const int64_t *counts[2], const int64_t needed[2], int pairs,
                   const int32_t *shapes, const double *ways, const double *steps)
{
    search *x = calloc(1, sizeof *x);
    const size_t n = (size_t)s->sites;
    if (!x)
        return NULL;
    x->s = s;
    for (int i = 0; i < pairs; i++)
        if (shapes[4 * i] > x->largest)
            x->largest = shapes[4 * i];
    for (size_t j = 0; j < n; j++)
        x->clients += counts[READ][j] > 0 || counts[WRITE][j] > 0;
    x->words = (x->clients + 63) / 64;
    if (!x->words)
        x->words = 1;
    x->lanes = (x->clients + 7) / 8;
    x->most_conditions = 2 * (3 + s->most_variants);
    const size_t clients = (size_t)x->clients, words = (size_t)x->words;
    const size_t largest = (size_t)x->largest;
    x->stride = (size_t)x->most_conditions * largest * words;
    owned_memory *owned = &x->owned;
    x->client = own(owned, clients, sizeof *x->client);
    x->number = own(owned, n, sizeof *x->number);
    x->best_set = own(owned, largest, sizeof *x->best_set);
    x->tie_set = own(owned, largest, sizeof *x->tie_set);
    x->path = own(owned, largest, sizeof *x->path);
    x->region_count = own(owned, n, sizeof *x->region_count);
    x->candidates = own(owned, (largest + 1) * n, sizeof *x->candidates);
    x->level = own(owned, largest + 1, sizeof *x->level);
    x->base = own(owned, (largest + 1) * x->stride, sizeof(word));
    x->children = own(owned, largest * n * x->stride, sizeof(word));
    x->far = own(owned, n, sizeof *x->far);
    x->rank = own(owned, n * clients, sizeof *x->rank);
    x->ranks = own(owned, largest * clients, sizeof *x->ranks);
    x->masks = own(owned, (3 * largest + 2) * words, sizeof(word));
    x->sums = own(owned, largest + 2, sizeof *x->sums);
    x->known = own(owned, largest + 2, 1);
    x->place = own(owned, n, sizeof *x->place);
    x->taken = own(owned, largest, sizeof *x->taken);
    x->sorted = own(owned, largest, sizeof *x->sorted);
    make_conditions(x);
    make_pairs(x, pairs, shapes, ways, steps);
    for (int side = READ; side <= WRITE; side++) {
        x->count[side] = own(owned, clients, sizeof **x->count);
        x->table[side] = own(owned, (size_t)x->lanes * 256, sizeof **x->table);
        x->loss_order[side] = own(owned, (size_t)s->losses, sizeof **x->loss_order);
    }
    if (owned->failed) {
        search_free(x);
        return NULL;
    }
    int c = 0;
    for (int j = 0; j < s->sites; j++) {
        x->place[j] = x->number[j] = -1;
        if (counts[READ][j] <= 0 && counts[WRITE][j] <= 0)
            continue;
        x->client[c] = j;
        x->number[j] = c++;
    }
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < clients; k++)
            x->rank[j * clients + k] = s->rank[n * (size_t)x->client[k] + j];
    for (int side = READ; side <= WRITE; side++) {
        int64_t total = 0;
        for (int k = 0; k < x->clients; k++) {
            x->count[side][k] = counts[side][x->client[k]];
            total += x->count[side][k];
        }
        x->needed[side] = needed[side];
        x->slack[side] = total - needed[side];
        x->requests += (double)total;
        for (int l = 0; l < s->losses; l++)
            x->loss_order[side][l] = l;
    }
    make_tables(x);
    x->best = s->values + 1;
    x->best_pair = x->tie_pair = -1;
    x->tie_cap = s->values;
    return x;
}

static void turn_to(search *x, int pair)
{
    const int *quorum = x->pair[pair].quorum;
    x->now = pair;
    x->depth = x->pair[pair].size + 1 - (quorum[READ] < quorum[WRITE] ? quorum[READ] : quorum[WRITE]);
}

static int walk(search *x, int first)
{
    x->stop = 0;
    screen_build(x);
    return tree_run(x, first) || !(x->paused || x->failed);
}

/* Lower the incumbent to the optimum. 0: interrupted, or out of memory. */
int search_find(search *x)
{
    x->listing = 0;
    for (int i = 0; i < x->pairs && x->best > 0; i++) {
        turn_to(x, i);
        limits_at(x, x->best - 1, &x->limit);
        if (!walk(x, -1))
            return 0;
    }
    return 1;
}

/* Find the first under the tie rule of all configurations with the best value. */
int search_choose(search *x)
{
    x->listing = 2;
    x->tie_cap = x->s->values;
    x->tie_pair = -1;
    x->settled = !x->contingency && x->moving[0] && x->moving[1] && x->needed[READ] &&
                 x->needed[WRITE];
    for (int i = 0; i < x->pairs && x->best <= x->s->values; i++) {
        turn_to(x, i);
        limits_at(x, x->best, &x->limit);
        if (!walk(x, -1))
            return 0;
    }
    return 1;
}

/* List the sets within the limits `x->limit` whose first site is `first`. */
int search_list(search *x, int pair, int first)
{
    x->listing = 1;
    x->row_count = 0;
    turn_to(x, pair);
    return walk(x, first);
}

/* Lower the incumbent by some sets of one size. */
void search_probe(search *x, int pair, const int32_t *rows, size_t count)
{
    x->listing = 0;
    turn_to(x, pair);
    const int size = x->pair[pair].size;
    for (size_t i = 0; i < count && x->best > 0; i++) {
        int fits = 1;
        for (int m = 0; m < size; m++)
            x->sorted[m] = rows[i * (size_t)size + (size_t)m];
        for (int m = 0; m < size && fits; m++) {
            int same = 0;
            for (int k = 0; k < size; k++)
                same += x->s->region[x->sorted[k]] == x->s->region[x->sorted[m]];
            fits = same <= x->pair[pair].region_cap;
        }
        limits_at(x, x->best - 1, &x->limit);
        if (fits && set_within(x, x->sorted, &x->limit)) {
            x->best = set_value(x, x->sorted, x->best - 1);
            x->best_pair = pair;
            memcpy(x->best_set, x->sorted, (size_t)size * sizeof *x->sorted);
        }
    }
}
