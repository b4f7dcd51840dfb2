/* Dynamic snitching: heuristics/online/selection/dynamic_snitch.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "selection.h"

int snitch_start(run *r)
{
    snitch *s = &r->snitch;
    size_t pairs = (size_t)(r->clients * r->servers), all = pairs * (size_t)s->size;
    s->next_update = s->update;
    s->next_reset = s->reset;
    s->value = malloc(all * sizeof(double));
    s->rank = malloc(all * sizeof(double));
    s->score = calloc(pairs, sizeof(double));
    s->scratch = malloc((size_t)s->size * sizeof(double));
    s->count = calloc(pairs, sizeof(int64_t));
    return s->value && s->rank && s->score && s->scratch && s->count;
}

void snitch_free(run *r)
{
    free(r->snitch.value);
    free(r->snitch.rank);
    free(r->snitch.score);
    free(r->snitch.scratch);
    free(r->snitch.count);
}

/* Move the k-th smallest of n values to its place, smaller ones before it. */
static void select_rank(double *value, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = value[(low + high) / 2];
        int64_t left = low, right = high;
        while (left <= right) {
            while (value[left] < pivot)
                left++;
            while (value[right] > pivot)
                right--;
            if (left <= right) {
                double other = value[left];
                value[left++] = value[right];
                value[right--] = other;
            }
        }
        if (k <= right)
            high = right;
        else if (k >= left)
            low = left;
        else
            return;
    }
}

static double median(snitch *s, const double *value, int64_t count)
{
    int64_t middle = count / 2;
    double upper, lower;
    if (count == 0)
        return 0.0;
    memcpy(s->scratch, value, (size_t)count * sizeof(double));
    select_rank(s->scratch, count, middle);
    upper = lower = s->scratch[middle];
    if (count % 2 == 0) {
        lower = s->scratch[0];
        for (int64_t k = 1; k < middle; k++)
            if (s->scratch[k] > lower)
                lower = s->scratch[k];
    }
    return (lower + upper) / 2;
}

/* Compute the scores as they were at the last update before `now`. */
static void advance(run *r, double now)
{
    snitch *s = &r->snitch;
    if (now < s->next_update)
        return;
    s->next_update = (floor(now / s->update) + 1) * s->update;
    for (int64_t client = 0; client < r->clients; client++) {
        double *score = s->score + client * r->servers, largest = 0.0;
        for (int64_t server = 0; server < r->servers; server++) {
            int64_t pair = client * r->servers + server;
            score[server] = median(s, s->value + pair * s->size, s->count[pair]);
            if (score[server] > largest)
                largest = score[server];
        }
        for (int64_t server = 0; server < r->servers; server++)
            score[server] = largest > 0 ? score[server] / largest : 0.0;
    }
    if (now >= s->next_reset) {
        memset(s->count, 0, (size_t)(r->clients * r->servers) * sizeof(int64_t));
        s->next_reset += s->reset;
    }
}

/* Sort r->order, stable, by delays or scores of its servers. */
static void sort_by(run *r, const double *key)
{
    for (int64_t k = 1; k < r->replication; k++) {
        int64_t server = r->order[k], at = k;
        for (; at > 0 && key[server] < key[r->order[at - 1]]; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = server;
    }
}

void snitch_rank(run *r, int64_t read, double now)
{
    snitch *s = &r->snitch;
    const double *delay = r->delay + r->client[read] * r->servers;
    const double *score = s->score + r->client[read] * r->servers;
    double factor = 1.0 + s->badness;
    advance(r, now);
    for (int64_t k = 0; k < r->replication; k++)
        r->order[k] = server_of(r, r->group[read], k);
    sort_by(r, delay);
    for (int64_t k = 0; k < r->replication; k++)
        r->key[k] = (double)r->order[k]; /* the static order */
    sort_by(r, score);
    for (int64_t k = 0; k < r->replication; k++)
        if (score[(int64_t)r->key[k]] > score[r->order[k]] * factor)
            return;
    for (int64_t k = 0; k < r->replication; k++)
        r->order[k] = (int64_t)r->key[k];
}

void snitch_answered(run *r, int64_t pair, double response, double now)
{
    snitch *s = &r->snitch;
    double *value = s->value + pair * s->size, *ranks = s->rank + pair * s->size, rank;
    int64_t at = 0;
    advance(r, now);
    /* There is a draw for every number that can be answered. */
    rank = s->decay * now / 1000.0 + s->draw[s->drawn < s->draws ? s->drawn++ : 0];
    if (s->count[pair] < s->size) {
        at = s->count[pair]++;
    } else {
        for (int64_t k = 1; k < s->size; k++)
            if (ranks[k] < ranks[at])
                at = k;
        if (!(rank > ranks[at]))
            return;
    }
    ranks[at] = rank;
    value[at] = response;
}
