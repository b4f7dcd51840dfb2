/* The policies of heuristics/online/selection but WRT; dynamic snitching is in snitch.c. */
#include <math.h>

#include "selection.h"

static int64_t least(const double *values, int64_t count)
{
    int64_t at = 0;
    for (int64_t k = 1; k < count; k++)
        if (values[k] < values[at])
            at = k;
    return at;
}

static double score(const run *r, const knowledge *k)
{
    double estimate;
    if (!k->heard)
        return 0.0;
    estimate = 1.0 + (double)k->outstanding * r->weight + k->queue;
    return k->network + pow(estimate, r->exponent) * k->service;
}

/* When `read` would end at `server` if it left now and no speed changed. */
static double replayed(run *r, int64_t read, int64_t server, double now)
{
    double mean = mean_at(r, server, now), *slot = r->scratch, begin;
    double there = now + delay_of(r, r->client[read], server);
    const line *queues[2] = {&r->lines[server], &r->coming[server]};
    int64_t busy = r->busy[server], at;
    int after = 0;
    for (int64_t k = 0; k < r->slots; k++)
        slot[k] = k < busy ? r->ends[server * r->slots + k] : now;
    for (int which = 0; which < 2 && !after; which++) {
        const line *queue = queues[which];
        for (int64_t k = 0; k < queue->count; k++) {
            int64_t number = queue->item[(queue->head + k) & (queue->room - 1)];
            double arrives = r->reach[number];
            if (arrives > there) { /* it comes after this read */
                after = 1;
                break;
            }
            at = least(slot, r->slots);
            begin = slot[at] >= arrives ? slot[at] : arrives;
            slot[at] = begin + work_of(r, number) * mean;
        }
    }
    at = least(slot, r->slots);
    begin = slot[at] >= there ? slot[at] : there;
    return begin + r->work[read] * mean;
}

/* When work sent now to a server will end, with the speeds to come. */
static double foreseen(const run *r, double work, int64_t client, int64_t server, double now,
                       int64_t *slot)
{
    double there = now + delay_of(r, client, server);
    const double *free_at = r->free_at + server * r->slots;
    int64_t at = least(free_at, r->slots);
    double begin = free_at[at] >= there ? free_at[at] : there;
    if (slot)
        *slot = at;
    return begin + work * mean_at(r, server, begin);
}

static double key_of(run *r, int64_t read, int64_t server, double now)
{
    const knowledge *k = &r->known[r->client[read] * r->servers + server];
    int64_t ahead;
    switch (r->policy) {
    case POLICY_ORA:
    case POLICY_ORAF:
        ahead = r->busy[server] + r->lines[server].count;
        if (r->policy == POLICY_ORAF)
            ahead += r->coming[server].count;
        return (double)(1 + ahead) * mean_at(r, server, now);
    case POLICY_ECT:
        return replayed(r, read, server, now);
    case POLICY_ECTF:
        return foreseen(r, r->work[read], r->client[read], server, now, 0);
    case POLICY_C3:
    case POLICY_TWO:
        return score(r, k);
    case POLICY_LOR:
        return (double)k->outstanding;
    case POLICY_LRT:
        return k->last;
    case POLICY_NEAR:
        return delay_of(r, r->client[read], server);
    default: /* rotation and chance sort by nothing */
        return 0.0;
    }
}

/* Put the servers of the group into r->order, best first. */
void policy_rank(run *r, int64_t read, double now)
{
    int64_t size = r->replication, group = r->group[read], sorted = size;
    const signed char *shuffle = r->shuffle + read * size;
    if (r->policy == POLICY_DS) {
        snitch_rank(r, read, now);
        return;
    }
    for (int64_t k = 0; k < size; k++) {
        int64_t place = r->random_ties ? shuffle[k] : k;
        if (r->policy == POLICY_RR)
            place = (k + r->turn[r->client[read] * r->groups + group]) % size;
        r->order[k] = server_of(r, group, place);
    }
    if (r->policy == POLICY_RR || r->policy == POLICY_RAND)
        return;
    if (r->policy == POLICY_TWO && sorted > 2)
        sorted = 2;
    for (int64_t k = 0; k < sorted; k++) { /* stable insertion */
        int64_t server = r->order[k], at = k;
        double key = key_of(r, read, server, now);
        for (; at > 0 && key < r->key[at - 1]; at--) {
            r->key[at] = r->key[at - 1];
            r->order[at] = r->order[at - 1];
        }
        r->key[at] = key;
        r->order[at] = server;
    }
}

void policy_sent(run *r, int64_t number, int64_t read, int64_t server, double now, int told)
{
    int64_t client = r->client[read], slot;
    if (told)
        r->known[client * r->servers + server].outstanding += 1;
    if (told && r->policy == POLICY_RR && number < r->n) {
        int64_t *turn = &r->turn[client * r->groups + r->group[read]];
        *turn = (*turn + 1) % r->replication;
    }
    if (r->policy == POLICY_ECTF) {
        double end = foreseen(r, work_of(r, number), client, server, now, &slot);
        r->free_at[server * r->slots + slot] = end;
    }
}

void policy_answered(run *r, int64_t pair, double response, double service, double queue,
                     double now)
{
    knowledge *k = &r->known[pair];
    double network = response - service, fresh = r->alpha, old = 1.0 - r->alpha;
    if (r->policy == POLICY_DS)
        snitch_answered(r, pair, response, now);
    k->outstanding -= 1;
    k->last = response;
    if (!k->heard) {
        k->heard = 1;
        k->queue = queue;
        k->service = service;
        k->network = network;
        return;
    }
    k->queue = fresh * queue + old * k->queue;
    k->service = fresh * service + old * k->service;
    k->network = fresh * network + old * k->network;
}
